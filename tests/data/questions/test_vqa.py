import json
import re
import string
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.data.left_out import LeftOut
from crossgaze.data.questions.questions import Question, QuestionSet
from crossgaze.data.questions.vqa import read_vqa
from crossgaze.errors import FileFormatError, InputError


def question(number, image, **more):
    return {"question_id": number, "image_id": image, "question": f"What is {number}?"} | more


def annotation(number, image, said, **more):
    listed = [
        {"answer": answer, "answer_confidence": "yes", "answer_id": i}
        for i, answer in enumerate(said, 1)
    ]
    return {
        "question_id": number,
        "image_id": image,
        "question_type": "what is",
        "answer_type": "other",
        "multiple_choice_answer": said[0] if said else "",
        "answers": listed,
    } | more


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a questions and an annotations file."""

    def put(questions, annotations=None, subtype="train2014", **head):
        top = {"info": {}, "data_type": "mscoco", "license": {}} | head
        if subtype is not None:
            top["data_subtype"] = subtype
        asked = tmp_path / "q.json"
        asked.write_text(json.dumps(top | {"task_type": "Open-Ended", "questions": questions}))
        if annotations is None:
            return asked, None
        noted = tmp_path / "a.json"
        noted.write_text(json.dumps(top | {"annotations": annotations}))
        return asked, noted

    return put


def names(folder, *files):
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_questions_and_annotations_are_joined_by_id(write):
    ten = ["red"] * 6 + ["dark red"] * 3 + [""]
    paths = write(
        [question(581921000, 581921), question(9001, 9)],
        [
            annotation(9001, 9, ["2"] * 10, answer_type="number"),
            annotation(581921000, 581921, ten),
        ],
    )
    assert read_vqa(*paths) == QuestionSet(
        "q",
        (
            Question(
                "581921000",
                "COCO_train2014_000000581921.jpg",
                "What is 581921000?",
                tuple(ten),
                "red",
                "other",
                split="train",
            ),
            Question(
                "9001",
                "COCO_train2014_000000000009.jpg",
                "What is 9001?",
                ("2",) * 10,
                "2",
                "number",
                split="train",
            ),
        ),
    )


def test_test_set_has_no_answers(write):
    asked, _ = write([question(1, 5)], subtype="test2015")
    (only,) = read_vqa(asked).questions
    assert (only.answers, only.answer, only.answer_type, only.split) == ((), None, "", "test")


def test_multiple_choice_file(write):
    choices = [f"choice {i}" for i in range(18)]
    asked, _ = write([question(1, 5, multiple_choices=choices), question(2, 5)])
    first, second = read_vqa(asked).questions
    assert first.choices == tuple(choices)
    assert second.choices == ()


def test_other_than_ten_answers_are_taken_and_told(write):
    paths = write(
        [question(1, 5), question(2, 5)],
        [annotation(1, 5, ["a"] * 10), annotation(2, 5, ["a", "b"])],
    )
    assert read_vqa(*paths).describe()["answers_per_question"] == {"2": 1, "10": 1}


def test_without_a_consensus_the_most_frequent_answer_is_it(write):
    note = annotation(1, 5, ["z", "b", "a", "a", "b"])
    del note["multiple_choice_answer"], note["answer_type"]
    (only,) = read_vqa(*write([question(1, 5)], [note])).questions
    assert (only.answer, only.answer_type) == ("b", "")


@pytest.mark.parametrize(
    ("subtype", "split", "image"),
    [
        ("train2014", "train", "COCO_train2014_000000000005.jpg"),
        ("val2014", "dev", "COCO_val2014_000000000005.jpg"),
        ("test-dev2015", "test", "COCO_test2015_000000000005.jpg"),
        ("trainval2014", "train", "000000000005.jpg"),
        ("minival", "", "COCO_minival_000000000005.jpg"),
        (None, "", "000000000005.jpg"),
    ],
)
def test_split_and_image_name_without_files(write, subtype, split, image):
    asked, _ = write([question(1, 5)], subtype=subtype)
    (only,) = read_vqa(asked).questions
    assert (only.split, only.image) == (split, image)
    assert read_vqa(asked, split="mine").questions[0].split == "mine"


@pytest.mark.parametrize(
    ("subtype", "file"),
    [
        ("train2014", "COCO_train2014_000000000005.jpg"),
        ("train2014", "train2014/COCO_train2014_000000000005.jpg"),
        ("train2014", "000000000005.jpg"),
        ("val2014", "val2017/000000000005.jpg"),
        ("test-dev2015", "COCO_test2015_000000000005.jpg"),
        ("trainval2014", "val2014/COCO_val2014_000000000005.jpg"),
        (None, "COCO_test2015_000000000005.jpg"),
    ],
)
def test_image_files_under_any_of_their_names(write, tmp_path, subtype, file):
    asked, _ = write([question(1, 5)], subtype=subtype)
    folder = names(tmp_path / "images", file)
    made = read_vqa(asked, images=folder)
    assert made.images == (file,)
    assert made.folder == folder


@pytest.mark.parametrize("subtype", ["train2015", "train2017", None])
def test_abstract_scenes(write, tmp_path, subtype):
    file = "abstract_v002_train2015_000000011779.png"
    asked, _ = write([question(1, 11779)], subtype=subtype, data_type="abstract_v002")
    assert read_vqa(asked, images=names(tmp_path / "images", file)).images == (file,)
    assert read_vqa(asked).images == (file if subtype else "000000011779.png",)


def test_missing_image_files_are_counted(write, tmp_path):
    asked, _ = write([question(1, 5), question(2, 6), question(3, 6)])
    made = read_vqa(asked, images=names(tmp_path / "images", "000000000005.jpg"))
    assert [q.id for q in made.questions] == ["1"]
    assert made.left_out == (
        LeftOut("questions whose image file is missing", 2, ("COCO_train2014_000000000006.jpg",)),
    )


def test_wrong_image_folder(write, tmp_path):
    asked, _ = write([question(1, 5)])
    with pytest.raises(InputError, match="has none of the 1 images asked about"):
        read_vqa(asked, images=names(tmp_path / "images", "000000000006.jpg"))
    with pytest.raises(InputError, match="gone: no such folder, wanted the folder of the images"):
        read_vqa(asked, images=tmp_path / "gone")


def test_unmatched_questions_and_annotations_are_counted(write):
    paths = write(
        [question(i, 5) for i in (1, 2, 3)],
        [annotation(i, 5, ["a"]) for i in (9, 2, 8, 7, 6)],
    )
    made = read_vqa(*paths)
    assert [q.id for q in made.questions] == ["2"]
    assert made.left_out == (
        LeftOut("questions without an annotation", 2, ("1", "3")),
        LeftOut("annotations without a question", 4, ("9", "8", "7")),
    )


def test_files_of_different_sets(write):
    asked, noted = write([question(1, 5)], [annotation(2, 5, ["a"])])
    problem = f"{noted}: none of its 1 annotations belongs to a question of {asked}"
    with pytest.raises(FileFormatError, match=re.escape(problem)):
        read_vqa(asked, noted)


BAD_QUESTIONS = [
    ([question(1, 5), 3], "questions[1] is 3, wanted an object"),
    (
        [question(1, 5), question(2, 5), question(1, 6)],
        "questions[2]: 'question_id' is 1, wanted another: questions[0] has this one",
    ),
    ([question(True, 5)], "questions[0]: 'question_id' is True, wanted an integer or a string"),
    ([question("", 5)], "questions[0]: 'question_id' is '', wanted an integer or a string"),
    ([{"image_id": 1}], "questions[0]: 'question_id' is missing, wanted an integer or a string"),
    ([question(1, "5")], "questions[0]: 'image_id' is '5', wanted an integer from 0"),
    ([question(1, -5)], "questions[0]: 'image_id' is -5, wanted an integer from 0"),
    ([question(1, False)], "questions[0]: 'image_id' is False, wanted an integer from 0"),
    ([question(1, 5, question=7)], "questions[0]: 'question' is 7, wanted a string"),
    ([question(1, 5), question(2, 5, question=" \n")], "questions[1]: 'question' is blank"),
    ([question(1, 5, question="\ud800")], "questions[0]: 'question' holds half of a character"),
    (
        [question(1, 5, multiple_choices="ab")],
        "questions[0]: 'multiple_choices' is 'ab', wanted a list of strings",
    ),
    (
        [question(1, 5, multiple_choices=["a", 2])],
        "questions[0]: 'multiple_choices' is ['a', 2], wanted a list of strings",
    ),
    ([], "has an empty list 'questions' (its keys: "),
    ({"1": question(1, 5)}, "has no list 'questions' (its keys: data_subtype, data_type, info, "),
]


@pytest.mark.parametrize(("questions", "problem"), BAD_QUESTIONS)
def test_bad_questions_are_named(write, questions, problem):
    asked, _ = write(questions)
    with pytest.raises(FileFormatError, match=re.escape(f"{asked}: {problem}")):
        read_vqa(asked)


BAD_ANNOTATIONS = [
    ([annotation(1, 5, "a"), "x" * 99], f"annotations[1] is '{'x' * 39}..., wanted an object"),
    (
        [annotation(1, 5, "a"), annotation(1, 5, "b")],
        "annotations[1]: 'question_id' is 1, wanted another: annotations[0] has this one",
    ),
    (
        [annotation(1, 6, "a")],
        "annotations[0]: 'image_id' is 6, wanted 5, as question 1 has in ",
    ),
    ([annotation(1, None, "a")], "annotations[0]: 'image_id' is None, wanted an integer from 0"),
    (
        [annotation(1, 5, "")],
        "annotations[0]: 'answers' is [], wanted a list of at least one answer",
    ),
    (
        [annotation(1, 5, "a", answers="a")],
        "annotations[0]: 'answers' is 'a', wanted a list of at least one answer",
    ),
    (
        [annotation(1, 5, "a", answers=[{"answer": "a"}, "b"])],
        "annotations[0]: answers[1] is 'b', wanted an object with an 'answer'",
    ),
    (
        [annotation(1, 5, "a", answers=[{"answer": 3}])],
        "annotations[0]: answers[0] is {'answer': 3}, wanted an object with an 'answer'",
    ),
    (
        [annotation(1, 5, "a", answer_type="colour")],
        "annotations[0]: 'answer_type' is 'colour', wanted one of yes/no, number, other",
    ),
    (
        [annotation(1, 5, "a", answer_type=1)],
        "annotations[0]: 'answer_type' is 1, wanted a string",
    ),
    (
        [annotation(1, 5, "a", multiple_choice_answer=None)],
        "annotations[0]: 'multiple_choice_answer' is None, wanted a string",
    ),
]


@pytest.mark.parametrize(("annotations", "problem"), BAD_ANNOTATIONS)
def test_bad_annotations_are_named(write, annotations, problem):
    asked, noted = write([question(1, 5)], annotations)
    with pytest.raises(FileFormatError, match=re.escape(f"{noted}: {problem}")):
        read_vqa(asked, noted)


def test_the_two_files_the_wrong_way_round(write):
    asked, noted = write([question(1, 5)], [annotation(1, 5, ["a"])])
    with pytest.raises(
        FileFormatError, match=r"a\.json: holds annotations \(the answers\), wanted the questions"
    ):
        read_vqa(noted, asked)


@pytest.mark.parametrize("subtype", ["../train2014", "a/b", "..", "a..b", "train 2014", "a\\b"])
def test_a_subtype_that_could_lead_out_of_a_folder(write, subtype):
    asked, _ = write([question(1, 5)], subtype=subtype)
    problem = f"{asked}: the top level: 'data_subtype' is {subtype!r}, wanted letters, digits and _"
    with pytest.raises(FileFormatError, match=re.escape(problem)):
        read_vqa(asked)


def test_questions_and_annotations_of_other_images(write):
    asked, noted = write([question(1, 5)], [annotation(1, 5, ["a"])], subtype="val2014")
    for subtype, agrees in [("train2014", False), ("val2014", True), (None, True)]:
        write([question(1, 5)], subtype=subtype)
        if agrees:
            assert len(read_vqa(asked, noted)) == 1
            continue
        problem = f"{noted}: the top level: 'data_subtype' is 'val2014', wanted 'train2014', as "
        with pytest.raises(FileFormatError, match=re.escape(problem)):
            read_vqa(asked, noted)


def test_bad_heads(write, tmp_path):
    asked, _ = write([question(1, 5)], subtype=2014)
    with pytest.raises(FileFormatError, match="the top level: 'data_subtype' is 2014, wanted a s"):
        read_vqa(asked)
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(FileFormatError, match=r"holds \[1\], wanted an object with a list 'que"):
        read_vqa(tmp_path / "list.json")
    with pytest.raises(InputError, match="no such file, wanted a VQA questions JSON file"):
        read_vqa(tmp_path / "gone.json")
    with pytest.raises(InputError, match="no such file, wanted a VQA annotations JSON file"):
        read_vqa(write([question(1, 5)])[0], tmp_path / "gone.json")


words = st.text(string.printable + "éß漢", max_size=12)
drawn_questions = st.builds(
    lambda number, image, text, answers, kind, choices: Question(
        str(number),
        f"COCO_val2014_{image:012d}.jpg",
        text,
        tuple(answers),
        answers[0],
        kind,
        tuple(choices),
        "dev",
    ),
    st.integers(0, 10**9),
    st.integers(0, 10**6),
    words.filter(str.strip),
    st.lists(words, min_size=1, max_size=10),
    st.sampled_from(["yes/no", "number", "other"]),
    st.lists(words, max_size=4),
)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(drawn_questions, min_size=1, max_size=6, unique_by=lambda q: q.id),
    st.randoms(use_true_random=False),
)
def test_any_set_written_as_vqa_reads_back(questions, random):
    asked, noted = [], []
    for q in questions:
        number, image = int(q.id), int(q.image[-16:-4])
        asked.append(question(number, image, question=q.text, multiple_choices=list(q.choices)))
        noted.append(annotation(number, image, q.answers, answer_type=q.answer_type))
    random.shuffle(noted)
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "q.json"), Path(folder, "a.json")
        first.write_text(json.dumps({"data_subtype": "val2014", "questions": asked}))
        second.write_text(json.dumps({"data_subtype": "val2014", "annotations": noted}))
        assert read_vqa(first, second) == QuestionSet("q", tuple(questions))
