"""An index whose processes are killed and stopped."""

import json
import random
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import killing
import killing_work
import search_parts
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.verify import verify
from crossgaze.search.index import Index
from crossgaze.search.planning import digest_of
from durability_parts import QUERY, answers, begin, end_by_kill, finish, make_world
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
    finish(*begin(calm, engine))
    change_some(calm / "photos", random.Random(0), "calm")
    started = begin(calm, engine)
    began = time.monotonic()
    while not started[1].recv().startswith("end"):
        pass
    taken = time.monotonic() - began
    finish(*started)
    return taken


def kill_and_hear(world, rng, engine, seconds, *, wait):
    """Kill the child somewhere of so many seconds, if asked only after its first batch.

    Returns:
        What it acknowledged, digest by path, and whether the kill met it at work.
    """
    process, told = begin(world, engine)
    lines = []
    with suppress(EOFError):  # it ended with nothing to do
        while wait and not any(line.startswith("batch ") for line in lines):
            lines.append(told.recv())
    time.sleep(rng.random() * seconds)
    lines += end_by_kill(process, told)
    assert process.exitcode in (-signal.SIGKILL, 0)
    heard = {}
    for line in lines:
        if line.startswith("batch "):
            heard |= json.loads(line.removeprefix("batch "))
    return heard, process.exitcode != 0 and not any(line.startswith("end") for line in lines)


def require_acknowledged(index, acknowledged):
    """Every photograph that was ever acknowledged and is still there is in the index.

    With the content that was acknowledged, unless that has changed since.
    """
    have = {}
    for part in index.tables.photos.every():
        for entry in part:
            have.setdefault(entry.key, set()).add(entry.digest)
    for path, digest in acknowledged.items():
        if Path(path).exists():
            assert path in have
            if digest_of(Path(path).read_bytes()) == digest:
                assert digest in have[path]


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
    # Many kills are drawn from all of a round; a few come earlier with each that came too late.
    few = kills <= 2
    seconds, met = 0.8 if few else seconds_of_a_round(world, engine), 0
    acknowledged = {}
    for number in range(10 * kills):
        heard, at_work = kill_and_hear(world, rng, engine, seconds, wait=number % 2 == 1)
        acknowledged |= heard
        met += at_work
        if few and not at_work:
            seconds /= 2
        index = search_parts.reopen(world)
        have = {path for part in index.tables.photos.every() for path in [e.key for e in part]}
        photos = {str(path) for path in (world / "photos").iterdir()}
        require_acknowledged(index, acknowledged)
        if number == 0:
            assert not have - photos  # later, what is gone from the folder may still be there
        if have:  # a reader finds all of it, regions and all, before anybody has repaired it
            assert set(answers(index)) == have
        index.close()
        change_some(world / "photos", rng, number)
        if met == kills:
            break
    assert acknowledged, "nothing was acknowledged before a kill: there was nothing to lose"
    assert met == kills, f"only {met} of {kills} kills met a process at work"
    index = search_parts.reopen(world)
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


def test_what_is_compared_after_kills_tells_one_vector_from_another(tmp_path):
    world = make_world(tmp_path, photos=3)
    index = search_parts.create(world)
    index.add(world / "photos")
    before, photos = answers(index), index.tables.photos
    entries, rows = photos.get([1, 2]), photos.vectors([1, 2])
    photos.delete([1, 2])
    photos.add(entries, rows + np.float32(1e-6))
    assert answers(index) == before
    photos.delete([1, 2])
    photos.add(entries, rows[::-1])
    after = answers(index)
    assert after.keys() == before.keys()
    assert [path for path in after if after[path] == before[path]] == [
        str(world / "photos/002.png")
    ]


STEPS = {
    "regions only": ("crossgaze.search.lance.LanceEngine", "add"),
    "both entries": ("crossgaze.search.lance.LanceEngine", "delete"),
}


@pytest.mark.parametrize("step", STEPS)
def test_ended_between_the_steps_of_a_batch(tmp_path, monkeypatch, step):
    """As if the power went: no clean-up runs, what is on disk stays as it is."""
    world = make_world(tmp_path, photos=6)
    index = search_parts.create(world)
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
    reader = search_parts.reopen(world)
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
    index = search_parts.create(world)
    index.add(world / "photos")
    given = {entry.uid: entry.key for part in index.tables.photos.every() for entry in part}
    for step in range(3):
        last = max(index.tables.photos.every(), key=len)[-1]
        Path(last.key).unlink()
        index.add(world / "photos")
        index.compact()
        if step == 1:
            index.close()
            index = search_parts.reopen(world)
        search_parts.make_photo(world / "photos" / f"more{step}.png", f"more {step}")
        index.add(world / "photos")
        for part in index.tables.photos.every():
            for entry in part:
                assert given.setdefault(entry.uid, entry.key) == entry.key
    assert max(given) == 7


def test_stopped_by_hand_just_after_the_commit(tmp_path, monkeypatch):
    """Ctrl-C may come when a batch is in the database already: then its regions stay."""
    world = make_world(tmp_path, photos=5)
    index = search_parts.create(world)
    from crossgaze.search.lance import LanceEngine

    add = LanceEngine.add

    def commit_and_stop(engine, entries, rows):
        add(engine, entries, rows)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LanceEngine, "add", commit_and_stop)
        with pytest.raises(KeyboardInterrupt):
            index.add(world / "photos")
    assert len(answers(search_parts.reopen(world))) == 5
    assert index.add(world / "photos").unchanged == 5


def test_a_batch_that_the_database_refuses_gives_its_room_back(tmp_path, monkeypatch):
    world = make_world(tmp_path, photos=5)
    index = search_parts.create(world)
    from crossgaze.search.lance import LanceEngine

    def refuse(engine, entries, rows):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(LanceEngine, "add", refuse)
        with pytest.raises(OSError, match="No space left"):
            index.add(world / "photos")
    assert len(RegionStore(world / "index" / "regions-1")) == 0
    assert index.add(world / "photos").added == 5


def test_a_search_that_is_killed_harms_nothing(tmp_path):
    world = make_world(tmp_path, photos=8)
    index = search_parts.create(world)
    index.add(world / "photos")
    before = answers(index)
    files = {p: p.read_bytes() for p in (world / "index").rglob("*") if p.is_file()}
    rng = random.Random(0)
    for _ in range(3):
        process, told = killing.start(killing_work.search, world, QUERY)
        assert told.recv() == "searches"
        time.sleep(rng.random() / 4)
        process.kill()
        process.join()
        told.close()
        assert process.exitcode == -signal.SIGKILL
        assert {p: p.read_bytes() for p in (world / "index").rglob("*") if p.is_file()} == files
    assert answers(search_parts.reopen(world)) == before
