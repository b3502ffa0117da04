import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.data.left_out import LeftOut
from crossgaze.data.questions.questions import (
    Question,
    QuestionSet,
    image_files,
    left_out_questions,
    with_image_file,
)
from crossgaze.errors import InputError


def asked(number, image="a.jpg", answer=None, kind="", split=""):
    answers = () if answer is None else (answer,)
    return Question(str(number), image, "what?", answers, answer, kind, split=split)


TOY = QuestionSet(
    "toy",
    (
        asked(1, "b.jpg", "red", "other", "train"),
        asked(2, "a.jpg", "2", "number", "train"),
        asked(3, "b.jpg", "red", "other", "test"),
        asked(4, "c.jpg", None, "", ""),
    ),
    Path("pictures"),
    (LeftOut("questions lost", 2),),
)


def test_raw_is_the_text_unless_given():
    assert asked(1).raw == "what?"
    assert Question("1", "a", "what?", raw="what in the image1 ?").raw == "what in the image1 ?"


def test_images_are_unique_and_in_order():
    assert TOY.images == ("b.jpg", "a.jpg", "c.jpg")
    assert len(TOY) == 4


def test_split_keeps_order_and_everything_else():
    both = TOY.split("train", "test")
    assert [q.id for q in both.questions] == ["1", "2", "3"]
    assert (both.name, both.folder, both.left_out) == ("toy", Path("pictures"), TOY.left_out)
    assert [q.id for q in TOY.split("").questions] == ["4"]


def test_unknown_split_is_named_with_the_nearest():
    with pytest.raises(
        InputError, match=r"toy: no split 'tests' \(did you mean 'test'\?\), it has"
    ):
        TOY.split("train", "tests")


def test_describe_counts_by_split_and_answer_type():
    assert TOY.describe() == {
        "name": "toy",
        "questions": 4,
        "images": 3,
        "answer_types": {"(none)": 1, "number": 1, "other": 2},
        "answers": 2,
        "answers_per_question": {"0": 1, "1": 3},
        "splits": {
            "(none)": {"questions": 1, "images": 1, "answer_types": {"(none)": 1}},
            "test": {"questions": 1, "images": 1, "answer_types": {"other": 1}},
            "train": {"questions": 2, "images": 2, "answer_types": {"number": 1, "other": 1}},
        },
        "left_out": ["2 questions lost"],
    }
    json.dumps(TOY.describe())


def test_repeated_id_is_refused():
    with pytest.raises(InputError, match="t: question id '7' occurs 2 times"):
        QuestionSet("t", (asked(6), asked(7), asked(7)))


def test_unknown_answer_type_is_refused():
    with pytest.raises(InputError, match="t: question '7' has answer type 'colour', wanted one of"):
        QuestionSet("t", (asked(6), asked(7, kind="colour")))


@given(st.lists(st.none() | st.sampled_from("abcde")), st.integers(1, 6))
def test_most_frequent_answers_are_counted_and_ties_are_alphabetical(answers, count):
    made = QuestionSet("t", tuple(asked(i, answer=answer) for i, answer in enumerate(answers)))
    left = [answer for answer in answers if answer is not None]
    if not left:
        with pytest.raises(InputError, match=f"none of its {len(answers)} questions has an answer"):
            made.most_frequent_answers(count)
        return
    wanted = []
    while left and len(wanted) < count:
        top = max(left.count(answer) for answer in left)
        winner = min(answer for answer in left if left.count(answer) == top)
        wanted.append(winner)
        left = [answer for answer in left if answer != winner]
    assert made.most_frequent_answers(count) == tuple(wanted)


def test_most_frequent_answers_wants_a_count():
    with pytest.raises(InputError, match="count is 0, wanted at least 1"):
        TOY.most_frequent_answers(0)


def test_image_files_looks_one_folder_deeper_and_prefers_the_top(tmp_path):
    for name in ("a.jpg", "x/a.jpg", "x/b.jpg", "y/b.jpg", "y/deep/c.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert image_files(tmp_path) == {"a.jpg": "a.jpg", "b.jpg": "x/b.jpg"}


def test_image_files_of_an_unreadable_folder(tmp_path):
    with pytest.raises(InputError, match=r"gone: cannot be listed \(No such file or directory\)"):
        image_files(tmp_path / "gone")


def test_questions_without_image_file_are_counted():
    taken, left_out = with_image_file(TOY.questions, {"a.jpg", "c.jpg"}, Path("pictures"))
    assert [q.id for q in taken] == ["2", "4"]
    assert left_out == (LeftOut("questions whose image file is missing", 2, ("b.jpg",)),)
    assert with_image_file(TOY.questions, set(TOY.images), Path()) == (TOY.questions, ())


def test_no_image_file_at_all_is_an_error():
    with pytest.raises(InputError, match=r"pictures: has none of the 3 images .* is 'b\.jpg'"):
        with_image_file(TOY.questions, {"z.jpg"}, Path("pictures"))


def test_left_out_questions_shows_each_image_once():
    assert left_out_questions("lost", list("aabcd")) == (LeftOut("lost", 5, ("a", "b", "c")),)
    assert left_out_questions("lost", []) == ()
