"""A small index that tests kill, race for and starve, and what it should answer."""

import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import killing
import killing_work
import search_parts

CHILD = Path(__file__).parent / "search" / "indexing_child.py"
TENDING = CHILD.with_name("tending_child.py")
QUERY = "a red dog in the snow"


def make_world(folder, photos=40):
    search_parts.save_models(folder)
    for number in range(photos):
        search_parts.make_photo(folder / "photos" / f"{number:03}.png", number)
    return folder


def start(world, *words, before=()):
    """Start a new Python that indexes, with other words before it."""
    return subprocess.Popen(
        [*before, sys.executable, str(CHILD), str(world), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@dataclass(frozen=True, eq=False)
class Answer:
    """What an index keeps of a photograph: equal if it is but for the last bits of the vector.

    Those differ with what the vector was made beside.

    Args:
        score: by the regions as they are kept, 16 bits each.
        vector: (D,) as the database has it.
    """

    score: float
    vector: np.ndarray

    def __eq__(self, other):
        return self.score == other.score and np.allclose(self.vector, other.vector, atol=1e-5)

    __hash__ = None


def answers(index):
    """Everything there is, by path."""
    found = index.search(QUERY, k=1000, exhaustive=True, rank_by="reranker")
    assert len({hit.path for hit in found.hits}) == len(found.hits)
    rows = index.tables.photos.vectors([hit.uid for hit in found.hits])
    return {
        hit.path: Answer(round(hit.score, 5), row)
        for hit, row in zip(found.hits, rows, strict=True)
    }


def begin(world, *words, program=CHILD):
    """Start the program in a fork; return its process and its pipe once it has begun."""
    process, told = killing.start(killing_work.run_program, program.stem, world, *words)
    assert told.recv() == "begun"  # with an index there is, or there was nothing to keep
    return process, told


def until_a_batch(told):
    """Wait until an indexing program has acknowledged photographs."""
    while True:
        word, *numbers = told.recv().split()
        if word == "done" and int(numbers[0]):
            return


def finish(process, told):
    """Let a program come to its end; return the lines that it told."""
    lines = killing.lines_of(told)
    process.join()
    told.close()
    assert process.exitcode == 0
    return lines


def end_by_kill(process, told):
    """Kill a program; return the lines that it had told."""
    process.kill()
    process.join()
    lines = killing.lines_of(told)
    told.close()
    assert process.exitcode in (0, -signal.SIGKILL)  # and not by an error of its own
    return lines
