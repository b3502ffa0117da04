"""Which regions a model gets: those that it was trained with, or what the user says."""

import pytest
import torch

from asking_parts import GRID, photograph
from crossgaze.errors import InputError
from crossgaze.explain import explain
from crossgaze.explain.regions import source_for
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.vision.sources.making import make_source
from search_parts import WORDS


def remembers(width=1280):
    torch.manual_seed(0)
    model = Scan(ScanConfig(region_width=width, size=8), WORDS).eval()
    made = make_source(GRID, torch.device("cpu")).made_by
    model.origin = {"regions": {**made, "fit": "stretch"}}
    return model


def test_the_regions_are_made_as_in_training(tmp_path):
    seen = explain(remembers(), photograph(tmp_path / "a.png"), "a red dog")
    assert seen.weights.shape == (1, 5, 4)
    assert seen.boxes[-1].tolist() == [0.5, 0.5, 1, 1]
    assert seen.label(3) == "region 4"
    assert seen.notes == ()


def test_a_user_may_say_otherwise_and_another_width_is_refused(tmp_path):
    model = remembers(7)
    source, fit, notes = source_for(model, GRID, device="cpu")
    assert (source.made_by["grid"], fit, notes) == (2, "stretch", ())
    with pytest.raises(InputError, match="regions: have width 1280, the model takes 7"):
        explain(model, photograph(tmp_path / "a.png"), "a red dog", source=source, fit=fit)


def test_a_model_that_does_not_say_gets_objects_and_a_note():
    model = Scan(ScanConfig(region_width=1792, size=8), WORDS).eval()
    source, _, (note,) = source_for(model, device="cpu")
    assert source.made_by["regions"] == "objects"
    assert "does not say how its regions were made" in note
