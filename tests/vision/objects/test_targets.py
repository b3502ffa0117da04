"""Views and what they ask for."""

import numpy as np
import pytest
import torch
from PIL import Image

from crossgaze.evaluation.coverage import Annotated
from crossgaze.vision.objects.samples import MOST_CUT, View, second_views
from crossgaze.vision.objects.targets import target
from crossgaze.vision.objects.words import Words

WORDS = Words(("dog", "ball", "beach"), ("red",))


def wanted():
    """Two dogs, named together once and one of them alone twice; a beach without a box."""
    boxes = np.array([[0.0, 0.0, 0.2, 0.5], [0.5, 0.0, 0.7, 0.5]], np.float32)
    around = np.array([[0.0, 0.0, 0.7, 0.5], boxes[0], boxes[0]], np.float32)
    return Annotated(
        boxes=boxes,
        box_types=(("animals",),) * 2,
        phrases=around,
        phrase_types=(("animals",),) * 3,
        members=((0, 1), (0,), (0,)),
        texts=("two dogs", "a red dog", "a red ball"),
        scenes=("the beach", "the moon"),
    )


def test_the_whole_photograph():
    found = target(wanted(), View("a"), WORDS)
    assert found.own == 2
    # The box around both dogs is a target of its own, after the annotated ones.
    torch.testing.assert_close(found.boxes[2], torch.tensor([0.0, 0.0, 0.7, 0.5]))
    assert found.phrases.shape == (2, 4)
    torch.testing.assert_close(found.named, torch.tensor([0.2, 0.4]))
    expected = torch.tensor([[2 / 3, 1 / 3, 0], [1, 0, 0]])
    torch.testing.assert_close(found.nouns, expected)
    torch.testing.assert_close(found.attributes, torch.tensor([[1.0], [0.0]]))
    torch.testing.assert_close(found.setting, torch.tensor([0.0, 0.0, 1.0]))


def test_a_mirror_image_mirrors_the_boxes():
    found = target(wanted(), View("a", mirror=True), WORDS)
    torch.testing.assert_close(found.boxes[0], torch.tensor([0.8, 0.0, 1.0, 0.5]))


def test_a_cut_moves_boxes_and_loses_those_it_halves():
    """Cut at x 0.12: the first dog keeps 0.08 of its 0.2, and goes; the second stays whole."""
    found = target(wanted(), View("a", (0.12, 0.0, 1.0, 1.0)), WORDS)
    assert found.own == 1
    torch.testing.assert_close(found.boxes[0], torch.tensor([0.38, 0, 0.58, 0.44]) / 0.88)
    torch.testing.assert_close(found.nouns, torch.tensor([[1.0, 0.0, 0.0]]))


def test_second_views_are_mirrored_slightly_cut_and_the_same_each_time():
    views = second_views(["a", "b"], seed=3)
    assert views == second_views(["a", "b"], seed=3)
    assert views != second_views(["a", "b"], seed=4)
    for view in views:
        assert view.mirror
        x1, y1, x2, y2 = view.crop
        assert max(x1, y1, 1 - x2, 1 - y2) <= MOST_CUT


@pytest.mark.parametrize("mirror", [False, True])
def test_pixels_follow_the_boxes(tmp_path, mirror):
    """A white square in a black photograph is where its box says, in every view."""
    pixels = np.zeros((80, 100, 3), np.uint8)
    pixels[20:60, 10:40] = 255
    Image.fromarray(pixels).save(tmp_path / "a.png")
    box = np.array([[0.1, 0.25, 0.4, 0.75]], np.float32)
    for crop in ((0.0, 0.0, 1.0, 1.0), (0.05, 0.1, 0.95, 0.9)):
        view = View("a.png", crop, mirror)
        seen = view.pixels(tmp_path, 200)
        found, (stays,) = view.boxes(box)
        x1, y1, x2, y2 = found[0] * 200
        assert stays
        rows, columns = np.nonzero(seen[..., 0] > 127)
        assert columns.min() == pytest.approx(x1, abs=2)
        assert columns.max() + 1 == pytest.approx(x2, abs=2)
        assert rows.min() == pytest.approx(y1, abs=2)
        assert rows.max() + 1 == pytest.approx(y2, abs=2)
