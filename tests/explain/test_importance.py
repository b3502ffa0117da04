"""Panels are as bright as their word counted: SCAN's figure 4 considers the region and the word."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from command_line import run
from crossgaze.explain.drawing import DARK
from crossgaze.explain.figure import COUNTED, draw
from crossgaze.explain.regions import make_regions
from crossgaze.explain.scene import Picture, Text
from explain_parts import SENTENCE, explained, made_up, matcher
from search_parts import CellSource, make_photo

SHARES = np.array([0.8, 0.2], np.float32)


def panels(scene):
    return [part.pixels[20, 60, 0] for part in scene.parts if isinstance(part, Picture)][1:]


def texts(scene):
    return " ".join(part.text for part in scene.parts if isinstance(part, Text))


@pytest.mark.parametrize("kind", ["scan", "bfan"])
def test_a_words_relevance_is_its_cosine_with_what_it_looked_at(tmp_path, kind):
    seen, model = explained(tmp_path, kind), matcher(kind)
    regions = make_regions(
        model, make_photo(tmp_path / "photo.png", 1), CellSource(), "stretch"
    ).features
    with torch.inference_mode():
        rows = model.encode_images(regions[None]).fragments[0].double()
        words = model.encode_texts([SENTENCE]).fragments[0].double()
    for number, weights in enumerate(seen.weights[0]):
        attended = sum(float(weight) * row for weight, row in zip(weights, rows, strict=True))
        cosine = words[number] @ attended / (words[number].norm() * attended.norm())
        assert seen.relevances[number] == pytest.approx(float(cosine), abs=1e-5)


@pytest.mark.parametrize("kind", ["mmca", "m-dan", "vsrn", "vse++"])
def test_where_words_do_not_look_as_scans_do_there_is_none(tmp_path, kind):
    seen = explained(tmp_path, kind)
    assert seen.relevances is None
    assert COUNTED not in texts(draw(seen))


def test_a_panel_is_as_bright_as_its_word_counted():
    seen = made_up(((0, 1), (0, 1)), relevances=SHARES)
    assert seen.importance().tolist() == pytest.approx([1, 0.25])
    assert panels(draw(seen)) == [200, round(200 * (DARK + (1 - DARK) / 4))]
    assert "region 2, 100 %; the word 0.25" in texts(draw(seen))
    assert panels(draw(seen, importance=False)) == [200, 200]
    assert "the word" not in texts(draw(seen, importance=False))


def test_marks_set_no_scale_and_words_that_agree_with_nothing_have_none():
    three = np.array([0.9, -0.3, 0.6], np.float32)
    words = ("<start>", "red", "dog")
    seen = made_up(((0, 1),) * 3, words, relevances=three)
    assert seen.importance().tolist() == pytest.approx([1, 0, 1])
    assert made_up(relevances=-SHARES).importance() is None
    assert made_up(names=("i-t",), relevances=SHARES).importance() is None


def test_a_map_that_only_one_of_two_models_has_is_shown_of_that_one(capsys, tmp_path, monkeypatch):
    plain = made_up()
    both = replace(plain, names=("t-i", "i-t"), weights=np.repeat(plain.weights, 2, 0))
    monkeypatch.setattr("crossgaze.cli.explain._explain", lambda args: [plain, both])
    out = tmp_path / "both.png"
    asked = ["explain", "scan", "a.jpg", "red dog", "--beside", "bfan", "--out", str(out), "--map"]
    code, _, err = run(capsys, *asked, "i-t")
    assert (code, err) == (0, "")
    assert out.is_file()
    code, _, err = run(capsys, *asked, "head 2")
    assert code != 0
    assert "map: got 'head 2'" in err
