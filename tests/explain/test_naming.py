"""Names of regions that are not sure are not shown."""

import numpy as np
import pytest

from crossgaze.explain.naming import FITTING, SURE, sure_names
from crossgaze.explain.regions import make_regions
from crossgaze.vision.sources.base import Found
from explain_parts import matcher
from search_parts import CellSource, make_photo

NOUNS, ATTRIBUTES = ("dog", "tree"), ("brown", "white")


class Naming(CellSource):
    """Calls the four cells by name, with probabilities."""

    labels = {"classes": NOUNS, "attributes": ATTRIBUTES}  # noqa: RUF012

    def __call__(self, photos, names, go_on):
        fields = {
            "classes": np.array([0, 1, 0, 1]),
            "class_confidence": np.array([0.9, 0.08, 0.5, 0.49], np.float32),
            "attributes": np.array([0, 1, 1, 0]),
            "attribute_confidence": np.array([0.3, 0.9, 0.1, 0.9], np.float32),
        }
        found = super().__call__(photos, names, go_on)
        return [Found(one.features, one.boxes, fields) for one in found]


@pytest.mark.parametrize(
    ("sure", "fits", "named"),
    [
        (SURE, FITTING, ("dog", "brown")),
        (SURE, FITTING - 0.01, ("dog", "")),
        (SURE - 0.01, 1.0, ("", "")),
        (float("nan"), 1.0, ("", "")),
        (None, None, ("dog", "brown")),
    ],
)
def test_a_name_is_shown_from_its_bar_on(sure, fits, named):
    assert sure_names("dog", "brown", sure, fits) == named


def test_an_attribute_does_not_stand_without_its_noun():
    assert sure_names("", "brown", 0.9, 0.9) == ("", "")


def test_what_is_explained_has_only_the_names_that_are_sure(tmp_path):
    photo = make_photo(tmp_path / "photo.png", 1)
    found = make_regions(matcher(), photo, Naming(), "stretch")
    assert found.labels == ("brown dog", "", "dog", "")
