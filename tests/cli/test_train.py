"""`crossgaze train` as a person meets it."""

import json

import pytest
import yaml

from command_line import run
from training_parts import tree, write_world


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(tree(write_world(tmp_path))))
    return path


def test_a_recipe_is_trained_into_a_folder_of_its_name(capsys, recipe, tmp_path):
    code, out, err = run(capsys, "train", recipe, "epochs=1", "seed=4")
    assert (code, err) == (0, "")
    assert "R@1" in out
    assert "sum of recalls" in out
    folder = tmp_path / "runs" / "tiny"
    names = {"config.yaml", "log.jsonl", "checkpoint.pt", "best", "summary.json", "curves.png"}
    assert names <= {path.name for path in folder.iterdir()}
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["command"] == f"crossgaze train {recipe} epochs=1 seed=4"
    code, again, _ = run(capsys, "train", recipe, "epochs=1", "seed=4", "--json")
    assert json.loads(again) == summary  # it has ended, and says so again
    code, _, err = run(capsys, "train", recipe, "epochs=2", "seed=4")
    assert code == 2
    assert "is a run with other settings: epochs is 1, not 2" in err


def test_a_plan_is_printed_and_nothing_written(capsys, recipe, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    code, out, _ = run(capsys, "train", recipe, "--dry-run")
    assert code == 0
    assert "48 captions of 24 images" in out
    assert "4 an epoch, 8 in 2 epochs" in out
    assert "runs/tiny (new)" in out
    code, out, _ = run(capsys, "train", recipe, "--dry-run", "--json", "loss.kind=violations")
    plan = json.loads(out)
    assert plan["loss"] == "violations, margin 0.2"
    assert plan["regions"] == "4 x 12 an image"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.yaml"], "nowhere.yaml: no such file, wanted a YAML recipe"),
        (["tiny.yaml", "modell.size=3"], "unknown key 'modell' (did you mean 'model'?)"),
        (["tiny.yaml", "model.sise=3"], "model: unknown key 'sise' (did you mean 'size'?)"),
        (["tiny.yaml", "model.region_width=9"], "model.region_width: got 9, the region store has"),
        (["tiny.yaml", "data.regions=nowhere"], "nowhere: no such folder, wanted a region store"),
        (["tiny.yaml", "data.dev=test"], "no split 'test'"),
        (["tiny.yaml", "--device", "gpu"], "device: 'gpu' cannot be used here"),
    ],
)
def test_bad_input_is_one_line_and_code_two(capsys, recipe, words, message):
    code, _, err = run(capsys, "train", *words)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
