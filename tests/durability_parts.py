"""A small index that tests kill, race for and starve, and what it should answer."""

import signal
import subprocess
import sys
from pathlib import Path

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


def answers(index):
    """Everything there is, by path, with its score by regions as they are kept, 16 bits each.

    Vectors are not compared: their last bits differ with what they were made beside.
    """
    found = index.search(QUERY, k=1000, exhaustive=True, rank_by="reranker")
    assert len({hit.path for hit in found.hits}) == len(found.hits)
    return {hit.path: round(hit.score, 5) for hit in found.hits}


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
