"""The picture of an answer: bright where a step looked, dark where it did not."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from asking_parts import answerer, photograph
from crossgaze.asking.ask import ask
from crossgaze.asking.picture import draw_reply
from crossgaze.errors import InputError


@pytest.mark.parametrize(("width", "height"), [(96, 64), (30, 200), (300, 20)])
def test_a_reply_is_drawn_whatever_its_shape(tmp_path, width, height):
    photo = photograph(tmp_path / "a.png", width, height)
    reply = ask(answerer(), photo, "how many chairs are there?" + " is the lamp on?" * 6)
    picture = draw_reply(reply, tmp_path / "out.png")
    with Image.open(tmp_path / "out.png") as written:
        assert written.size == picture.size
    assert picture.width > picture.height / 3


@pytest.mark.parametrize("reads", ["question", "image"])
def test_one_side_alone_is_drawn(tmp_path, reads):
    reply = ask(answerer(reads=reads), photograph(tmp_path / "a.png"), "is the lamp on?")
    assert draw_reply(reply).width > 1000


def test_a_word_is_darker_the_more_it_was_looked_at(tmp_path):
    reply = ask(answerer(), photograph(tmp_path / "a.png"), "is the lamp on?")
    words = np.zeros_like(reply.word_weights)
    words[:, 1] = 1.0
    dark = np.asarray(draw_reply(replace(reply, word_weights=words)), np.float64)
    even = np.asarray(draw_reply(replace(reply, word_weights=np.full_like(words, 0.1))), np.float64)
    assert dark.mean() > even.mean()


def test_answers_are_written_for_people_and_marks_are_not(tmp_path):
    reply = ask(answerer(), photograph(tmp_path / "a.png"), "is the lamp on?")
    reply = replace(reply, answers=(("garbage_bin", 0.6), ("lamp", 0.4)))
    draw_reply(reply, tmp_path / "out.svg")
    drawn = (tmp_path / "out.svg").read_text()
    assert ">garbage bin<" in drawn
    assert "garbage_bin" not in drawn
    assert ">lamp<" in drawn
    assert not any(mark in drawn for mark in (">start<", ">end<", "&lt;start"))


def test_what_cannot_be_written_is_named(tmp_path):
    reply = ask(answerer(), photograph(tmp_path / "a.png"), "is the lamp on?")
    with pytest.raises(InputError, match="cannot be written as a picture"):
        draw_reply(reply, tmp_path / "out.xyz")
