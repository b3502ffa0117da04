"""An index whose processes are killed while they bring sentences, give back room or move it."""

import itertools
import random
import shutil
import time

import pytest

import search_parts
from crossgaze.data.regions.verify import verify
from crossgaze.errors import InputError
from crossgaze.search.index import Index
from durability_parts import TENDING, answers, begin, end_by_kill, finish, make_world
from reliability_parts import record

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
often = pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.slow)])
WORDS = ("red", "green", "blue", "dog", "cat", "runs", "snow")


@pytest.fixture
def world(tmp_path):
    """An index with regions that nothing refers to, and a file of sentences that it has not."""
    made = make_world(tmp_path)
    with search_parts.create(made) as index:
        index.add(made / "photos")
        for number in range(0, 40, 2):
            search_parts.make_photo(made / "photos" / f"{number:03}.png", f"new {number}")
        index.add(made / "photos")
    lines = [f"a {' '.join(chosen)}" for chosen in itertools.product(WORDS, repeat=3)]
    (made / "sentences.txt").write_text("\n".join(lines) + "\n")
    return made


@pytest.fixture
def before(world):
    return answers_of(world)


def answers_of(world):
    with search_parts.reopen(world) as index:
        return answers(index)


def seconds_of(world, work):
    """Return how long the work takes when nobody kills it."""
    calm = world.with_name(f"{world.name}-calm")
    shutil.copytree(world, calm)
    started = begin(calm, work, program=TENDING)
    began = time.monotonic()
    assert started[1].recv() == "end"
    taken = time.monotonic() - began
    finish(*started)
    return taken


def kill_often(world, work, kills, look):
    """Kill a process at work so often, each time beginning anew; `look` after every kill.

    A few kills come soon after it began, many at moments drawn from all of the work.
    """
    seconds = seconds_of(world, work) if kills > 2 else 0.05
    fresh = world.with_name(f"{world.name}-fresh")
    shutil.copytree(world / "index", fresh)
    rng, met = random.Random(0), 0
    for _ in range(10 * kills):
        started = begin(world, work, program=TENDING)
        time.sleep(rng.random() * seconds)
        at_work = not end_by_kill(*started)  # else it had said its last word
        look()
        met += at_work
        if met == kills:
            break
        if not at_work:  # it had ended: there is nothing left to do for the next
            shutil.rmtree(world / "index")
            shutil.copytree(fresh, world / "index")
            shutil.rmtree(world / "moved", ignore_errors=True)
    assert met == kills, f"only {met} of {kills} kills met a process at work"
    finish(*begin(world, work, program=TENDING))  # nobody kills this one


def sentences_of(world):
    with search_parts.reopen(world) as index:
        return sorted(e.key for part in index.tables.sentences.every() for e in part)


@often
def test_killed_while_sentences_come(request, world, kills):
    lines = (world / "sentences.txt").read_text().splitlines()

    def look():
        there = sentences_of(world)
        assert len(set(there)) == len(there)
        assert set(there) <= set(lines)

    kill_often(world, "sentences", kills, look)
    assert sentences_of(world) == sorted(lines)
    record(request, kills=kills)


@often
def test_killed_while_room_is_given_back(request, world, before, kills):
    def look():
        assert answers_of(world) == before

    kill_often(world, "compact", kills, look)
    look()
    with search_parts.reopen(world) as index:
        assert len(index.kept) == len(index) == 40
        assert verify(world / "index" / index.head.store).sound
    assert len(list((world / "index").glob("regions-*"))) == 1
    record(request, kills=kills)


@often
def test_killed_while_an_index_moves(request, world, before, kills):
    def look():
        assert answers_of(world) == before
        try:
            moved = Index.open(world / "moved", source=search_parts.CellSource())
        except InputError:
            return  # not there yet, and nothing takes it for an index
        with moved:
            assert answers(moved) == before

    kill_often(world, "move", kills, look)
    with Index.open(world / "moved", source=search_parts.CellSource()) as index:
        assert answers(index) == before
    record(request, kills=kills)
