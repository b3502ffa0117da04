import json
import re
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from crossgaze.data.left_out import LeftOut
from crossgaze.data.questions import easy_vqa
from crossgaze.data.questions.easy_vqa import read_easy_vqa
from crossgaze.data.questions.questions import Question
from crossgaze.errors import FileFormatError, InputError, MissingExtraError


def put(folder, train, test, answers="yes\nno\nred\n\n", images=3):
    (folder / "answers.txt").write_text(answers)
    for split, questions in (("train", train), ("test", test)):
        (folder / split / "images").mkdir(parents=True)
        (folder / split / "questions.json").write_text(json.dumps(questions))
        for number in range(images):
            (folder / split / "images" / f"{number}.png").touch()
    return folder


TRAIN = [["what colour is it?", "red", 2], ["is it red?", "yes", 0]]
TEST = [["is it red?", "no", 2]]


def test_both_splits_are_read(tmp_path):
    made = read_easy_vqa(put(tmp_path, TRAIN, TEST))
    red, yes, no = ("red",), ("yes",), ("no",)
    assert made.questions == (
        Question("train/0", "train/images/2.png", TRAIN[0][0], red, "red", "other", split="train"),
        Question(
            "train/1", "train/images/0.png", "is it red?", yes, "yes", "yes/no", split="train"
        ),
        Question("test/0", "test/images/2.png", "is it red?", no, "no", "yes/no", split="test"),
    )
    assert (made.name, made.folder, made.left_out) == ("easy-vqa", tmp_path, ())


def test_missing_images_are_counted(tmp_path):
    made = read_easy_vqa(put(tmp_path, TRAIN, TEST, images=1))
    assert [q.id for q in made.questions] == ["train/1"]
    assert made.left_out == (
        LeftOut(
            "questions whose image file is missing", 2, ("train/images/2.png", "test/images/2.png")
        ),
    )


@pytest.mark.parametrize(
    "entry",
    [
        ["why?", "red"],
        ["why?", "red", 1, 1],
        ["why?", 3, 1],
        [None, "red", 1],
        ["why?", "red", "1"],
        ["why?", "red", -1],
        ["why?", "red", True],
        ["why?", "red", False],
        {"question": "why?"},
    ],
)
def test_bad_entries_are_named(tmp_path, entry):
    folder = put(tmp_path, TRAIN, [*TEST, entry])
    problem = f"{folder / 'test' / 'questions.json'}: entry 1 is {entry}, wanted [question, answer"
    with pytest.raises(FileFormatError, match=re.escape(problem)):
        read_easy_vqa(folder)


@pytest.mark.parametrize("entries", [[], {"a": 1}])
def test_not_a_list(tmp_path, entries):
    with pytest.raises(FileFormatError, match=r"train/questions.json: wanted a list of \[question"):
        read_easy_vqa(put(tmp_path, entries, TEST))


def test_unknown_answer(tmp_path):
    problem = "train/questions.json: entry 0 has the answer 'red', which is not in answers.txt"
    with pytest.raises(FileFormatError, match=problem):
        read_easy_vqa(put(tmp_path, TRAIN, TEST, answers="yes\nno\n"))


def test_missing_parts(tmp_path):
    with pytest.raises(InputError, match="gone: no such folder, wanted the data folder of easy-vq"):
        read_easy_vqa(tmp_path / "gone")
    with pytest.raises(
        InputError, match=r"answers\.txt: no such file, wanted the answers of easy-v"
    ):
        read_easy_vqa(tmp_path)


@pytest.mark.parametrize("spec", [None, ModuleSpec("easy_vqa", None)])
def test_without_the_package_the_extra_is_named(monkeypatch, spec):
    monkeypatch.setattr(easy_vqa, "find_spec", lambda name: spec)
    with pytest.raises(
        MissingExtraError, match=r"easy-vqa needs the package easy-vqa: pip .*'crossgaze\[vqa\]'"
    ):
        read_easy_vqa()


def test_real_package():
    public = pytest.importorskip("easy_vqa")
    made = read_easy_vqa()
    assert made.left_out == ()
    assert set(made.most_frequent_answers(100)) == set(public.get_answers())
    assert len(public.get_answers()) == 13
    for split, questions, paths, count in (
        ("train", public.get_train_questions(), public.get_train_image_paths(), 38_575),
        ("test", public.get_test_questions(), public.get_test_image_paths(), 9_673),
    ):
        texts, answers, images = questions
        part = made.split(split)
        assert len(part) == count
        assert [q.text for q in part.questions] == texts
        assert [q.answer for q in part.questions] == answers
        assert [q.image for q in part.questions] == [
            Path(paths[number]).relative_to(made.folder).as_posix() for number in images
        ]
        assert len(part.images) == len(paths)
    kinds = made.describe()["splits"]
    assert kinds["train"]["answer_types"] == {"other": 10_168, "yes/no": 28_407}
    assert kinds["test"]["answer_types"] == {"other": 2_537, "yes/no": 7_136}
