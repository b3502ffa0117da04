"""What a cold and a warm start are compared by, read from a run's log."""

import json

from crossgaze.config import load_recipe
from crossgaze.training.config import TrainConfig
from measure_warm_start import ROOT, ROWS, SMALL, STARTS, read_log


def test_each_epoch_has_its_last_steps_and_dev(tmp_path):
    def step(number, ranking, spread):
        return {"kind": "step", "step": number, "ranking": ranking, "spread": spread, "rate": 1}

    lines = [
        {"kind": "start"},
        step(15, 60.0, 0.1),
        step(30, 55.0, 0.2),
        {"kind": "epoch", "dev": {"rsum": 12.5}},
        step(45, 51.2, 0.001),
        {"kind": "epoch", "dev": {"rsum": 3.0}},
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert read_log(log) == [
        {"step": 30, "ranking": 55.0, "spread": 0.2, "dev": {"rsum": 12.5}},
        {"step": 45, "ranking": 51.2, "spread": 0.001, "dev": {"rsum": 3.0}},
    ]


def test_both_starts_of_every_row_differ_in_the_warm_steps_alone():
    for recipe, *settings in ROWS.values():
        path = ROOT / "recipes" / "flickr8k" / f"{recipe}.yaml"
        cold, warm = (
            load_recipe(TrainConfig, path, overrides=[*settings, *SMALL, start])
            for start in STARTS.values()
        )
        assert (cold.loss.warm_steps, warm.loss.warm_steps) == (0, None)
        assert cold.model["text"]["kind"] == "gru"
        assert (cold.model, cold.optimiser, cold.epochs) == (warm.model, warm.optimiser, 2)
