"""`crossgaze evaluate` with a model that answers questions."""

import json

import pytest

from command_line import run
from crossgaze.training.trainer import train
from training_parts import asking, write_questions


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    world = write_questions(folder)
    train(asking(world, epochs=2), folder / "run")
    return folder


def evaluate(capsys, here, *words):
    words = ("--resamples", 20, *words)
    store = here / "daquar" / "regions"
    data = here / "daquar"
    return run(capsys, "evaluate", here / "run/best", data, "--store", store, *words)


def test_a_question_set_is_measured(capsys, here, tmp_path):
    out = tmp_path / "result.json"
    code, text, err = evaluate(capsys, here, "--single", "--no-wups", "--out", out)
    assert (code, err) == (0, "")
    assert "daquar test, 24 questions" in text
    assert "questions with several answers are left out" in text
    told = json.loads(out.read_text())
    assert told["metric"] == "daquar"
    assert len(told["queries"]) == 24
    right = sum(row["right"] for row in told["queries"])
    assert told["figures"]["accuracy"]["value"] == pytest.approx(100 * right / 24, abs=0.01)
    assert "--single --no-wups" in told["command"]
    code, text, _ = evaluate(capsys, here, "--no-wups", "--json", "--first", "2")
    assert json.loads(text)["data"]["images"] == 2


def test_wups_is_measured_with_a_wordnet_of_ones_own(capsys, here, tmp_path):
    words = ("dog", "cat", "car", "boat", "tree", "ball")
    lines = ["00000001 03 n 01 entity 0 000 | all"]
    index = ["entity n 1 0 1 0 00000001"]
    for number, word in enumerate(words, 2):
        lines.append(f"{number:08} 03 n 01 {word} 0 001 @ 00000001 n 0000 | a")
        index.append(f"{word} n 1 1 @ 1 0 {number:08}")
    (tmp_path / "data.noun").write_text("\n".join(lines) + "\n")
    (tmp_path / "index.noun").write_text("\n".join(index) + "\n")
    (tmp_path / "noun.exc").write_text("")
    code, text, _ = evaluate(capsys, here, "--wordnet", tmp_path, "--json")
    figures = {name: one["value"] for name, one in json.loads(text)["figures"].items()}
    assert code == 0
    assert figures["accuracy"] <= figures["wups_0.9"] <= figures["wups_0.0"]


def test_without_wordnet_the_rest_is_measured_and_it_is_said(capsys, here, monkeypatch):
    monkeypatch.setattr("crossgaze.evaluation.wordnet.find_spec", lambda name: None)
    code, text, _ = evaluate(capsys, here)
    assert code == 0
    assert "WUPS needs the package wn" in text
    assert "WUPS@" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--folds", "5"], "folds: is for models that match"),
        (["--ensemble", "x"], "ensemble: is for models that match"),
        (["--split", "dev"], "no split 'dev'"),
        (["--wordnet", "nowhere"], "nowhere: no such folder, wanted WordNet's files"),
        (["--format", "coco"], "holds captions"),
        (["--annotations", "x.json"], "annotations: daquar keeps its answers"),
    ],
)
def test_bad_input_is_one_line(capsys, here, words, message):
    code, _, err = evaluate(capsys, here, *words)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_a_store_is_needed(capsys, here):
    code, _, err = run(capsys, "evaluate", here / "run/best", here / "daquar")
    assert code == 2
    assert "store: got none, wanted the region store" in err


def test_other_answers_are_refused_in_a_line(capsys, here):
    store = here / "daquar" / "regions"
    code, _, err = run(capsys, "evaluate", here / "run/best", "easy-vqa", "--store", store)
    assert code == 2
    assert err.count("\n") == 1
