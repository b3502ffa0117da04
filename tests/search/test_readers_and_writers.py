"""An index that one process writes and others read."""

import signal
from datetime import timedelta
from itertools import pairwise

import pytest

import search_parts
from crossgaze.errors import InputError
from crossgaze.search.index import Index
from durability_parts import (
    QUERY,
    answers,
    begin,
    end_by_kill,
    finish,
    make_world,
    until_a_batch,
)

pytest.importorskip("lancedb", reason="needs crossgaze[search]")


def test_a_file_that_readers_have_mapped_never_shrinks(tmp_path):
    """Reading behind the end of a mapped file kills a process: no writer may cut what was there."""
    world = make_world(tmp_path, photos=6)
    index = search_parts.create(world)
    index.add(world / "photos")
    late = [search_parts.make_photo(world / "photos" / f"late{n}.png", n) for n in range(3)]
    index.add(world / "photos")
    reader = search_parts.reopen(world)
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
    index = search_parts.create(world)
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
    process, told = begin(world)
    until_a_batch(told)
    seen = []
    with search_parts.reopen(world) as index:
        while process.is_alive():
            index.refresh()
            seen.append(answers(index))
        index.refresh()
        final = answers(index)
    assert finish(process, told)[-1] == "end 60"
    assert len(final) == 60
    assert len({len(one) for one in seen}) > 1
    for before, after in pairwise([*seen, final]):
        assert before.items() <= after.items()


def test_a_second_writer_is_refused_with_the_firsts_pid_and_readers_are_not(tmp_path):
    world = make_world(tmp_path, photos=120)
    process, told = begin(world)
    until_a_batch(told)
    index = search_parts.reopen(world)
    held = rf"being written by another process \(pid {process.pid}\)"
    with pytest.raises(InputError, match=held):
        index.add(world / "photos")
    assert index.search(QUERY, k=3).hits
    assert finish(process, told)[-1] == "end 120"
    index.refresh()
    assert len(answers(index)) == 120


def test_the_lock_ends_with_its_process(tmp_path):
    """Killed while it holds the lock: the next one writes, and waits for nobody."""
    world = make_world(tmp_path, photos=120)
    process, told = begin(world)
    until_a_batch(told)  # it has the lock, and much is left
    end_by_kill(process, told)
    assert process.exitcode == -signal.SIGKILL
    index = search_parts.reopen(world)
    assert 0 < len(index) < 120
    index.add(world / "photos")
    assert len(index) == 120
