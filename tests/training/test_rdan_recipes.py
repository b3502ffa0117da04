"""The recipes of r-DAN load, say how to run them, and train on small questions."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from crossgaze.cli import parse
from crossgaze.config import build, load_recipe
from crossgaze.models.rdan import RDan
from crossgaze.training.config import TrainConfig
from crossgaze.training.prepare import prepare
from crossgaze.training.trainer import Run
from training_parts import write_questions

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "recipes").glob("rdan-*.yaml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_loads_and_its_head_launches_it(path):
    assert load_recipe(TrainConfig, path).task == "answer"
    text = path.read_text()
    commands = re.findall(r"^#   crossgaze (.+)$", text, re.MULTILINE)
    verbs = [parse(words[0], words[1:]) for words in map(shlex.split, commands)]
    assert ROOT / verbs[0].recipe == path
    assert len(verbs) >= 3  # extract, train, evaluate


@pytest.mark.parametrize("changed", ["model.steps=1", "model.steps=3", "model.reads=question"])
def test_the_other_rows_are_overrides(changed):
    found = load_recipe(TrainConfig, ROOT / "recipes" / "rdan-daquar.yaml", [changed])
    key, value = changed.removeprefix("model.").split("=")
    assert str(getattr(found.model_config(8), key)) == value


def test_what_is_trained_on_daquar_can_ship():
    """With regions of the model that ships, its words and answers, in half precision."""
    found = load_recipe(TrainConfig, ROOT / "recipes" / "rdan-daquar.yaml").model_config(1792)
    model = RDan(replace(found, answers=tuple(map(str, range(600)))))
    assert 2 * sum(p.numel() for p in model.parameters()) < 14.9e6  # and answers and card


def test_the_papers_settings():
    """DAN, section 4.1."""
    found = load_recipe(TrainConfig, ROOT / "recipes" / "rdan-vqa.yaml")
    optimiser, model = found.optimiser, found.model_config()
    assert (optimiser.kind, optimiser.rate, optimiser.momentum) == ("sgd", 0.1, 0.9)
    assert (optimiser.weight_decay, optimiser.clip) == (5e-4, 0.1)
    assert (found.epochs, found.batch, found.data.answers) == (60, 128, 2000)
    assert (found.schedule.kind, found.schedule.after, found.schedule.factor) == (
        "drop",
        (30,),
        0.1,
    )
    assert (model.size, model.text.word_size, model.steps, model.dropout) == (512, 512, 2, 0.5)
    assert (model.text.kind, model.text.bidirectional, model.text.join) == ("lstm", True, "sum")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_trains_two_steps(path, tmp_path):
    questions, regions = write_questions(tmp_path)
    tree = yaml.safe_load(path.read_text())
    small = {"questions": str(questions), "regions": str(regions), "min_count": 1}
    tree["data"] |= small | {"single": True, "dev_share": 0.3}
    tree["model"] |= {"size": 16, "text": tree["model"]["text"] | {"word_size": 8}}
    config = build(TrainConfig, tree | {"batch": 12})
    run = Run(config, prepare(config), tmp_path / "run", torch.device("cpu"))
    before = {name: p.detach().clone() for name, p in run.step.named_parameters()}
    run.step.train()
    order = run.data.train.order(config.seed, 0, config.batch)
    for number in range(2):
        told, _ = run.one_step(run.shown(0, number, run.data.train.read(order[number])))
        run.state.step += 1
        assert torch.isfinite(told["loss"])
    changed = {name for name, p in run.step.named_parameters() if not torch.equal(p, before[name])}
    assert len(changed) > 0.8 * len(before)
    run.look_at_dev()
    assert (tmp_path / "run" / "best" / "config.json").is_file()
