"""`crossgaze ask` as a person meets it."""

import json

import pytest
from PIL import Image

from asking_parts import ANSWERS, answerer, photograph
from command_line import run
from evaluation_parts import model as matcher


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answerer().save_pretrained(tmp_path / "rdan")
    photograph(tmp_path / "a.jpg")
    return tmp_path


def test_answers_are_printed_and_a_picture_drawn(capsys, here):
    code, out, err = run(capsys, "ask", "rdan", "a.jpg", "is the zork on?", "--out", "look.png")
    assert (code, err) == (0, "")
    assert "probability" in out
    assert "words that the model does not know: zork" in out
    assert "what it looked at: look.png" in out
    with Image.open("look.png") as picture:
        assert picture.width > 1000


def test_json_has_the_answers_and_both_steps(capsys, here):
    code, out, _ = run(capsys, "ask", "rdan", "a.jpg", "is the lamp on?", "--json", "--top", "2")
    told = json.loads(out)
    assert code == 0
    assert len(told["answers"]) == 2
    assert told["answers"][0]["answer"] in ANSWERS
    assert told["answers"][0]["probability"] >= told["answers"][1]["probability"]
    assert len(told["regions_by_step"]) == len(told["words_by_step"]) == 2
    assert len(told["boxes"]) == len(told["regions_by_step"][0]) == 4
    assert told["boxes"][-1][2:] == [96.0, 64.0]
    code, out, _ = run(capsys, "ask", "rdan", "a.jpg", "is it?", "--choices", "yes, no", "--json")
    assert {row["answer"] for row in json.loads(out)["answers"]} == {"yes", "no"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rdan", "a.jpg", "zork blah?"], "question: the model knows no word of 'zork blah?'"),
        (["rdan", "nowhere.jpg", "is it?"], "nowhere.jpg: "),
        (["rdan", "bad.jpg", "is it?"], "bad.jpg: "),
        (["rdan", "a.jpg", "is it?", "--choices", "yes,purple"], "choices: 'purple' is none of"),
        (["rdan", "a.jpg", "is it?", "--out", "x.txt"], "x.txt: wanted a picture's name"),
        (["rdan", "a.jpg", "is it?", "--out", "no/x.png"], "no: no such folder, wanted"),
        (["rdan", "a.jpg", "is it?", "--top", "0"], "top: got 0, wanted 1 or more"),
        (["scan", "a.jpg", "is it?"], "scan: is a scan, which answers no questions"),
        (["nowhere", "a.jpg", "is it?"], "nowhere: no such folder, wanted a model's folder"),
    ],
)
def test_bad_input_is_one_line_and_code_two(capsys, here, words, message):
    (here / "bad.jpg").write_bytes(b"not a photograph")
    if words[0] == "scan":
        matcher().save_pretrained(here / "scan")
    code, _, err = run(capsys, "ask", *words)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
