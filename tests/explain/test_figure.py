"""Figures: a panel a word, bright where it looked, the strongest region framed."""

from dataclasses import replace

import numpy as np
import pytest

from crossgaze.errors import InputError
from crossgaze.explain.drawing import DARK, LIT, darkened, shade
from crossgaze.explain.figure import draw
from crossgaze.explain.scene import Box, Picture, Text
from explain_parts import FAMILIES, explained, made_up


def texts(scene):
    return [part.text for part in scene.parts if isinstance(part, Text)]


def pictures(scene):
    return [part for part in scene.parts if isinstance(part, Picture)]


def frames(scene):
    return [part for part in scene.parts if isinstance(part, Box) and part.outline == LIT]


def test_it_is_dark_where_nobody_looked():
    photo = np.full((100, 200, 3), 200, np.uint8)
    boxes = np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1]], np.float32)
    lit = darkened(photo, boxes, np.array([1.0, 0.0]))[..., 0]
    assert lit[50, 20] == 200
    assert lit[50, 180] == round(200 * DARK)
    assert (darkened(photo, boxes, np.array([0.5, 0.5])) == 200).all()


def test_every_word_has_a_panel_that_shows_where_it_looked():
    scene = draw(made_up())
    photo, red, dog = pictures(scene)
    assert (photo.pixels == 200).all()
    assert red.pixels[20, 60, 0] == 200
    assert red.pixels[20, 10, 0] == round(200 * (DARK + (1 - DARK) / 9))
    assert (dog.pixels == 200).all()
    said = texts(scene)
    assert {"red", "dog", "region 2, 90 %", "red cat, 50 %"} <= set(said)
    assert "each word looks" in " ".join(said)
    first, second = frames(scene)
    # Right half and left half, each of its own panel.
    assert first.left == pytest.approx(red.left + red.width / 2, abs=1)
    assert first.right == pytest.approx(red.left + red.width - 1)
    assert second.left == pytest.approx(dog.left + 1)
    assert second.right == pytest.approx(dog.left + dog.width / 2, abs=1)


def test_a_word_without_a_region_is_said_to_have_none_and_marks_have_no_panel():
    seen = made_up(((0, 0), (0.2, 0.8), (0.5, 0.5)), ("red", "dog", "."), unknown=("red",))
    scene = draw(seen)
    assert "no region" in texts(scene)
    assert "red (unknown)" in texts(scene)
    assert len(pictures(scene)) == 3
    assert len(frames(scene)) == 1


def test_a_slim_photograph_leaves_room_for_what_is_said_of_a_word():
    scene = draw(made_up(((0.1, 0.9), (0.25, 0.75)), size=(10, 80)))
    assert {"region 2, 90 %", "the photograph"} <= set(texts(scene))
    widths = {part.width for part in pictures(scene)}
    assert max(widths) < 100  # the photograph is slim all the same


@pytest.mark.parametrize("size", [(800, 40), (400, 100), (80, 40)])
def test_a_frame_is_never_thicker_than_what_it_frames(size):
    boxes = np.array([[0.1, 0.2, 0.2, 0.5], [0.5, 0.4, 0.6, 0.8]], np.float32)
    for outline in frames(draw(made_up(size=size, boxes=boxes))):
        inside = outline.bottom - outline.top - 2 * outline.line
        assert inside > 0.5 * (outline.bottom - outline.top)


def test_two_models_stand_word_above_word():
    one, other = made_up(model="plain"), made_up(((0.9, 0.1), (0.2, 0.8)), model="with CCR")
    # Another model's marks do not count.
    other = replace(
        other,
        words=("<start>", "red", "dog"),
        weights=np.concatenate([np.zeros((1, 1, 2), np.float32), other.weights], 1),
    )
    scene = draw([one, other])
    _, *panels = pictures(scene)
    assert [panel.left for panel in panels[:2]] == [panel.left for panel in panels[2:]]
    assert panels[0].top < panels[2].top
    assert panels[2].pixels[20, 10, 0] == 200
    said = texts(scene)
    assert said.count("red") == 1
    assert {"plain, 0.500", "with CCR, 0.500"} <= set(said)
    with pytest.raises(InputError, match="different sentences"):
        draw([one, made_up(words=("a", "cat"))])
    with pytest.raises(InputError, match="got none"):
        draw([])


def test_steps_show_regions_and_words():
    seen = made_up(
        names=("step 1", "step 2"),
        weights=np.zeros((2, 2, 2), np.float32),
        region_weights=np.array([[1, 0], [0, 1]], np.float32),
        word_weights=np.array([[0.8, 0.2], [0.5, 0.5]], np.float32),
    )
    scene = draw(seen)
    photo, first, second = pictures(scene)
    assert (photo.pixels == 200).all()
    assert first.pixels[20, 10, 0] == second.pixels[20, 70, 0] == 200
    assert first.pixels[20, 70, 0] == second.pixels[20, 10, 0] == round(200 * DARK)
    grounds = [part.fill for part in scene.parts if isinstance(part, Box) and part.fill]
    assert grounds == [shade(1), shade(0.25), shade(1), shade(1)]


def test_marks_of_the_model_are_not_drawn():
    seen = made_up(
        words=("[CLS]", "red", "dog", "[SEP]"),
        names=("step 1",),
        weights=np.zeros((1, 4, 2), np.float32),
        region_weights=np.array([[1, 0]], np.float32),
        word_weights=np.array([[0.6, 0.1, 0.2, 0.1]], np.float32),
        sentence="red dog",
    )
    scene = draw(seen)
    drawn = texts(scene)
    assert drawn.count("red") == drawn.count("dog") == 2  # below the photograph and the step
    assert not {"[CLS]", "[SEP]", "cls", "sep"} & set(drawn)
    grounds = [part.fill for part in scene.parts if isinstance(part, Box) and part.fill]
    assert grounds == [shade(0.5), shade(1)]  # shares of the largest weight of a word


def test_vsrn_adds_up_as_its_paper_says():
    seen = made_up(
        weights=np.zeros((1, 1, 1)),
        boxes=np.array([[0, 0, 1, 1], [0, 0, 0.5, 1], [0, 0, 0.5, 1]], np.float32),
        labels=("", "", ""),
        region_weights=np.array([[1, 1, 1]], np.float32),
    )
    seen = replace(seen, weights=None)
    _, lit = pictures(draw(seen))
    assert lit.pixels[20, 10, 0] == 200
    assert lit.pixels[20, 70, 0] == round(200 * (DARK + (1 - DARK) / 3))


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_family_can_be_drawn(tmp_path, kind):
    scene = draw(explained(tmp_path, kind))
    right = max(part.left + part.width for part in pictures(scene))
    bottom = max(part.top + part.height for part in pictures(scene))
    assert right < scene.width
    assert bottom < scene.height
    if kind == "vse++":
        assert "there is no attention in vse++" in " ".join(texts(scene))


def test_different_kinds_stand_below_each_other(tmp_path):
    both = [explained(tmp_path, "scan"), explained(tmp_path, "vsrn")]
    scene = draw(both)
    assert len(pictures(scene)) == 5 + 2
    assert "the sentence plays no part" in " ".join(texts(scene))
