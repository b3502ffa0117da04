"""`crossgaze store`."""

import json
import re

import numpy as np
import pytest
from PIL import Image

from command_line import FAST, run
from crossgaze.data.regions.writer import RegionWriter


@pytest.fixture
def store(tmp_path):
    with RegionWriter(tmp_path / "s", 3, 4, fields=[], made_by={"grid": 9}) as writer:
        writer.append(["a"], np.ones((1, 3, 4)))
    return tmp_path / "s"


def test_info(capsys, store):
    code, out, _ = run(capsys, "store", "info", store)
    assert code == 0
    assert re.search(r"made by: grid +9", out)


def test_verify_tells_sound_from_damaged_from_no_store(capsys, store, tmp_path):
    code, out, _ = run(capsys, "store", "verify", store)
    assert code == 0
    assert "1 images, sound" in out
    (store / "features.bin").write_bytes(b"x" * 24)
    code, out, _ = run(capsys, "store", "verify", store)
    assert code == 1
    assert "features.bin" in out
    code, out, _ = run(capsys, "store", "verify", store, "--json")
    assert code == 1
    assert not json.loads(out)["sound"]
    (store / "head.json").write_text("{")
    code, out, _ = run(capsys, "store", "verify", store)
    assert code == 1
    assert "head.json" in out
    (store / "head.json").unlink()
    code, out, err = run(capsys, "store", "verify", store)
    assert (code, out) == (2, "")
    assert err == f"crossgaze: {store}: is not a region store, it has no head.json\n"


def test_shards_and_merge(capsys, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(3):
        Image.new("RGB", (50, 40), (80 * number, 10, 10)).save(photos / f"{number}.png")
    for number in (1, 2):
        run(capsys, "extract", photos, tmp_path / f"p{number}", *FAST, "--shard", f"{number}/2")
    parts = [tmp_path / "p1", tmp_path / "p2"]
    code, out, _ = run(capsys, "store", "merge", *parts, tmp_path / "all", "--json")
    assert (code, json.loads(out)["images"]) == (0, 3)
    code, _, err = run(capsys, "store", "merge", parts[0], tmp_path / "half")
    assert code == 2
    assert "shard 2/2 is not among the 1 stores" in err


def test_import(capsys, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 2, 4), np.float32))
    code, out, _ = run(capsys, "store", "import", tmp_path / "x.npy", tmp_path / "s")
    assert code == 0
    assert "x.npy" in out


def test_import_says_what_it_cut_and_ignored(capsys, tmp_path):
    (tmp_path / "npz").mkdir()
    for number, regions in enumerate((2, 5, 7)):
        arrays = {"features": np.ones((regions, 4), np.float32), "info": np.zeros(1)}
        np.savez(tmp_path / "npz" / f"{number}.npz", **arrays)
    words = ["store", "import", tmp_path / "npz", tmp_path / "s", "--regions", "3"]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "  cut: 6 regions of 2 images, past the 3 that are kept an image\n" in out
    assert "  ignored: info\n" in out
    found = json.loads(run(capsys, *words, "--json")[1])
    assert found["images"] == 3
    assert (found["report"]["regions_cut"], found["report"]["images_cut"]) == (6, 2)
    assert found["report"]["ignored"] == ["info"]


def test_import_that_took_everything_says_nothing_more(capsys, tmp_path):
    (tmp_path / "npz").mkdir()
    np.savez(tmp_path / "npz" / "a.npz", features=np.ones((2, 4), np.float32))
    code, out, _ = run(capsys, "store", "import", tmp_path / "npz", tmp_path / "s")
    assert code == 0
    assert "cut" not in out
    assert "ignored" not in out


@pytest.mark.parametrize(
    ("option", "said"), [(["--split", "test"], "split: "), (["--regions", "3"], "regions: ")]
)
def test_import_refuses_what_does_not_apply(capsys, tmp_path, option, said):
    np.save(tmp_path / "x.npy", np.ones((3, 2, 4), np.float32))
    code, out, err = run(capsys, "store", "import", tmp_path / "x.npy", tmp_path / "s", *option)
    assert (code, out) == (2, "")
    assert said in err
    assert not (tmp_path / "s").exists()
