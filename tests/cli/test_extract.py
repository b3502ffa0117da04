"""`crossgaze extract`."""

import json
import re

import pytest
import torch
from PIL import Image

from command_line import FAST, run
from crossgaze.vision.backbones.vgg import BLOCKS


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(3):
        Image.new("RGB", (50, 40), (80 * number, 10, 10)).save(folder / f"{number}.png")
    return folder


def test_a_table_and_again_nothing_to_do(capsys, tmp_path, photos):
    (photos / "broken.jpg").write_bytes(b"no")
    code, out, _ = run(capsys, "extract", photos, tmp_path / "s", *FAST, "dtype=float32")
    assert code == 0
    assert re.search(r"extracted now +3 in", out)
    assert "unreadable: broken.jpg" in out
    code, out, _ = run(
        capsys, "extract", photos, tmp_path / "s", "dtype=float32", *FAST, "batch=2", "--json"
    )
    found = json.loads(out)
    assert found["report"]["already"] == 3
    assert found["store"]["dtype"] == "float32"
    assert found["store"]["made_by"]["grid"] == 2


def test_what_changed_and_what_is_gone_is_said(capsys, tmp_path, photos):
    run(capsys, "extract", photos, tmp_path / "s", *FAST)
    (photos / "0.png").unlink()
    Image.new("RGB", (5, 5)).save(photos / "1.png")
    for number in range(7):
        (photos / f"bad{number}.jpg").write_bytes(b"no")
    (photos / "notes.txt").write_text("x")
    out = run(capsys, "extract", photos, tmp_path / "s", *FAST)[1]
    assert "1 photographs have changed since" in out
    assert "1 images of the store are no longer in" in out
    assert "all 7 are listed in" in out
    assert "left out: 1 " in out


def test_a_flag_takes_its_value_as_it_stands(capsys, tmp_path, photos):
    """A blank, a `#`, a colon or a bracket in a path is not YAML."""
    torch.manual_seed(0)
    state, channels, place = {}, 3, 0
    for block in BLOCKS:
        for out in block:
            state[f"features.{place}.weight"] = torch.randn(out, channels, 3, 3) / 30
            state[f"features.{place}.bias"] = torch.zeros(out)
            channels, place = out, place + 2
        place += 1
    weights = tmp_path / "my: weights [a] #2.pth"
    torch.save(state, weights)
    code, out, err = run(
        capsys,
        *("extract", photos, tmp_path / "s", "--backbone", "vgg19", "--weights", weights),
        *("--regions", "grid", "--grid", "1", "--size", "32", "--json"),
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["report"]["config"]["weights"] == str(weights)


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--weights", "no #2.pth", "no #2.pth: no such file"),
        ("--backbone", "[1, 2]", "[1, 2]"),
        ("--device", "null", "device: "),
        ("--device", "warp drive: 9", "device: 'warp drive: 9' cannot be used here"),
        ("--grid", "6.0", "grid: got '6.0', wanted a whole number"),
        ("--grid", "0x7", "grid: got '0x7', wanted a whole number"),
        ("--grid", "true", "grid: got 'true', wanted a whole number"),
    ],
)
def test_a_flag_is_refused_as_it_was_typed(capsys, tmp_path, photos, flag, value, said):
    grid = ["--regions", "grid"]
    grid += ["--backbone", "vgg19"] if flag == "--weights" else []
    code, _, err = run(capsys, "extract", photos, tmp_path / "s", *grid, flag, value)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "override", [["--grid", "big"], ["grid=big"], ["--grid", "99"], ["grit=1"]]
)
def test_an_override_is_not_blamed_on_the_recipe(capsys, tmp_path, photos, override):
    recipe = tmp_path / "sound.yaml"
    recipe.write_text("regions: grid\ngrid: 7\n")
    words = ["extract", photos, tmp_path / "s", "--recipe", recipe]
    code, _, err = run(capsys, *words, *override)
    assert code == 2
    assert "grid" in err
    assert "sound.yaml" not in err
    recipe.write_text("grid: big\n")
    code, _, err = run(capsys, *words)
    assert code == 2
    assert "sound.yaml" in err


def test_a_recipe_and_a_flag_over_it(capsys, tmp_path, photos):
    recipe = tmp_path / "r.yaml"
    recipe.write_text("regions: grid\ngrid: 1\nbackbone: efficientnet-lite0\nsize: 96\n")
    words = ["extract", photos, tmp_path / "s", "--recipe", recipe, "--size", "64", "--json"]
    made_by = json.loads(run(capsys, *words)[1])["store"]["made_by"]
    assert (made_by["grid"], made_by["size"]) == (1, 64)
