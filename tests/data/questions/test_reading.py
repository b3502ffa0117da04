import json
import re

import pytest

from crossgaze.data.questions.reading import detect_format, read_questions
from crossgaze.errors import InputError
from support import SHARED, needs_shared


@pytest.fixture
def vqa(tmp_path):
    asked = [{"question_id": 1, "image_id": 5, "question": "Why?"}]
    noted = [{"question_id": 1, "image_id": 5, "answers": [{"answer": "no"}]}]
    questions, annotations = tmp_path / "q.JSON", tmp_path / "a.json"
    questions.write_text(json.dumps({"questions": asked}))
    annotations.write_text(json.dumps({"annotations": noted}))
    return questions, annotations


@pytest.fixture
def daquar(tmp_path):
    folder = tmp_path / "daquar"
    folder.mkdir()
    (folder / "all_qa_pairs.txt").write_text("why in the image1 ?\nno\n")
    (folder / "train_images_list.txt").write_text("image1")
    (folder / "test_images_list.txt").write_text("")
    (folder / "pictures").mkdir()
    (folder / "pictures" / "image1.png").touch()
    return folder


@pytest.fixture
def easy(tmp_path):
    folder = tmp_path / "easy-vqa"
    for split in ("train", "test"):
        (folder / split / "images").mkdir(parents=True)
        (folder / split / "questions.json").write_text('[["why?", "no", 0]]')
        (folder / split / "images" / "0.png").touch()
    (folder / "answers.txt").write_text("no\n")
    return folder


def test_vqa_is_detected(vqa, tmp_path):
    questions, annotations = vqa
    assert detect_format(questions) == "vqa"
    assert read_questions(str(questions)).questions[0].answer is None
    assert read_questions(questions, annotations).questions[0].answer == "no"
    (tmp_path / "000000000005.jpg").touch()
    assert read_questions(questions, images=tmp_path).folder == tmp_path


@pytest.fixture
def vqa_folder(vqa, tmp_path):
    folder = tmp_path / "v1"
    folder.mkdir()
    for task in ("OpenEnded", "MultipleChoice"):
        content = vqa[0].read_text().replace("Why?", f"{task}?")
        (folder / f"{task}_mscoco_train2014_questions.json").write_text(content)
    (folder / "mscoco_train2014_annotations.json").write_text(vqa[1].read_text())
    return folder


def test_a_folder_of_vqa_is_detected(vqa_folder, vqa):
    assert detect_format(vqa_folder) == "vqa"
    (only,) = read_questions(vqa_folder).questions
    assert (only.text, only.answer) == ("OpenEnded?", "no")
    (only,) = read_questions(vqa_folder, format="vqa", task="multiple-choice").questions
    assert (only.text, only.answer) == ("MultipleChoice?", "no")
    with pytest.raises(InputError, match="annotations: those in the folder are taken"):
        read_questions(vqa_folder, vqa[1])
    with pytest.raises(InputError, match=r"task: .*q.JSON has one task, only a folder of VQA's"):
        read_questions(vqa[0], task="open-ended")
    with pytest.raises(
        InputError, match=r"holds annotations \(the answers\), wanted the questions"
    ):
        read_questions(vqa_folder / "mscoco_train2014_annotations.json")


def test_daquar_is_detected(daquar):
    assert detect_format(daquar) == detect_format(daquar / "all_qa_pairs.txt") == "daquar"
    assert read_questions(daquar).name == "daquar"
    assert read_questions(daquar / "all_qa_pairs.txt").questions == read_questions(daquar).questions
    assert read_questions(daquar, images=daquar / "pictures").images == ("image1.png",)


def test_easy_vqa_is_detected(easy, monkeypatch):
    assert detect_format(easy) == "easy-vqa"
    assert read_questions(easy).folder == easy
    # A folder in reach wins over the package of the same name.
    monkeypatch.chdir(easy.parent)
    assert len(read_questions("easy-vqa")) == 2


def test_easy_vqa_by_name(tmp_path, monkeypatch):
    pytest.importorskip("easy_vqa")
    monkeypatch.chdir(tmp_path)
    assert len(read_questions("easy-vqa")) == 48_248


def test_a_given_format_is_not_detected(vqa, tmp_path):
    renamed = vqa[0].rename(tmp_path / "questions.txt")
    with pytest.raises(InputError, match=r"questions\.txt: not a question set, wanted a VQA"):
        read_questions(renamed)
    assert read_questions(renamed, format="vqa").questions[0].text == "Why?"
    with pytest.raises(InputError, match="is a file, wanted the DAQUAR folder"):
        read_questions(renamed, format="daquar")


def test_unknown_format(vqa):
    problem = "format is 'vqa2' (did you mean 'vqa'?), wanted one of vqa, daquar, easy-vqa"
    with pytest.raises(InputError, match=re.escape(problem)):
        read_questions(vqa[0], format="vqa2")


def test_arguments_that_do_not_belong(vqa, daquar, easy):
    with pytest.raises(InputError, match="annotations: daquar keeps its answers with its quest"):
        read_questions(daquar, vqa[1])
    with pytest.raises(InputError, match="annotations: easy-vqa keeps its answers with its quest"):
        read_questions(easy, vqa[1])
    with pytest.raises(InputError, match="images: easy-vqa keeps its images with its questions"):
        read_questions(easy, images=easy)


def test_no_such_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^easy_vqa: no such file or folder \(did you mean 'easy"):
        read_questions("easy_vqa")
    with pytest.raises(InputError, match=r"gone\.json: no such file or folder, wanted a question"):
        read_questions(tmp_path / "gone.json")
    with pytest.raises(InputError, match=r"not a question set, wanted .* with all_qa_pairs\.txt"):
        read_questions(tmp_path)


@needs_shared
def test_real_daquar_is_detected():
    assert len(read_questions(SHARED / "data" / "daquar")) == 12_468
