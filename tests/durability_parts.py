"""A small index that tests kill, race for and starve, and what it should answer."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import search_parts
from crossgaze.search.index import Index

CHILD = Path(__file__).parent / "search" / "indexing_child.py"
TENDING = CHILD.with_name("tending_child.py")
QUERY = "a red dog in the snow"


def make_world(folder, photos=40):
    search_parts.save_models(folder)
    for number in range(photos):
        search_parts.make_photo(folder / "photos" / f"{number:03}.png", number)
    return folder


def start(world, *words, before=(), program=CHILD):
    return subprocess.Popen(
        [*before, sys.executable, str(program), str(world), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read(world):
    return Index.open(world / "index", source=search_parts.CellSource())


def answers(index):
    """Everything there is, by path, with its score by regions as they are kept, 16 bits each.

    Vectors are not compared: their last bits differ with what they were made beside.
    """
    found = index.search(QUERY, k=1000, exhaustive=True, rank_by="reranker")
    assert len({hit.path for hit in found.hits}) == len(found.hits)
    return {hit.path: round(hit.score, 5) for hit in found.hits}


def begin(world, *words, program=CHILD):
    """Start the child and return it once it has begun."""
    child = start(world, *words, program=program)
    line = child.stdout.readline()  # with an index there is, or there was nothing to keep
    assert line == "begun\n", (line, child.stderr.read())
    return child


def make_index(world):
    return Index.create(
        world / "index",
        embedder=world / "embedder",
        reranker=world / "reranker",
        source=search_parts.CellSource(),
    )


def kill_somewhere(world, rng, *words, seconds=0.8, program=CHILD):
    """Start the child and kill it at some moment of so many seconds after it began.

    Returns:
        What it acknowledged, and whether the kill met it at work.
    """
    child = begin(world, *words, program=program)
    time.sleep(rng.random() * seconds)
    child.send_signal(signal.SIGKILL)
    said, _ = child.communicate()
    assert child.returncode in (-signal.SIGKILL, 0)
    lines = said.splitlines()
    done = [int(line.split()[1]) for line in lines if line.startswith("done")]
    met = child.returncode == -signal.SIGKILL and not any(line.startswith("end") for line in lines)
    return done[-1] if done else 0, met
