import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.data.captioned import LeftOut
from crossgaze.data.questions import (
    Question,
    QuestionSet,
    image_files,
    left_out_questions,
    load_json,
    load_lines,
    with_image_file,
)
from crossgaze.errors import FileFormatError, InputError


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


def test_lines_with_bom_and_any_line_end(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree \xc3\xa9\n\xe2\x80\xa8four")
    # U+2028 is not a line end in these formats, though str.splitlines takes it for one.
    assert load_lines(path, "text") == ["one", "two", "three é", "\u2028four"]


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_bad_bytes_are_named_with_their_line(tmp_path, start):
    path = tmp_path / "a.txt"
    path.write_bytes(start + b"one\ntwo\nthr\xff\nfour\n")
    with pytest.raises(FileFormatError, match=r"a\.txt, line 3: byte 0xff is not UTF-8 text"):
        load_lines(path, "text")


def test_missing_file_and_unreadable_file(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"a\.txt: no such file, wanted some text"):
        load_lines(tmp_path / "a.txt", "some text")
    (tmp_path / "a.txt").touch()

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InputError, match=r"a.txt: cannot be read \(Permission denied\)"):
        load_lines(tmp_path / "a.txt", "some text")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1,\n "b" 2}', "a.json, line 2: is not JSON: Expecting ':' delimiter"),
        ("", "a.json, line 1: is not JSON: Expecting value"),
        ("[" * 100_000, "a.json: is not usable JSON: maximum recursion depth"),
        ("9" * 5_000, "a.json: is not usable JSON: Exceeds the limit"),
    ],
)
def test_bad_json_is_named(tmp_path, text, problem):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=problem):
        load_json(path, "JSON")


def test_good_json_is_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf{"a":\r\n [1]}')
    assert load_json(path, "JSON") == {"a": [1]}
