"""Every training recipe loads, says how to run it, and trains two steps on small data."""

import re
import shlex
from pathlib import Path

import pytest
import torch
import yaml

from crossgaze.cli import parse
from crossgaze.config import build, load_recipe
from crossgaze.training.config import TrainConfig
from crossgaze.training.prepare import prepare
from crossgaze.training.trainer import Run
from model_parts import save_bert
from training_parts import write_world

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*/*.yaml"))
# Behind these a batch norm takes the mean away, a softmax what all have in common: a gradient of 0,
# but for rounding.
WITHOUT = re.compile(r"Rs_GCN_\d+\.W\.0\.bias|weights\.score\.bias")
SMALLER = {"size": 16, "heads": 2, "filters": 4, "word_size": 8, "hidden": 8}


def shrunk(tree):
    """Return a recipe's keys with small sizes and everything else as it is."""
    return {
        key: shrunk(value) if isinstance(value, dict) else SMALLER.get(key, value)
        for key, value in tree.items()
    }


def name(path):
    return f"{path.parent.name}/{path.stem}"


def test_the_rows_of_the_experiment_are_there():
    found = {path.stem for path in RECIPES if path.parent.name == "flickr8k"}
    assert found >= {
        *("vse", "sum-max-t-i", "scan-t-i-avg", "scan-i-t-avg", "scan-i-t-lse", "bfan", "m-dan"),
        *("scan-t-i-avg-all-negatives", "vsrn", "vsrn-mean-pool", "vsrn-no-captions"),
        *("mmca", "mmca-self", "scan-ccr", "scan-ccs", "scan-ccr-ccs"),
        *("bfan-ccr", "bfan-ccs", "bfan-ccr-ccs", "vse-whole-gru"),
    }


@pytest.mark.parametrize("path", RECIPES, ids=name)
def test_a_recipe_loads_and_its_head_launches_it(path):
    load_recipe(TrainConfig, path)
    # Those of the papers have more commands below, see test_paper_recipes.
    command, *_ = re.findall(r"^#   crossgaze (.+)$", path.read_text(), re.MULTILINE)
    verb, *words = shlex.split(command)
    assert verb == "train"
    assert ROOT / parse(verb, words).recipe == path


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    paths = write_world(folder, images=72)  # enough for words that can be swapped
    torch.manual_seed(0)
    save_bert(folder / "bert")
    return *paths, folder / "bert"


@pytest.mark.parametrize("path", RECIPES, ids=name)
def test_a_recipe_trains_two_steps(path, world, tmp_path):
    captions, regions, bert = world
    tree = shrunk(yaml.safe_load(path.read_text()))
    sources = {"captions": str(captions), "regions": str(regions), "train": ["train"]}
    tree["data"] = tree["data"] | sources | {"dev": "dev", "min_count": 1}
    tree["batch"] = 12
    if tree["model"].get("text", {}).get("kind") == "bert":
        tree["model"]["text"]["bert"] = str(bert)
    config = build(TrainConfig, tree)
    run = Run(config, prepare(config), tmp_path, torch.device("cpu"))
    before = {name: p.detach().clone() for name, p in run.step.named_parameters()}
    run.step.train()
    order = run.data.train.order(config.seed, 0, config.batch)
    for number in range(2):
        batch = run.shown(0, number, run.data.train.read(order[number]))
        told, _ = run.one_step(batch)
        run.state.step += 1
        assert torch.isfinite(told["loss"])
        assert {key for key in ("ccr", "ccs") if told.get(key, 0) > 0} == {
            key for key in ("ccr", "ccs") if getattr(config.constraints, key)
        }
        assert ("captions" in told) == (config.companion is not None)
    # In the first step not: VSRN's batch norms and BERT's own words begin at 0.
    still = {
        name
        for name, p in run.step.named_parameters()
        if p.requires_grad and (p.grad is None or not p.grad.any())
    }
    assert {name for name in still if not WITHOUT.search(name)} == set()
    changed = {name for name, p in run.step.named_parameters() if not torch.equal(p, before[name])}
    assert len(changed) > len(before) / 2
    run.look_at_dev()
    assert (tmp_path / "best" / "config.json").is_file()
