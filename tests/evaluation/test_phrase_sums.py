"""Sums over each image's phrases give what all phrases give."""

import json

import numpy as np
import pytest

from crossgaze.errors import InputError
from crossgaze.evaluation.attention_quality import MEASURES, AttentionQuality
from crossgaze.evaluation.bootstrap import BootstrapConfig
from crossgaze.evaluation.phrase_sums import PhraseSums

CONFIG = BootstrapConfig(resamples=80)


def quality(seed=0, phrases=40, images=9):
    """Phrases as `phrase_quality` gives them: what no region fits has no precision, recall, F1."""
    random = np.random.default_rng(seed)
    values = {name: random.random(phrases) for name in MEASURES}
    values["covered"] = (random.random(phrases) < 0.6).astype(float)
    values["pointing"] = (random.random(phrases) < 0.5).astype(float)
    for name in ("precision", "recall", "f1"):
        values[f"{name}_all"] = values[name] * values["covered"]
        values[name] = np.where(values["covered"] > 0, values[name], np.nan)
    # The last image has no phrase, as some have none.
    return AttentionQuality(values, random.integers(0, images - 1, phrases), images)


def test_estimates_are_those_of_all_phrases():
    measured = quality()
    found = PhraseSums.of(measured).drawn(CONFIG).estimates(CONFIG.level)
    wanted = measured.estimates(CONFIG)
    names = {"precision", "recall", "f1", "precision_all", "recall_all", "f1_all"}
    assert set(found) == names | {"pointing", "covered"}
    for name, figure in found.items():
        assert figure.value == pytest.approx(wanted[name].value)
        assert [figure.low, figure.high] == pytest.approx([wanted[name].low, wanted[name].high])


def test_it_comes_back_from_json_to_four_digits():
    sums = PhraseSums.of(quality())
    text = json.dumps(sums.to_dict())
    again = PhraseSums.from_dict(json.loads(text))
    assert again.phrases.tolist() == sums.phrases.tolist()
    for name, values in sums.sums.items():
        assert again.sums[name] == pytest.approx(values, abs=5.1e-5)
    assert all(isinstance(number, int) for number in sums.to_dict()["covered"])


def test_two_models_by_hand():
    # Two phrases an image, one of them covered: F1 0.5 and 1 against 0.25 and 0.75.
    whole = {"phrases": [2, 2], "precision": [0, 0], "recall": [0, 0], "pointing": [1, 2]}
    one, two = (
        PhraseSums.from_dict(whole | {"f1": f1, "covered": [1, 1]}).drawn(CONFIG)
        for f1 in ([0.5, 1], [0.25, 0.75])
    )
    change = (one - two).estimates(0.95)
    assert (one.values["f1"], one.values["f1_all"], one.values["pointing"]) == (0.75, 0.375, 0.75)
    assert (change["f1"].value, change["f1"].low, change["f1"].high) == (0.25, 0.25, 0.25)


def test_no_phrase_at_all_is_0_without_an_interval():
    names = ("phrases", "precision", "recall", "f1", "pointing", "covered")
    none = {name: [0, 0] for name in names}
    found = PhraseSums.from_dict(none).drawn(CONFIG).estimates(0.95)["f1"]
    assert (found.value, found.low) == (0, None)


def test_what_is_no_such_sum_is_refused():
    tree = PhraseSums.of(quality()).to_dict()
    with pytest.raises(InputError, match="has no f1, covered"):
        PhraseSums.from_dict({k: v for k, v in tree.items() if k not in ("f1", "covered")})
    with pytest.raises(InputError, match="not a number for each image"):
        PhraseSums.from_dict(tree | {"f1": [1.0]})
