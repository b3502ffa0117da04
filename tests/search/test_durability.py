"""An index whose processes are killed and stopped."""

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import search_parts
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.verify import verify
from crossgaze.search.index import Index
from durability_parts import (
    CHILD,
    QUERY,
    answers,
    begin,
    kill_somewhere,
    make_index,
    make_world,
    read,
)
from reliability_parts import record

pytest.importorskip("lancedb", reason="needs crossgaze[search]")


def change_some(photos, rng, number):
    """Let a folder go on living: ten photographs change, four go, four come."""
    names = sorted(photos.iterdir())
    chosen = rng.sample(names, 14)
    for name in chosen[:10]:
        search_parts.make_photo(name, f"changed {number} {name.name}")
    for name in chosen[10:]:
        name.unlink()
    for more in range(4):
        search_parts.make_photo(photos / f"new{number}-{more}.png", f"new {number} {more}")


def seconds_of_a_round(world, engine):
    """Return how long the child takes for what changes in a round when nobody kills it."""
    calm = world.with_name(f"{world.name}-calm")
    shutil.copytree(world, calm)
    begin(calm, engine).communicate()
    change_some(calm / "photos", random.Random(0), "calm")
    child = begin(calm, engine)
    began = time.monotonic()
    for line in child.stdout:
        if line.startswith("end"):
            break
    taken = time.monotonic() - began
    child.communicate()
    assert child.returncode == 0
    return taken


def survive(world, kills, engine, seed):
    """Kill a process again and again while photographs change; nothing acknowledged is lost.

    Args:
        world: with photographs and models.
        kills: that met the process at work; one that had come to its end does not count.
        engine: of the index.
        seed: of the moments and the changes.

    Returns:
        What the index says of every photograph in the end, and what one says that nobody killed.
    """
    rng = random.Random(seed)
    seconds, met = seconds_of_a_round(world, engine), 0
    for number in range(10 * kills):
        acknowledged, at_work = kill_somewhere(world, rng, engine, seconds=seconds)
        met += at_work
        index = read(world)
        have = {path for part in index.tables.photos.every() for path in [e.key for e in part]}
        photos = {str(path) for path in (world / "photos").iterdir()}
        if number == 0:
            assert len(have) >= acknowledged
            assert not have - photos  # later, what is gone from the folder may still be there
        if have:  # a reader finds all of it, regions and all, before anybody has repaired it
            assert set(answers(index)) == have
        index.close()
        change_some(world / "photos", rng, number)
        if met == kills:
            break
    assert met == kills, f"only {met} of {kills} kills met a process at work"
    index = read(world)
    index.add(world / "photos")
    photos = {str(path) for path in (world / "photos").iterdir()}
    found = answers(index)
    assert set(found) == photos
    assert verify(world / "index" / index.head.store).sound
    index.close()
    (world / "calm").mkdir()
    calm = Index.create(
        world / "calm",
        embedder=world / "embedder",
        reranker=world / "reranker",
        source=search_parts.CellSource(),
    )
    calm.add(world / "photos")
    return found, answers(calm)


def test_killed_a_few_times(tmp_path):
    found, calm = survive(make_world(tmp_path), 2, "lance", seed=1)
    assert found == calm


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "kills"), [("lance", 50), ("milvus", 50)])
def test_killed_many_times(request, tmp_path, engine, kills):
    if engine == "milvus":
        pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    found, calm = survive(make_world(tmp_path), kills, engine, seed=2)
    assert found == calm
    record(request, kills=kills)


STEPS = {
    "regions only": ("crossgaze.search.lance.LanceEngine", "add"),
    "both entries": ("crossgaze.search.lance.LanceEngine", "delete"),
}


@pytest.mark.parametrize("step", STEPS)
def test_ended_between_the_steps_of_a_batch(tmp_path, monkeypatch, step):
    """As if the power went: no clean-up runs, what is on disk stays as it is."""
    world = make_world(tmp_path, photos=6)
    index = Index.create(
        world / "index",
        embedder=world / "embedder",
        reranker=world / "reranker",
        source=search_parts.CellSource(),
    )
    index.add(world / "photos")
    before = answers(index)
    search_parts.make_photo(world / "photos" / "000.png", "changed")
    search_parts.make_photo(world / "photos" / "zzz.png", "new")
    from crossgaze.data.regions.writer import RegionWriter

    class Gone(BaseException):
        pass

    def vanish(*args):
        if step == "both entries" and not len(args[1]):
            return
        raise Gone

    monkeypatch.setattr(f"{STEPS[step][0]}.{STEPS[step][1]}", vanish)
    monkeypatch.setattr(RegionWriter, "cut", lambda *args: None)
    with pytest.raises(Gone):
        index.add(world / "photos")
    monkeypatch.undo()
    assert len(RegionStore(world / "index" / "regions-1")) == 8  # the batch's regions are there
    reader = read(world)
    seen = answers(reader)
    if step == "regions only":
        assert seen == before
        with reader.writing():
            pass
        assert answers(reader) == before
        assert reader.describe()["unused_regions"] == 2  # nothing refers to them
    else:
        assert set(seen) == {str(path) for path in (world / "photos").iterdir()}
        assert len(reader) == 8
        with reader.writing():
            pass
        assert len(reader) == 7  # the older of the two is gone
        assert answers(reader) == seen
    report = reader.add(world / "photos")
    assert (report.added, report.changed) == ((1, 1) if step == "regions only" else (0, 0))
    found = answers(reader)
    assert set(found) == {str(path) for path in (world / "photos").iterdir()}
    assert reader.compact() == (3 if step == "regions only" else 1)
    assert answers(reader) == found


def test_a_number_is_never_given_to_another_photograph(tmp_path):
    world = make_world(tmp_path, photos=4)
    index = make_index(world)
    index.add(world / "photos")
    given = {entry.uid: entry.key for part in index.tables.photos.every() for entry in part}
    for step in range(3):
        last = max(index.tables.photos.every(), key=len)[-1]
        Path(last.key).unlink()
        index.add(world / "photos")
        index.compact()
        if step == 1:
            index.close()
            index = read(world)
        search_parts.make_photo(world / "photos" / f"more{step}.png", f"more {step}")
        index.add(world / "photos")
        for part in index.tables.photos.every():
            for entry in part:
                assert given.setdefault(entry.uid, entry.key) == entry.key
    assert max(given) == 7


def test_stopped_by_hand_just_after_the_commit(tmp_path, monkeypatch):
    """Ctrl-C may come when a batch is in the database already: then its regions stay."""
    world = make_world(tmp_path, photos=5)
    index = make_index(world)
    from crossgaze.search.lance import LanceEngine

    add = LanceEngine.add

    def commit_and_stop(engine, entries, rows):
        add(engine, entries, rows)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LanceEngine, "add", commit_and_stop)
        with pytest.raises(KeyboardInterrupt):
            index.add(world / "photos")
    assert len(answers(read(world))) == 5
    assert index.add(world / "photos").unchanged == 5


def test_a_batch_that_the_database_refuses_gives_its_room_back(tmp_path, monkeypatch):
    world = make_world(tmp_path, photos=5)
    index = make_index(world)
    from crossgaze.search.lance import LanceEngine

    def refuse(engine, entries, rows):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(LanceEngine, "add", refuse)
        with pytest.raises(OSError, match="No space left"):
            index.add(world / "photos")
    assert len(RegionStore(world / "index" / "regions-1")) == 0
    assert index.add(world / "photos").added == 5


SEARCHING = """
import sys
import search_parts
from crossgaze.search.index import Index
index = Index.open(sys.argv[1], source=search_parts.CellSource())
print("begun", flush=True)
while True:
    index.refresh()
    index.search(sys.argv[2], k=5, exhaustive=True)
    index.search(sys.argv[2], k=5)
"""


def test_a_search_that_is_killed_harms_nothing(tmp_path):
    world = make_world(tmp_path, photos=8)
    index = Index.create(
        world / "index",
        embedder=world / "embedder",
        reranker=world / "reranker",
        source=search_parts.CellSource(),
    )
    index.add(world / "photos")
    before = answers(index)
    files = {p: p.read_bytes() for p in (world / "index").rglob("*") if p.is_file()}
    rng = random.Random(0)
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", SEARCHING, str(world / "index"), QUERY],
            stdout=subprocess.PIPE,
            text=True,
            cwd=CHILD.parents[1],
        )
        assert child.stdout.readline() == "begun\n"
        time.sleep(rng.random() / 4)
        assert child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        assert {p: p.read_bytes() for p in (world / "index").rglob("*") if p.is_file()} == files
    assert answers(read(world)) == before
