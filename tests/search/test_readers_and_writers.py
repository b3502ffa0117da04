"""An index that one process writes and others read."""

import random
from datetime import timedelta
from itertools import pairwise

import pytest

import search_parts
from crossgaze.errors import InputError
from crossgaze.files import only_writer
from crossgaze.search.index import Index
from durability_parts import QUERY, answers, kill_somewhere, make_index, make_world, read, start

pytest.importorskip("lancedb", reason="needs crossgaze[search]")


def test_a_file_that_readers_have_mapped_never_shrinks(tmp_path):
    """Reading behind the end of a mapped file kills a process: no writer may cut what was there."""
    world = make_world(tmp_path, photos=6)
    index = make_index(world)
    index.add(world / "photos")
    late = [search_parts.make_photo(world / "photos" / f"late{n}.png", n) for n in range(3)]
    index.add(world / "photos")
    reader = read(world)
    seen = answers(reader)
    assert len(seen) == 9

    def sizes():
        return {p.name: p.stat().st_size for p in (world / "index" / "regions-1").glob("*.bin")}

    before = sizes()
    for photo in late:  # the last batch: nothing refers to it any more
        photo.unlink()
    index.add(world / "photos")
    with index.writing():
        pass
    assert sizes() == before
    search_parts.make_photo(world / "photos" / "another.png", "another")
    index.add(world / "photos")
    assert all(size > before[name] for name, size in sizes().items())
    assert answers(reader) == seen  # what it opened, to the last score


def test_a_reader_whose_files_were_tidied_away_looks_again(tmp_path, monkeypatch):
    """Too many to hold in memory, opened long ago: Lance has removed what it had opened."""
    monkeypatch.setattr("crossgaze.search.lance.KEPT", timedelta(milliseconds=1))
    world = make_world(tmp_path, photos=5)
    index = make_index(world)
    index.add(world / "photos")
    reader = Index.open(world / "index", source=search_parts.CellSource(), exact=0)
    assert len(reader.search(QUERY).hits) == 5
    for number in range(3):
        search_parts.make_photo(world / "photos" / "000.png", f"changed {number}")
        index.add(world / "photos")
        index.compact()
    picture = world / "photos" / "001.png"
    assert len(reader.search(picture).hits) == 5
    assert answers(reader) == answers(index)


def test_searching_while_another_process_writes(tmp_path):
    """Each look finds whole photographs with the scores they end up with, and never fewer."""
    world = make_world(tmp_path, photos=60)
    child = start(world)
    assert child.stdout.readline() == "begun\n"
    assert child.stdout.readline().startswith("done")
    seen = []
    with read(world) as index:
        while child.poll() is None:
            index.refresh()
            seen.append(answers(index))
        index.refresh()
        final = answers(index)
    child.communicate()
    assert len(final) == 60
    assert len({len(one) for one in seen}) > 1
    for before, after in pairwise([*seen, final]):
        assert before.items() <= after.items()


def test_a_second_writer_is_refused_with_the_firsts_pid_and_readers_are_not(tmp_path):
    world = make_world(tmp_path, photos=120)
    child = start(world)
    assert child.stdout.readline() == "begun\n"
    assert child.stdout.readline().startswith("done")
    index = read(world)
    with pytest.raises(InputError, match=rf"being written by another process \(pid {child.pid}\)"):
        index.add(world / "photos")
    assert index.search(QUERY, k=3).hits
    said, _ = child.communicate(timeout=900)
    assert said.splitlines()[-1] == "end 120"
    index.refresh()
    assert len(answers(index)) == 120


def test_the_lock_ends_with_its_process(tmp_path):
    world = make_world(tmp_path, photos=3)
    with only_writer(tmp_path, "this"):
        pass
    rng = random.Random(0)
    kill_somewhere(world, rng)
    index = read(world)
    index.add(world / "photos")
    assert len(index) == 3
