"""Disks that are full and folders that may only be read, for every verb that writes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import bad_places
import feature_files
import search_parts
import training_parts
from crossgaze.data.regions.verify import verify

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
CHILD = Path(__file__).with_name("bad_place_child.py")
# Kilobytes of a disk on which each verb begins well and cannot end.
ROOM = {"extract": 24, "import features": 60, "import checkpoint": 24, "train": 48, "index": 60}
VERBS = list(ROOM)


@pytest.fixture
def world(tmp_path):
    """Photographs, features, captions, a checkpoint and two models: what all verbs start from."""
    folder = tmp_path / "world"
    for number in range(30):
        search_parts.make_photo(folder / "photos" / f"{number:02}.png", number)
    search_parts.save_models(folder)
    training_parts.write_world(folder, images=12, dev=4)
    lines = [feature_files.tsv_line(f"{n}", *feature_files.random_image(3, 256)) for n in range(60)]
    (folder / "train.tsv").write_text("".join(lines))
    bad_places.checkpoint(folder / "c.pth.tar", size=64)
    return folder


def told(world, *steps):
    """Do steps in a mount namespace of its own; return what verbs said, one dict a step."""
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, CHILD, world, json.dumps(steps, default=str)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def small_disk(size, place):
    return f"mount -t tmpfs -o size={size}k tmpfs {place}; "


def locked(place):
    return f"mount --bind {place} {place}; mount -o remount,bind,ro {place}"


@bad_places.needs_mounts
def test_a_full_disk_is_said_in_a_line_and_with_room_it_goes_on(world, tmp_path):
    place, saved, whole = tmp_path / "place", tmp_path / "saved", tmp_path / "whole"
    for verb in VERBS:
        (place / verb.replace(" ", "-")).mkdir(parents=True)
    saved.mkdir()
    disks = (small_disk(size, place / verb.replace(" ", "-")) for verb, size in ROOM.items())
    said, again, read = told(
        world,
        ["run", "".join(disks)],
        ["write", place, VERBS],
        ["run", f"cp -a {place}/. {saved}/; cp -a {saved} {whole}"],
        ["write", whole, VERBS],
        ["read", whole, VERBS],
    )
    assert list(said) == VERBS
    for verb, words in said.items():
        assert words is not None, f"{verb} fitted on the small disk"
        assert words[0] == 1, words
        assert "No space left on device" in words[1], words
        assert str(place / verb.replace(" ", "-")) in words[1], words  # which disk is full
        assert "internal error" not in words[1], words
    # What is left is no model, and the stores are whole up to what was acknowledged.
    assert list((saved / "import-checkpoint").iterdir()) == []
    assert not list((saved / "train").rglob("*.partial"))
    begun = [path.parent for path in saved.glob("*/out/head.json")]
    assert begun, "no store had begun before its disk was full"
    assert not [problem for store in begun for problem in verify(store).problems]
    assert again == read == dict.fromkeys(VERBS)


@bad_places.needs_mounts
def test_a_read_only_folder_is_said_in_a_line_and_can_be_read(world, tmp_path):
    place, empty = tmp_path / "place", tmp_path / "empty"
    place.mkdir()
    empty.mkdir()
    new = tmp_path / "new.png"
    search_parts.make_photo(new, "new")  # so that there is something to write
    nothing, first, said, read = told(
        world,
        ["run", locked(empty)],
        ["write", empty, VERBS],
        ["write", place, VERBS],
        ["run", f"cp -a {place} {tmp_path}/kept; mv {new} {world}/photos/; {locked(place)}"],
        ["write", place, VERBS],
        ["read", place, VERBS],
    )
    for words in nothing.values():
        assert words[0] == 2, words
        assert "Read-only file system" in words[1], words
    assert list(empty.iterdir()) == []
    assert first == read == dict.fromkeys(VERBS)
    # Over what is there, too: who would go on is told so, though nothing may be left to do.
    assert list(said) == VERBS
    for verb, words in said.items():
        assert words is not None, verb
        assert words[0] == 2, words
        assert "Read-only file system" in words[1], words
        assert str(place / verb.replace(" ", "-")) in words[1], words
        assert len(words[1].splitlines()) == 1, words
    files = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert files
    for path in files:
        there = place / path.relative_to(tmp_path / "kept")
        assert there.read_bytes() == path.read_bytes(), there


@bad_places.needs_mounts
def test_a_disk_that_fills_up_under_a_model_leaves_the_old_one(world, tmp_path):
    """A model is replaced on a disk with room for one of it, but not for two."""
    place, kept, left = tmp_path / "place", tmp_path / "kept", tmp_path / "left"
    place.mkdir()
    model = ["import checkpoint"]
    size = f"$(($(cat {kept}/import-checkpoint/out/* | wc -c) / 1024 + 24))"
    first, said = told(
        world,
        ["write", place, model],
        ["run", f"cp -a {place} {kept}; {small_disk(size, place)} cp -a {kept}/. {place}/"],
        ["write", place, model],
        ["run", f"cp -a {place} {left}"],
    )
    assert first == {"import checkpoint": None}
    assert "No space left" in said["import checkpoint"][1]
    assert [path.name for path in (left / "import-checkpoint").iterdir()] == ["out"]
    files = [
        {path.name: path.read_bytes() for path in (one / "import-checkpoint" / "out").iterdir()}
        for one in (left, kept)
    ]
    assert files[0] == files[1] != {}
