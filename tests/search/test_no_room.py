"""An index without room: a full disk, a folder that may not be written."""

import os
import shutil
import subprocess
import sys

import pytest

import search_parts
from bad_places import needs_mounts
from crossgaze.errors import InputError
from durability_parts import CHILD, answers, make_world

pytest.importorskip("lancedb", reason="needs crossgaze[search]")


@needs_mounts
def test_a_full_disk_is_said_and_the_old_index_is_intact(tmp_path):
    """In a mount of its own, the disk fills up; what was acknowledged is there afterwards."""
    world = make_world(tmp_path / "world", photos=30)
    index = search_parts.create(world)
    index.add(world / "photos")
    before = answers(index)
    index.close()
    for number in range(300):
        search_parts.make_photo(world / "photos" / f"more{number:03}.png", f"more {number}")
    size = sum(p.stat().st_size for p in (world / "index").rglob("*") if p.is_file())
    saved = tmp_path / "saved"
    saved.mkdir()
    # Only the index lies on the small disk: its files with a little room, then copied out.
    script = (
        f"cp -a {world}/index/. {saved}/ && mount -t tmpfs -o size={size // 1000 + 220}k tmpfs "
        f"{world}/index && cp -a {saved}/. {world}/index/ && {sys.executable} {CHILD} {world}; "
        f"rm -rf {saved}/* && cp -a {world}/index/. {saved}/"
    )
    done = subprocess.run(
        ["unshare", "-rm", "bash", "-c", script], capture_output=True, text=True, check=False
    )
    last = done.stdout.splitlines()[-1]
    assert last.startswith("failed 1 "), (done.stdout, done.stderr)
    assert "No space left" in last
    shutil.rmtree(world / "index")
    shutil.copytree(saved, world / "index")
    index = search_parts.reopen(world)
    found = answers(index)
    assert before.items() <= found.items()
    acknowledged = [line for line in done.stdout.splitlines() if line.startswith("done")]
    assert len(found) >= 30 + (int(acknowledged[-1].split()[1]) if acknowledged else 0)
    index.add(world / "photos")  # with room again it goes on
    assert len(answers(index)) == 330


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
