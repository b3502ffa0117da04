"""Recipes: what they may say, and what is refused by name."""

from pathlib import Path

import pytest
import yaml

from crossgaze.config import build, load_recipe, to_dict
from crossgaze.errors import InputError
from crossgaze.models.scan import ScanConfig
from crossgaze.models.vsrn_captioner import CaptionerConfig
from crossgaze.training.config import TrainConfig, differences
from training_parts import tree

PLACES = (Path("captions.csv"), Path("regions"))


def make(family="scan", **more):
    return build(TrainConfig, tree(PLACES, family, **more))


def test_a_recipe_is_its_familys_own_configuration(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(yaml.safe_dump(tree(PLACES)))
    given = ["model.direction=i-t", "model.lambda1=4", "model.text.layers=2", "optimiser.rate=1e-3"]
    config = load_recipe(TrainConfig, path, given)
    found = config.model_config(region_width=1792)
    assert isinstance(found, ScanConfig)
    assert (found.direction, found.lambda1, found.text.layers) == ("i-t", 4.0, 2)
    assert found.region_width == 1792
    assert config.optimiser.rate == 1e-3
    own = make(model={"region_width": 7}).model_config(region_width=1792)
    assert own.region_width == 7


def test_settings_come_back_from_yaml():
    config = make("vsrn", companion={"hidden": 4}, average=0.5, augment={"words": 0.1})
    again = build(TrainConfig, yaml.safe_load(yaml.safe_dump(to_dict(config))))
    assert again == config
    assert differences(config, again) == []


def test_several_sources():
    places = {"captions": ["a", "b"], "regions": ["c", "d"]}
    config = make(data=places)
    assert config.data.sources == (Path("a"), Path("b"))
    assert config.data.stores == (Path("c"), Path("d"))


def test_a_companion_is_of_its_familys_type():
    found = make("vsrn", companion={"hidden": 4, "weight": 0.5}).companion_config()
    assert found == CaptionerConfig(hidden=4, weight=0.5)
    assert make("vsrn").companion_config() is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"family": "skan"}, "family: unknown name 'skan' (did you mean 'scan'?)"),
        ({"model": {"sise": 4}}, "model: unknown key 'sise' (did you mean 'size'?)"),
        ({"model": {"size": 0}}, "model: size: got 0, wanted a whole number"),
        ({"model": 3}, "model: got 3, wanted keys and values"),
        ({"companion": {"hidden": 4}}, "companion: scan has none, wanted no such key"),
        ({"epochs": 0}, "epochs: got 0, wanted a whole number, 1"),
        ({"batch": 1}, "batch: got 1, wanted a whole number, 2 or more"),
        ({"average": 1.0}, "average: got 1.0, wanted a number from 0 to less than 1"),
        ({"precision": "half"}, "precision: got 'half'"),
        ({"optimiser": {"kind": "adm"}}, "optimiser.kind: got 'adm' (did you mean 'adam'?)"),
        ({"optimiser": {"clip": -1.0}}, "optimiser.clip: got -1.0, wanted a number, 0 or more"),
        ({"schedule": {"after": [0]}}, "schedule.after: got 0, wanted a whole number"),
        ({"schedule": {"floor": 1.0}}, "schedule.floor: got 1.0"),
        ({"augment": {"words": 1.5}}, "augment.words: got 1.5"),
        (
            {"augment": {"words": 0.1}, "constraints": {"ccs": 0.1, "drawn": 1}},
            "constraints.drawn: words that augment.words drops cannot be swapped beforehand",
        ),
        ({"augment": {"noise": -0.1}}, "augment.noise: got -0.1, wanted a number, 0 or more"),
        ({"data": {"captions": "a", "regions": ["b", "c"]}}, "got 1 captions and 2 regions"),
        ({"data": {"captions": "a", "regions": "b", "train": []}}, "data.train: got no split"),
    ],
)
def test_what_cannot_be_is_refused_by_name(more, message):
    with pytest.raises(InputError) as caught:
        build(TrainConfig, tree(PLACES) | more)
    assert message in str(caught.value)


def test_differences_are_named_key_by_key():
    one, other = make(seed=1), make(seed=2, model={"size": 16})
    assert differences(one, other) == [
        "model.text.word_size is 8, not not given",
        "seed is 1, not 2",
    ]
