"""What batch norms' statistics cost: the model as it was kept, and with training's own."""

import json
import sys

import pytest
import torch
from safetensors.torch import load_file

from crossgaze.models.pretrained import load
from crossgaze.training.trainer import train
from training_parts import settings, write_world

measure_statistics = pytest.importorskip("measure_statistics", reason="needs tools/")


def measure(monkeypatch, world, *runs, out):
    words = ["measure_statistics.py", *map(str, runs), "--data", str(world[0])]
    monkeypatch.setattr(sys, "argv", [*words, "--store", str(world[1]), "--out", str(out)])
    measure_statistics.main()
    return json.loads(out.read_text())


def test_both_are_measured_and_the_kept_ones_are_those_of_training(tmp_path, monkeypatch):
    world = write_world(tmp_path)
    more = {"average": 0.9, "augment": {"regions": 0.5}, "epochs": 1}
    summary = train(settings(world, "vsrn", **more), tmp_path / "run")
    found = measure(monkeypatch, world, tmp_path / "run", out=tmp_path / "found.json")
    by = found["models"]["run"]["statistics"]
    kept = by["measured on whole images"]
    assert kept["rsum"] == pytest.approx(summary["history"][-1]["rsum"], abs=0.01)
    # The model is not spoiled by looking at it.
    best = load_file(tmp_path / "run" / "best" / "model.safetensors")
    own = measure_statistics.gathered(tmp_path / "run")
    assert own.keys() == {key for key in best if "running" in key}
    assert not any(torch.equal(value, best[key]) for key, value in own.items())
    assert load(tmp_path / "run" / "best").origin["epoch"] == 1


def test_a_run_whose_best_epoch_was_not_its_last_is_refused(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "summary.json").write_text('{"best_epoch": 1, "epochs": 2}')
    with pytest.raises(SystemExit, match="its best epoch was 1, not the last"):
        measure(monkeypatch, write_world(tmp_path), tmp_path / "run", out=tmp_path / "found.json")
