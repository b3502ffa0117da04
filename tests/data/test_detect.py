"""Captions or questions."""

import json

import pytest

from crossgaze.data.detect import holds_questions
from crossgaze.errors import InputError


def test_what_is_there_tells(tmp_path):
    (tmp_path / "c.csv").write_text("image,caption\na.jpg,a cat\n")
    (tmp_path / "q.json").write_text(json.dumps({"questions": []}))
    (tmp_path / "coco.json").write_text(json.dumps({"images": [], "annotations": []}))
    assert holds_questions("easy-vqa")
    assert holds_questions(tmp_path / "q.json")
    assert not holds_questions(tmp_path / "c.csv")
    assert not holds_questions(tmp_path / "coco.json")


def test_vqas_files_are_questions(tmp_path):
    path = tmp_path / "v2_mscoco_train2014_annotations.json"
    path.write_text(json.dumps({"annotations": [{"question_id": 1}]}))
    assert holds_questions(path)  # its reader says that it is the answers
    assert holds_questions(tmp_path)
    (tmp_path / "v2_OpenEnded_mscoco_train2014_questions.json").write_text("{}")
    assert holds_questions(tmp_path)
    (tmp_path / "own").mkdir()
    for folder in (tmp_path, tmp_path / "own"):
        (folder / "captions.csv").write_text("image,caption\na.jpg,a cat\n")
    assert not holds_questions(tmp_path / "own")
    with pytest.raises(
        InputError, match=r"holds captions \(own\) and questions \(vqa\), say which"
    ):
        holds_questions(tmp_path)
    assert holds_questions(tmp_path, "vqa")


def test_a_format_decides(tmp_path):
    assert holds_questions(tmp_path, "daquar")
    assert not holds_questions(tmp_path, "flickr8k")
    with pytest.raises(InputError, match=r"format is 'dakuar' \(did you mean 'daquar'\?\)"):
        holds_questions(tmp_path, "dakuar")


def test_what_is_neither_is_named(tmp_path):
    with pytest.raises(InputError, match="no captions found, looked for"):
        holds_questions(tmp_path)
    with pytest.raises(InputError, match="no such file or folder, wanted a data set"):
        holds_questions(tmp_path / "no")
