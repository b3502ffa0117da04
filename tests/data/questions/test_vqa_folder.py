import json
import re

import pytest

from crossgaze.data.questions.vqa_folder import holds_vqa, read_vqa_folder
from crossgaze.errors import FileFormatError, InputError


def put(folder, name, numbers, subtype, **more):
    """Write questions or annotations, as the name says, one for each number."""
    kind = "questions" if "questions" in name else "annotations"
    entries = []
    for number in numbers:
        entry = {"question_id": number, "image_id": number}
        if kind == "questions":
            entry["question"] = f"What is {number}?"
        else:
            entry["answers"] = [{"answer": f"answer {number}"}] * 10
        entries.append(entry | more)
    head = {"data_type": "mscoco", "data_subtype": subtype}
    (folder / name).write_text(json.dumps(head | {kind: entries}))


@pytest.fixture
def v2(tmp_path):
    folder = tmp_path / "vqa"
    folder.mkdir()
    put(folder, "v2_OpenEnded_mscoco_val2014_questions.json", [3], "val2014")
    put(folder, "v2_OpenEnded_mscoco_train2014_questions.json", [1, 2], "train2014")
    put(folder, "v2_OpenEnded_mscoco_test2015_questions.json", [4, 5], "test2015")
    put(folder, "v2_mscoco_val2014_annotations.json", [3], "val2014")
    put(folder, "v2_mscoco_train2014_annotations.json", [1, 2, 9], "train2014")
    (folder / "v2_mscoco_train2014_complementary_pairs.json").write_text("[]")
    return folder


def test_every_split_with_its_annotations(v2):
    found = read_vqa_folder(v2)
    assert found.name == "vqa"
    assert [(q.id, q.split, q.answer) for q in found.questions] == [
        ("1", "train", "answer 1"),
        ("2", "train", "answer 2"),
        ("3", "dev", "answer 3"),
        ("4", "test", None),
        ("5", "test", None),
    ]
    assert [str(left) for left in found.left_out] == ["1 annotations without a question (9)"]


def test_test_dev_is_part_of_test(v2):
    name = "v2_OpenEnded_mscoco_test-dev2015_questions.json"
    put(v2, name, [5], "test-dev2015")
    found = read_vqa_folder(v2)
    assert len(found) == 5
    assert str(found.left_out[0]) == f"1 question files that are part of another ({name})"
    (v2 / "v2_OpenEnded_mscoco_test2015_questions.json").unlink()
    assert [q.id for q in read_vqa_folder(v2).split("test").questions] == ["5"]


def test_the_task_decides_between_the_two_files_of_v1(tmp_path):
    put(tmp_path, "OpenEnded_mscoco_val2014_questions.json", [1], "val2014")
    put(tmp_path, "MultipleChoice_mscoco_val2014_questions.json", [1], "val2014",
        multiple_choices=["a", "b"])  # fmt: skip
    put(tmp_path, "mscoco_val2014_annotations.json", [1], "val2014")
    for task, choices, other in [
        ("open-ended", (), "MultipleChoice"),
        ("multiple-choice", ("a", "b"), "OpenEnded"),
    ]:
        found = read_vqa_folder(tmp_path, task=task)
        assert [(q.choices, q.answer) for q in found.questions] == [(choices, "answer 1")]
        assert [str(left) for left in found.left_out] == [
            f"1 question files of the other task ({other}_mscoco_val2014_questions.json)"
        ]
    (tmp_path / "OpenEnded_mscoco_val2014_questions.json").unlink()
    with pytest.raises(InputError, match=r"has no open-ended questions, .*task='multiple-choi"):
        read_vqa_folder(tmp_path)
    with pytest.raises(InputError, match=r"task is 'multi' .*wanted one of open-ended, multiple-"):
        read_vqa_folder(tmp_path, task="multi")


def test_annotations_without_questions_are_counted(v2):
    (v2 / "v2_OpenEnded_mscoco_val2014_questions.json").unlink()
    found = read_vqa_folder(v2)
    assert [str(left) for left in found.left_out] == [
        "1 annotation files without their questions (v2_mscoco_val2014_annotations.json)",
        "1 annotations without a question (9)",
    ]


def test_images_of_one_split_are_enough(v2, tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    (images / "COCO_train2014_000000000002.jpg").touch()
    found = read_vqa_folder(v2, images=images)
    assert [q.id for q in found.questions] == ["2"]
    assert str(found.left_out[-1]).startswith("4 questions whose image file is missing")


@pytest.mark.parametrize(
    "name",
    [
        "OpenEnded_mscoco_val2014_questions.json",
        "v2_OpenEnded_abstract_v002_val2015_questions.json",
    ],
)
def test_two_sets_in_one_folder_are_refused(v2, name):
    put(v2, name, [8], "val2014")
    with pytest.raises(InputError, match=f"{name}.*different sets; name the file to read"):
        read_vqa_folder(v2)


def test_problems_are_named(v2, tmp_path):
    put(v2, "v2_mscoco_val2014_annotations.json", [3], "train2014")
    problem = "'data_subtype' is 'train2014', wanted 'val2014', as "
    with pytest.raises(FileFormatError, match=re.escape(problem)):
        read_vqa_folder(v2)
    put(v2, "v2_mscoco_val2014_annotations.json", [3], "val2014")
    put(v2, "v2_OpenEnded_mscoco_test2015_questions.json", [3], "test2015")
    with pytest.raises(InputError, match="vqa: question id '3' occurs 2 times"):
        read_vqa_folder(v2)
    with pytest.raises(InputError, match=r"images: no such folder, wanted the folder of the"):
        read_vqa_folder(v2, images=tmp_path / "images")
    with pytest.raises(InputError, match="gone: no such folder, wanted a folder with VQA's JSON"):
        read_vqa_folder(tmp_path / "gone")


def test_names_that_are_vqas(tmp_path):
    for name in (
        "OpenEnded_mscoco_annotations.json",
        "mscoco_val2014_questions.json",  # which task?
        "OpenEnded_mscoco_val2014_annotations.json",
        "captions_val2014.json",
    ):
        (tmp_path / name).write_text("{}")
    (tmp_path / "OpenEnded_mscoco_val2014_questions.json").mkdir()
    assert not holds_vqa(tmp_path)
    with pytest.raises(InputError, match="has no VQA questions, looked for names such as v2_Ope"):
        read_vqa_folder(tmp_path)
    (tmp_path / "mscoco_val2014_annotations.json").write_text("{}")
    assert holds_vqa(tmp_path)
    with pytest.raises(InputError, match="has no VQA questions"):
        read_vqa_folder(tmp_path)


def test_a_folder_that_cannot_be_listed(v2, monkeypatch):
    def refuse(folder):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(v2), "iterdir", refuse)
    with pytest.raises(InputError, match=r"vqa: cannot be listed \(Permission denied\)"):
        holds_vqa(v2)
