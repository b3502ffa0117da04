"""Disks that are full and folders that may only be read, for every verb that writes."""

import json
import shutil
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


def told(script):
    """Run a script in a mount namespace of its own; return what each verb said."""
    done = subprocess.run(
        ["unshare", "-rm", "bash", "-ec", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


@bad_places.needs_mounts
def test_a_full_disk_is_said_in_a_line_and_with_room_it_goes_on(world, tmp_path):
    place, saved = tmp_path / "place", tmp_path / "saved"
    for verb in VERBS:
        (place / verb.replace(" ", "-")).mkdir(parents=True)
    saved.mkdir()
    mounts = "".join(
        f"mount -t tmpfs -o size={size}k tmpfs {place / verb.replace(' ', '-')}; "
        for verb, size in ROOM.items()
    )
    child = f"{sys.executable} {CHILD} {world}"
    said = told(f"{mounts} {child} {place}; cp -a {place}/. {saved}/")
    assert list(said) == VERBS
    for verb, words in said.items():
        assert words is not None, f"{verb} fitted on the small disk"
        assert words[0] == 1, words
        assert "No space left on device" in words[1], words
        assert "internal error" not in words[1], words
    # What is left is no model, and the stores are whole up to what was acknowledged.
    assert list((saved / "import-checkpoint").iterdir()) == []
    assert not list((saved / "train").rglob("*.partial"))
    for name in ("extract", "import-features"):
        if (saved / name / "out" / "head.json").exists():
            assert not verify(saved / name / "out").problems
    assert told(f"{child} {saved}") == dict.fromkeys(VERBS)
    assert told(f"{child} {saved} read") == dict.fromkeys(VERBS)


@bad_places.needs_mounts
def test_a_read_only_folder_is_said_in_a_line_and_can_be_read(world, tmp_path):
    place, empty = tmp_path / "place", tmp_path / "empty"
    place.mkdir()
    empty.mkdir()
    locked = "mount --bind {0} {0}; mount -o remount,bind,ro {0}; "
    child = f"{sys.executable} {CHILD} {world}"
    for words in told(locked.format(empty) + f"{child} {empty}").values():
        assert words[0] == 2, words
        assert "Read-only file system" in words[1], words
    assert list(empty.iterdir()) == []
    assert told(f"{child} {place}") == dict.fromkeys(VERBS)
    search_parts.make_photo(world / "photos" / "new.png", "new")  # there is something to write
    files = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    said = told(locked.format(place) + f"{child} {place}")
    for verb in ("extract", "import checkpoint", "index"):
        assert said[verb] is not None, verb
        assert len(said[verb][1].splitlines()) == 1, said[verb]
        assert "internal error" not in said[verb][1], said[verb]
    assert told(locked.format(place) + f"{child} {place} read") == dict.fromkeys(VERBS)
    assert {path: path.read_bytes() for path in files} == files


@bad_places.needs_mounts
def test_a_disk_that_fills_up_under_a_model_leaves_the_old_one(world, tmp_path):
    """A model is replaced on a disk with room for one of it, but not for two."""
    place = tmp_path / "place"
    child = f"{sys.executable} {CHILD} {world}"
    place.mkdir()
    assert told(f"{child} {place}")["import checkpoint"] is None
    model = place / "import-checkpoint" / "out"
    old = {path.name: path.read_bytes() for path in model.iterdir()}
    kept = tmp_path / "kept"
    shutil.copytree(model, kept / "import-checkpoint" / "out")
    size = sum(map(len, old.values())) // 1024 + 24
    said = told(
        f"mount -t tmpfs -o size={size}k tmpfs {place}; cp -a {kept}/. {place}/; {child} {place}; "
        f"rm -rf {kept}; mkdir {kept}; cp -a {place}/import-checkpoint {kept}/"
    )
    assert "No space left" in said["import checkpoint"][1]
    assert [path.name for path in (kept / "import-checkpoint").iterdir()] == ["out"]
    left = {p.name: p.read_bytes() for p in (kept / "import-checkpoint" / "out").iterdir()}
    assert left == old
