"""Answers judged by each set's own metric, choices, intervals, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from asking_parts import ANSWERS, answerer
from crossgaze.data.questions.questions import Question, QuestionSet
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import InputError
from crossgaze.evaluation.answers import AnswerConfig, evaluate_answers
from crossgaze.evaluation.answers_report import answer_table, to_dict
from crossgaze.evaluation.bootstrap import BootstrapConfig
from crossgaze.evaluation.choices import best_answers, choice_mask
from crossgaze.evaluation.judging import judge, metric_of

FEW = BootstrapConfig(resamples=50)


def asked(number, answer, kind="other", humans=None, choices=()):
    text = ("what is on the table?", "is the lamp on?")[number % 2]
    humans = (answer,) if humans is None else humans
    image = f"{number // 2}.jpg"
    return Question(str(number), image, text, humans, answer, kind, choices, "test")


def questions(count=12, name="toy", **more):
    kinds = ("other", "yes/no", "number")
    rows = [asked(n, ANSWERS[n % 5], kinds[n % 3], **more) for n in range(count)]
    return QuestionSet(name, tuple(rows))


@pytest.fixture
def store(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"{n}.jpg" for n in range(6)]
    counts = rng.integers(1, 5, 6)
    block = rng.normal(size=(6, 4, 7))
    with RegionWriter(tmp_path / "store", 4, 7, dtype="float32", fields=["counts"]) as writer:
        writer.append(names, block, counts=counts)
    return RegionStore(tmp_path / "store")


def test_each_set_has_its_metric():
    assert metric_of(questions()) == "exact"
    assert metric_of(questions(name="daquar")) == "daquar"
    assert metric_of(questions(humans=("a",) * 9 + ("b",))) == "vqa"


def test_answers_are_judged_as_worked_by_hand():
    ten = ("2",) * 2 + ("two",) + ("3",) * 7
    assert judge([asked(0, "3", humans=ten)], ["2"], "vqa").values.tolist() == [0.9]
    several = asked(0, "table, lamp", humans=("table", "lamp"))
    for said, right in (("lamp, table", 1), ("table", 0), ("table, lamp, bed", 0)):
        assert judge([several], [said], "daquar").values.tolist() == [right]
    rows = [asked(0, "yes", "yes/no"), asked(1, "2", "number"), asked(2, "no", "yes/no")]
    groups = judge(rows, ["yes", "3", "yes"], "exact").groups()
    assert {name: float(v.mean()) for name, v in groups.items()} == {
        "accuracy": pytest.approx(1 / 3),
        "yes_no": 0.5,
        "number": 0.0,
    }


def test_every_question_is_asked_of_its_own_image(store):
    model, given = answerer(7, origin=False), questions()
    found = evaluate_answers(model, given, store, AnswerConfig(batch=5, bootstrap=FEW))
    right = []
    for question, best in zip(given.questions, found.best, strict=True):
        row = int(question.image[0])
        block = np.asarray(store.features[row : row + 1, : store.counts[row]])
        with torch.no_grad():
            shares = model.answer(block, [question.text]).logits[0].softmax(0)
        assert best[0][0] == ANSWERS[int(shares.argmax())]
        assert best[0][1] == pytest.approx(float(shares.max()), abs=1e-5)
        right.append(best[0][0] == question.answer)
    assert found.right.tolist() == right
    assert found.figures["accuracy"].value == pytest.approx(100 * np.mean(right))
    assert found.known == 100
    low, high = found.figures["accuracy"].low, found.figures["accuracy"].high
    assert low <= found.figures["accuracy"].value <= high
    assert set(found.figures) == {"accuracy", "yes_no", "number", "other"}


def test_choices_limit_what_is_answered(store):
    model = answerer(7, origin=False)
    given = questions(choices=("two", "Lamp", "purple"))
    found = evaluate_answers(model, given, store, AnswerConfig(bootstrap=FEW))
    assert found.choices
    assert {best[0][0] for best in found.best} <= {"2", "lamp"}
    assert all(len(best) == 2 for best in found.best)
    strange = evaluate_answers(
        model, questions(choices=("purple",)), store, AnswerConfig(bootstrap=FEW)
    )
    assert strange.figures["accuracy"].value == 0
    assert "12 questions have no choice that the model knows" in strange.notes[0]
    assert choice_mask(ANSWERS, ["the table", "2."]).tolist() == [False, False, True, True, False]


def test_the_softmax_is_over_the_choices():
    logits = torch.tensor([1.0, 2.0, 3.0, 0.0, 0.0])
    (first, share), (second, rest) = best_answers(ANSWERS, logits, 5, ["yes", "no"])
    assert (first, second) == ("no", "yes")
    assert share == pytest.approx(np.exp(2) / (np.exp(1) + np.exp(2)))
    assert share + rest == pytest.approx(1)
    assert len(best_answers(ANSWERS, logits, 3)) == 3


def test_a_result_is_told_as_json_and_as_a_table(store):
    given = questions(humans=("yes",) * 5 + ("2",) * 5)
    found = evaluate_answers(answerer(7, origin=False), given, store, AnswerConfig(bootstrap=FEW))
    told = to_dict(found, FEW, queries=True)
    assert told["metric"] == "vqa"
    assert told["task"] == "open-ended"
    assert len(told["queries"]) == 12
    assert told["queries"][0]["said"][0]["probability"] > 0
    table = answer_table(found, "mine", 0.95)
    assert table.header[3:] == ("all", "yes/no", "number", "other")
    printed = {row[1]: row[3:] for row in table.rows if row[0] == "the paper's"}
    assert printed["DAN table 1: DAN (ResNet)"] == ("64.3", "83.0", "39.1", "53.9")
    assert answer_table(found, "mine", 0.95, papers=False).rows[0][0] == "measured here"
    chosen = replace(found, choices=True)
    rows = {row[1]: row[3:] for row in answer_table(chosen, "mine", 0.95).rows}
    assert rows["DAN table 1: DAN (VGG)"] == ("67.0", "-", "-", "-")


def test_bad_input_is_named(store):
    model = answerer(7, origin=False)
    silent = QuestionSet("toy", tuple(replace(q, answers=()) for q in questions().questions))
    with pytest.raises(InputError, match="none of its 12 questions has an answer to judge by"):
        evaluate_answers(model, silent, store)
    strange = QuestionSet("other", tuple(asked(n, f"thing {n}") for n in range(4)))
    with pytest.raises(
        InputError, match=r"other: its answers \(thing 0, .*\) are none of the model's 5 \(yes"
    ):
        evaluate_answers(model, strange, store)
    with pytest.raises(InputError, match="has regions of width 7, the model takes 9"):
        evaluate_answers(answerer(9, origin=False), questions(), store)
    with pytest.raises(InputError, match="1 of the 13 asked images are not in the store"):
        evaluate_answers(model, questions(13), store)
    both = questions(humans=("yes", "no"))
    with pytest.raises(InputError, match="no question has a single answer"):
        evaluate_answers(model, both, store, AnswerConfig(single=True))
