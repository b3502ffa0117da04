import re
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.data.left_out import LeftOut
from crossgaze.data.questions.daquar import read_daquar
from crossgaze.errors import FileFormatError, InputError
from support import SHARED, needs_shared


def put(folder, pairs, train="image1\nimage2", test="image3", images=None):
    folder.mkdir(exist_ok=True)
    (folder / "all_qa_pairs.txt").write_bytes(pairs.encode())
    (folder / "train_images_list.txt").write_text(train)
    (folder / "test_images_list.txt").write_text(test)
    if images is not None:
        (folder / "images").mkdir()
        for name in images:
            (folder / "images" / name).touch()
    return folder


PAIRS = """what is left of the lamp in the image1 ?
bed
what is on the desk in the image3 ?
red_cup, book
how many cups are there in the image2 ?
12
is it dark in the image2 ?
yes
"""


def test_pairs_splits_and_files(tmp_path):
    files = ["image1.jpg", "image2.png", "image2.jpg", "image3.png", "notes.txt", "image1"]
    made = read_daquar(put(tmp_path, PAIRS, images=files))
    first, second, third, fourth = made.questions
    assert first.raw == "what is left of the lamp in the image1 ?"
    assert first.text == "what is left of the lamp?"
    assert (first.answers, first.answer, first.answer_type) == (("bed",), "bed", "other")
    assert (second.answers, second.answer) == (("red_cup", "book"), "red_cup, book")
    assert (third.answer_type, fourth.answer_type) == ("number", "yes/no")
    assert [q.id for q in made.questions] == ["1", "2", "3", "4"]
    assert [q.split for q in made.questions] == ["train", "test", "train", "train"]
    assert made.images == ("image1.jpg", "image3.png", "image2.jpg")
    assert (made.folder, made.left_out) == (tmp_path / "images", ())


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("what is it in the image1 ?", "what is it?"),
        ("what is it in this image1 ?", "what is it?"),
        ("what is it on the image1 ?", "what is it?"),
        ("what is it in image1 ?", "what is it?"),
        ("what is it in image1?", "what is it?"),
        ("what is it in the image 1 ?", "what is it?"),
        ("what is it in the image1", "what is it?"),
        ("what is it in the image1 ? ?", "what is it?"),
        ("What is it In The Image1 ?", "What is it?"),
        ("what is it in the image001 ?", "what is it?"),
        ("what is left of the image1 ?", "what is left of the image?"),
        ("what is on the table image1 ?", "what is on the table image?"),
        ("what is left of the image1 in the image1 ?", "what is left of the image?"),
        (
            "what in the image1 by the bin is red in the image1 ?",
            "what in the image by the bin is red?",
        ),
        ("what is in the cabin the image1 ?", "what is in the cabin the image?"),
    ],
)
def test_every_known_ending_is_read_and_no_number_is_left(tmp_path, raw, text):
    made = read_daquar(put(tmp_path, f"{raw}\nbed\n"))
    assert [(q.raw, q.text, q.image) for q in made.questions] == [(raw, text, "image1.jpg")]


def test_blank_lines_spaces_crlf_and_bom(tmp_path):
    pairs = "\ufeff  what is red in the image1 ?  \r\n\r\n bed , lamp\t\r\n \r\n"
    pairs += "why in the image3 ?\r\nno"
    lists = " image1.jpg \r\n\r\nimage2\r\n"
    first, second = read_daquar(put(tmp_path, pairs, train=lists)).questions
    assert (first.raw, first.answer) == ("what is red in the image1 ?", "bed , lamp")
    assert first.answers == ("bed", "lamp")
    assert (second.text, second.answer, second.split) == ("why?", "no", "test")


def test_without_images_or_with_images_elsewhere(tmp_path):
    folder = put(tmp_path / "a", PAIRS)
    made = read_daquar(folder)
    assert made.folder is None
    assert made.images == ("image1.jpg", "image3.jpg", "image2.jpg")
    other = put(tmp_path / "b", PAIRS, images=["image1.png", "image2.png", "image3.png"]) / "images"
    made = read_daquar(folder, images=other)
    assert (made.folder, made.images[0]) == (other, "image1.png")
    with pytest.raises(InputError, match="gone: no such folder, wanted the folder of the DAQUAR"):
        read_daquar(folder, images=tmp_path / "gone")


def test_what_is_left_out_is_counted(tmp_path):
    pairs = PAIRS + "why in the image77 ?\nno\nhow in the image77 ?\nno\n"
    made = read_daquar(put(tmp_path, pairs, test="image3\nimage4\n", images=["image2.jpg"]))
    assert [q.id for q in made.questions] == ["3", "4"]
    assert made.left_out == (
        LeftOut("questions about an image in neither list", 2, ("image77",)),
        LeftOut("listed images without a question", 1, ("image4",)),
        LeftOut("questions whose image file is missing", 2, ("image1.jpg", "image3.jpg")),
    )


GOOD = "why in the image1 ?\nno\n"


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        (
            f"{GOOD}\nwhat is red ?\nbed\n",
            "line 4: 'what is red ?' is not a question, wanted it to end 'in the imageN ?'",
        ),
        (f"{GOOD}no\n{GOOD}", "line 3: 'no' is not a question"),
        (f"{'w' * 99}\nno\n", f"line 1: '{'w' * 60}...' is not a question"),
        (f"why in the image1 ?\n\n{GOOD}", "line 1: the question has no answer line after it"),
        (f"{GOOD}why in the image1 ?\n", "line 3: the question has no answer line after it"),
        (
            f"{GOOD}why in the image1 ?\n\nbed, , lamp\n",
            "line 5: 'bed, , lamp' has nothing between two commas, wanted an answer",
        ),
        (f"{GOOD}why in the image1 ?\nbed,\n", "line 4: 'bed,' has nothing between two commas"),
        (
            "what in the image2 is red in the image1 ?\nbed\n",
            "line 1: names image2 and ends with image1, wanted one image",
        ),
        ("in the image1 ?\nbed\n", "line 1: there is no question before the image"),
        ("image1 ?\nbed\n", "line 1: there is no question before the image"),
    ],
)
def test_bad_lines_are_named(tmp_path, pairs, problem):
    folder = put(tmp_path, pairs)
    where = re.escape(f"{folder / 'all_qa_pairs.txt'}, {problem}")
    with pytest.raises(FileFormatError, match=where):
        read_daquar(folder)


@pytest.mark.parametrize("pairs", ["", "why in the image9 ?\nno\n"])
def test_no_question_at_all(tmp_path, pairs):
    with pytest.raises(FileFormatError, match="holds no question about an image of the train and"):
        read_daquar(put(tmp_path, pairs))


@pytest.mark.parametrize(
    ("train", "test", "problem"),
    [
        ("image1\nphoto2\n", "", "train_images_list.txt, line 2: 'photo2' is not an image, wanted"),
        ("image1\n\nimage1\n", "", "train_images_list.txt, line 3: image1 is already in the train"),
        (
            "image1\n",
            "image01",
            "test_images_list.txt, line 1: image1 is already in the train list",
        ),
    ],
)
def test_bad_lists_are_named(tmp_path, train, test, problem):
    with pytest.raises(FileFormatError, match=problem):
        read_daquar(put(tmp_path, GOOD, train, test))


@pytest.mark.parametrize(
    "name", ["all_qa_pairs.txt", "train_images_list.txt", "test_images_list.txt"]
)
def test_missing_files_are_named(tmp_path, name):
    folder = put(tmp_path, GOOD)
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"{name}: no such file, wanted DAQUAR's"):
        read_daquar(folder)


def test_missing_folder(tmp_path):
    with pytest.raises(InputError, match="no such folder, wanted the DAQUAR folder with all_qa"):
        read_daquar(tmp_path / "gone")


word = st.sampled_from(["in", "on", "the", "this", "of", "image", "red_cup", "bed", "7th"])
phrase = st.lists(word, min_size=1, max_size=6).map(" ".join)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(phrase, st.integers(1, 3), st.lists(word, min_size=1, max_size=4)), min_size=1
    )
)
def test_any_pairs_written_read_back(pairs):
    lines = [f"what {q} in the image{n} ?\n{', '.join(a)}\n" for q, n, a in pairs]
    with tempfile.TemporaryDirectory() as folder:
        made = read_daquar(put(Path(folder), "".join(lines)))
    assert [(q.text, q.image, q.answers) for q in made.questions] == [
        (f"what {q}?", f"image{n}.jpg", tuple(a)) for q, n, a in pairs
    ]


@pytest.fixture(scope="module")
def real():
    return read_daquar(SHARED / "data" / "daquar")


@needs_shared
def test_real_counts(real):
    assert len(real) == 12_468
    assert len(real.split("train")) == 6_795
    assert len(real.split("test")) == 5_673
    assert [str(entry) for entry in real.left_out] == [
        "2 listed images without a question (image366, image190)"
    ]
    assert (len(real.split("train").images), len(real.split("test").images)) == (794, 653)
    assert Counter(len(q.answers) for q in real.questions)[1] == 11_225


@needs_shared
def test_real_questions_are_all_there_and_hide_their_image(real):
    lines = (SHARED / "data" / "daquar" / "all_qa_pairs.txt").read_text().split("\n")
    assert [q.raw for q in real.questions] == lines[::2]
    assert [q.answer for q in real.questions] == lines[1::2]
    assert not [q.text for q in real.questions if re.search(r"image\s*\d", q.text)]
    for q in real.questions:
        # Nothing but the image is taken away: the words that stay are the words that were there.
        kept, words = q.text.rstrip("?").split(), re.sub(r"image\d+", "image", q.raw).split()
        assert words[: len(kept)] == kept
        assert words[len(kept) :] in (
            ["in", "the", "image", "?"],
            ["on", "the", "image", "?"],
            ["in", "this", "image", "?"],
            ["in", "image", "?"],
            ["?"],
        )


@needs_shared
def test_real_images_are_those_of_the_questions(real):
    assert real.folder is not None
    assert all((real.folder / name).is_file() for name in real.images)
    assert all(re.search(rf"\bimage{q.image[5:-4]} \?$", q.raw) for q in real.questions)
