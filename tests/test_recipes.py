"""Every recipe loads, and its head says how to run it."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from crossgaze.cli import parse
from crossgaze.config import load_recipe
from crossgaze.vision.extract import ExtractConfig
from crossgaze.vision.objects.training import TrainConfig

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "recipes").glob("extract-*.yaml"))


def test_there_are_recipes_and_no_other_kind_than_these():
    assert [path.name for path in RECIPES] == ["extract-dan-resnet152.yaml", "extract-default.yaml"]
    regions = ROOT / "recipes" / "regions-objects.yaml"
    files = sorted(path for path in (ROOT / "recipes").iterdir() if path.is_file())
    asking = [ROOT / "recipes" / f"rdan-{name}.yaml" for name in ("daquar", "easy-vqa", "vqa")]
    # The others of training lie in folders; all of those see tests/training.
    assert files == sorted([*RECIPES, *asking, regions])


def test_the_recipe_of_the_region_model_is_its_defaults():
    path = ROOT / "recipes" / "regions-objects.yaml"
    assert load_recipe(TrainConfig, path) == TrainConfig()
    assert f"python tools/train_objects.py recipes/{path.name}" in path.read_text()


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_loads_and_its_head_launches_it(path):
    load_recipe(ExtractConfig, path)
    (command,) = re.findall(r"^#   crossgaze (.+)$", path.read_text(), re.MULTILINE)
    verb, *words = shlex.split(command)
    assert verb == "extract"
    assert ROOT / parse(verb, words).recipe == path


def test_the_default_recipe_is_the_defaults_key_by_key():
    path = ROOT / "recipes" / "extract-default.yaml"
    assert load_recipe(ExtractConfig, path) == ExtractConfig()
    assert list(yaml.safe_load(path.read_text())) == [field.name for field in fields(ExtractConfig)]


def test_dans_regions():
    """DAN, section 3.1: 448 x 448 pixels to res5c, 14 x 14 regions."""
    found = load_recipe(ExtractConfig, ROOT / "recipes" / "extract-dan-resnet152.yaml")
    assert (found.regions, found.backbone) == ("grid", "microsoft/resnet-152")
    assert (found.grid, found.size) == (14, 448)
    shown = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "extract.md").read_text(), re.DOTALL)
    assert yaml.safe_load(shown[0]) == {
        "regions": "grid",
        "backbone": "microsoft/resnet-152",
        "grid": 14,
        "size": 448,
    }
