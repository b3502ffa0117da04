"""An index without room: a full disk, a folder that may not be written."""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import search_parts
from bad_places import needs_mounts
from crossgaze.data.regions.verify import verify
from crossgaze.errors import InputError
from crossgaze.search.moving import move_index
from durability_parts import CHILD, TENDING, answers, make_world

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
SERVING = Path(__file__).with_name("serving_child.py")
engines = pytest.mark.parametrize("engine", ["lance", "milvus"])
WORDS = ("red", "green", "blue", "dog", "cat", "runs", "snow")


def make_index(world, engine):
    """Make an index of 30 photographs, some of whose regions nothing refers to."""
    if engine == "milvus":
        pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    make_world(world, photos=30)
    with search_parts.create(world, engine=engine) as index:
        index.add(world / "photos")
        for number in range(0, 30, 2):
            search_parts.make_photo(world / "photos" / f"{number:03}.png", f"new {number}")
        index.add(world / "photos")
        return answers(index)


def on_a_small_disk(place, room, *command, says="failed 1 "):
    """Run a program while a folder lies on a disk of its own, with so many kilobytes to spare.

    Returns:
        The lines that it printed. The folder holds what the disk did.
    """
    saved = place.with_name("saved")
    saved.mkdir()
    pages = sum(-(-path.stat().st_size // 4096) for path in place.rglob("*") if path.is_file())
    words = " ".join(map(str, (sys.executable, *command)))
    script = (
        f"cp -a {place}/. {saved}/ && mount -t tmpfs -o size={4 * pages + room}k tmpfs {place} && "
        f"cp -a {saved}/. {place}/ && {words}; rm -rf {saved} && cp -a {place} {saved}"
    )
    done = subprocess.run(
        ["unshare", "-rm", "bash", "-c", script], capture_output=True, text=True, check=False
    )
    shutil.rmtree(place)
    saved.rename(place)
    lines = done.stdout.splitlines()
    assert lines[-1].startswith(says), (done.stdout, done.stderr)
    assert "No space left on device" in lines[-1]
    assert f"{place}/" in lines[-1]  # which disk is full
    return lines


@needs_mounts
@engines
def test_a_full_disk_is_said_and_the_old_index_is_intact(tmp_path, engine):
    """In a mount of its own, the disk fills up; what was acknowledged is there afterwards."""
    world = tmp_path / "world"
    before = make_index(world, engine)
    for number in range(300):
        search_parts.make_photo(world / "photos" / f"more{number:03}.png", f"more {number}")
    lines = on_a_small_disk(world / "index", 60, CHILD, world)
    index = search_parts.reopen(world)
    found = answers(index)
    assert before.items() <= found.items()
    acknowledged = [line for line in lines if line.startswith("done")]
    assert len(found) >= 30 + (int(acknowledged[-1].split()[1]) if acknowledged else 0)
    index.add(world / "photos")  # with room again it goes on
    assert len(answers(index)) == 330


@needs_mounts
@engines
def test_a_disk_that_fills_up_while_sentences_come(tmp_path, engine):
    world = tmp_path / "world"
    before = make_index(world, engine)
    wanted = [f"a {' '.join(chosen)}" for chosen in itertools.product(WORDS, repeat=3)]
    (world / "sentences.txt").write_text("\n".join(wanted) + "\n")
    on_a_small_disk(world / "index", 32, TENDING, world, "sentences")
    with search_parts.reopen(world) as index:
        assert answers(index) == before
        index.add_sentences(world / "sentences.txt")
        there = [entry.key for part in index.tables.sentences.every() for entry in part]
        assert sorted(there) == sorted(wanted)


@needs_mounts
@engines
def test_a_disk_that_fills_up_while_room_is_given_back(tmp_path, engine):
    world = tmp_path / "world"
    before = make_index(world, engine)
    on_a_small_disk(world / "index", 20, TENDING, world, "compact")
    with search_parts.reopen(world) as index:
        assert answers(index) == before
        assert index.compact() == 15
        assert answers(index) == before
        assert verify(world / "index" / index.head.store).sound


@needs_mounts
@engines
@pytest.mark.parametrize("room", [8, 60])
def test_a_disk_that_is_too_small_for_a_copy(tmp_path, engine, room):
    world = tmp_path / "world"
    before = make_index(world, "lance")
    if engine == "milvus":
        pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    moved = world / "moved"
    moved.mkdir()
    on_a_small_disk(moved, room, TENDING, world, "move", engine)
    with search_parts.reopen(world) as index:
        assert answers(index) == before
    with pytest.raises(InputError, match="is not an index"):
        search_parts.Index.open(moved)
    move_index(world / "index", moved, engine)  # with room again, over what is left of it
    with search_parts.Index.open(moved, source=search_parts.CellSource()) as index:
        assert answers(index) == before


@needs_mounts
def test_a_disk_that_fills_up_while_serve_adds_a_folder(tmp_path):
    """The page is told, the service goes on answering, and what was acknowledged is there."""
    pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
    world = tmp_path / "world"
    before = make_index(world, "lance")
    for number in range(300):
        search_parts.make_photo(world / "photos" / f"more{number:03}.png", f"more {number}")
    lines = on_a_small_disk(world / "index", 60, SERVING, world, says="failed ")
    assert lines[:-1] == ["200", "200"]
    with search_parts.reopen(world) as index:
        assert before.items() <= answers(index).items()
        index.add(world / "photos")  # with room again it goes on
        assert len(answers(index)) == 330


@needs_mounts
def test_serve_says_that_an_index_may_only_be_read_and_answers(tmp_path):
    pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
    world = tmp_path / "world"
    before = make_index(world, "lance")
    search_parts.make_photo(world / "photos" / "new.png", "new")
    place = world / "index"
    script = f'mount --bind {place} {place} && mount -o remount,bind,ro {place} && exec "$@"'
    words = ["unshare", "-rm", "bash", "-c", script, "bash", sys.executable, SERVING, world]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    first, second, said = done.stdout.splitlines()
    assert (first, second) == ("200", "200")
    assert said.startswith("failed ")
    assert "Read-only file system" in said
    assert f"{place}/" in said
    with search_parts.reopen(world) as index:
        assert answers(index) == before


def test_a_folder_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    world = make_world(tmp_path, photos=2)
    index = search_parts.create(world)
    index.add(world / "photos")
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    search_parts.make_photo(world / "photos" / "new.png", "new")
    for folder in [world / "index", *(p for p in (world / "index").rglob("*") if p.is_dir())]:
        folder.chmod(0o500)
    with pytest.raises((OSError, InputError), match=r"Permission denied|cannot"):
        index.add(world / "photos")
