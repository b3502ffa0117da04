"""A question about a photograph, from file to answers."""

import numpy as np
import pytest
import torch

import crossgaze
from asking_parts import ANSWERS, GRID, answerer, photograph
from crossgaze.asking.ask import ask, source_of
from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import InputError
from crossgaze.models.rdan import RDan, RDanConfig
from crossgaze.models.text import TextConfig
from crossgaze.vision.extract import extract
from crossgaze.vision.photos import read_photo
from crossgaze.vision.sources.making import make_source
from model_parts import save_bert


@pytest.fixture
def photo(tmp_path):
    return photograph(tmp_path / "a.png")


def test_the_answer_is_that_of_the_stores_regions(tmp_path, photo):
    """The photograph becomes the regions that `crossgaze extract` makes of it."""
    model = answerer()
    model.save_pretrained(tmp_path / "model")
    reply = crossgaze.ask(tmp_path / "model", photo, "what is on the table?")
    extract(photo, tmp_path / "store", GRID)
    store = RegionStore(tmp_path / "store")
    with torch.no_grad():
        found = model.answer(np.asarray(store.features), [reply.question])
    shares = found.logits[0].softmax(0)
    assert [answer for answer, _ in reply.answers] == [
        ANSWERS[n] for n in shares.argsort(descending=True).tolist()
    ]
    for answer, share in reply.answers:
        assert share == pytest.approx(float(shares[ANSWERS.index(answer)]), abs=2e-3)  # half floats
    assert sum(share for _, share in reply.answers) == pytest.approx(1)
    np.testing.assert_allclose(reply.boxes * np.array([96, 64, 96, 64]), store.boxes[0], atol=1e-3)
    assert reply.region_weights.shape == (2, 4)
    assert reply.word_weights.shape == (2, len(reply.words))
    assert reply.words == ("<start>", "what", "is", "on", "the", "table", "?", "<end>")
    np.testing.assert_allclose(reply.region_weights.sum(1), 1, atol=1e-5)


def test_word_pieces_are_whole_words_with_all_that_their_pieces_got(photo, tmp_path):
    save_bert(tmp_path, ("is", "the", "snow", "##board", "red", "?"))
    torch.manual_seed(0)
    text = TextConfig(kind="bert", bert=str(tmp_path))
    model = RDan(RDanConfig(1280, 16, text, answers=ANSWERS)).eval()
    source = make_source(GRID, torch.device("cpu"))
    reply = ask(model, photo, "is the snowboard red?", source=source)
    assert reply.words == ("[CLS]", "is", "the", "snowboard", "red", "?", "[SEP]")
    small = read_photo(photo, source.size, fit="stretch", multiple=source.multiple)
    (found,) = source([small], ["x"], lambda: None)
    with torch.no_grad():
        seen = model.answer(found.features[None], ["is the snowboard red?"]).attention
    wanted = seen.words[0].numpy()
    np.testing.assert_allclose(reply.word_weights[:, 3], wanted[:, 3:5].sum(1), rtol=1e-4)
    np.testing.assert_allclose(reply.word_weights[:, 4:], wanted[:, 5:], rtol=1e-4)


def test_choices_limit_the_softmax(photo):
    model, question = answerer(), "is the lamp on?"
    every = dict(ask(model, photo, question).answers)
    some = dict(ask(model, photo, question, choices=["Yes", "two"]).answers)
    assert set(some) == {"yes", "2"}
    assert sum(some.values()) == pytest.approx(1)
    assert some["yes"] / some["2"] == pytest.approx(every["yes"] / every["2"], rel=1e-4)


def test_unknown_words_are_told_and_a_question_of_them_alone_is_refused(photo):
    model = answerer()
    assert ask(model, photo, "is the zork on?").unknown == ("zork",)
    with pytest.raises(InputError, match=r"question: the model knows no word of 'zork blah \?'"):
        ask(model, photo, "zork blah ?")
    with pytest.raises(InputError, match="question: '' has no word in it"):
        ask(model, photo, "")


@pytest.mark.parametrize("reads", ["question", "image"])
def test_a_shut_eye_has_no_attention(photo, reads):
    reply = ask(answerer(reads=reads), photo, "is the lamp on?")
    assert (reply.region_weights is None) == (reads == "question")
    assert (reply.word_weights is None) == (reads == "image")
    assert reply.to_dict()["words"][0] == "<start>"


def test_bad_input_is_one_line(photo, tmp_path):
    model, question = answerer(), "is the lamp on?"
    with pytest.raises(InputError, match="choices: 'rad', 'blu' is none of the 5 answers"):
        ask(model, photo, question, choices=["rad", "yes", "blu"])
    with pytest.raises(InputError, match="choices: nothing is none of"):
        ask(model, photo, question, choices=[])
    bad = tmp_path / "b.jpg"
    bad.write_bytes(b"not a photograph")
    with pytest.raises(InputError, match=r"b\.jpg: "):
        ask(model, bad, question)
    with pytest.raises(InputError, match=r"nowhere\.jpg: "):
        ask(model, tmp_path / "nowhere.jpg", question)
    with pytest.raises(InputError, match="does not say what its regions were made by"):
        ask(answerer(origin=False), photo, question)
    source, _ = source_of(model)
    with pytest.raises(InputError, match="source: makes regions of width 1280, the model takes 7"):
        ask(answerer(width=7), photo, question, source=source)


def test_other_regions_than_those_of_training_are_refused():
    model = answerer()
    model.origin["regions"]["weights"] = "another"
    with pytest.raises(InputError, match="trained on regions with weights 'another', here it is"):
        source_of(model)
    model.origin["regions"] = {"regions": "given boxes"}
    with pytest.raises(InputError, match="regions from 'given boxes', which are not made here"):
        source_of(model)
