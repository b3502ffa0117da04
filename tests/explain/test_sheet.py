"""Sheets: right answers green and ticked, wrong ones red and crossed."""

import json

import pytest

from crossgaze.errors import InputError
from crossgaze.explain.scene import Box, Picture, Stroke, Text
from crossgaze.explain.sheet import RIGHT, WRONG, draw_sheet
from search_parts import make_photo


@pytest.fixture
def found(tmp_path):
    """An evaluation of two images, and their photographs, the second of which is missing."""
    make_photo(tmp_path / "photos" / "a.jpg", 1)
    top = [{"image": "b.jpg", "score": 0.9}, {"image": "a.jpg", "score": 0.5}]
    captions = [
        {"caption": 0, "text": "a <red> dog", "image": "a.jpg", "rank": 2, "top": top},
        {"caption": 1, "text": "a cat", "image": "b.jpg", "rank": 1, "top": top},
    ]
    own = [{"caption": 0, "score": 0.7}, {"caption": 1, "score": 0.1}]
    images = [{"image": "a.jpg", "rank": 1, "top": own}, {"image": "b.jpg", "rank": 2, "top": own}]
    tree = {"format": "crossgaze-evaluation", "version": 1}
    tree["protocols"] = [{"folds": 1, "queries": {"captions": captions, "images": images}}]
    (tmp_path / "result.json").write_text(json.dumps(tree))
    return tmp_path / "result.json", tmp_path / "photos"


def parts(scene, kind):
    return [part for part in scene.parts if isinstance(part, kind)]


def test_colour_sign_and_thickness_say_the_same(found):
    scene = draw_sheet(*found)
    outlines = [box for box in parts(scene, Box) if box.outline]
    assert [box.outline for box in outlines] == [WRONG, RIGHT, RIGHT, WRONG]
    assert [box.line for box in outlines] == [3, 5, 5, 3]
    signs = [len(stroke.points) for stroke in parts(scene, Stroke)]
    assert signs == [2, 2, 3, 3, 2, 2]  # cross, tick, tick, cross
    said = [part.text for part in parts(scene, Text)]
    assert {"a <red> dog", "a cat", "1.  0.900", "the first right answer stands at 2"} <= set(said)
    assert len(parts(scene, Picture)) == 2
    assert any("no such file" in line for line in said)
    assert "&lt;red&gt;" in scene.svg()


def test_images_that_ask_for_sentences(found):
    scene = draw_sheet(*found, side="images", top=2)
    outlines = [box.outline for box in parts(scene, Box) if box.outline]
    assert outlines == [RIGHT, WRONG, WRONG, RIGHT]
    assert len(parts(scene, Picture)) == 1
    one = draw_sheet(*found, side="images", top=1, only="misses")
    assert [box.outline for box in parts(one, Box) if box.outline] == [WRONG]


def test_bad_input_is_refused(found, tmp_path):
    with pytest.raises(InputError, match="top: got 0"):
        draw_sheet(*found, top=0)
    with pytest.raises(InputError, match="wanted the folder of the photographs"):
        draw_sheet(found[0], tmp_path / "nowhere")
