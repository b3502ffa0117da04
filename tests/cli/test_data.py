"""`crossgaze data`."""

import json
import re

import pytest

import entity_files
from command_line import run
from support import SHARED, needs_shared


@pytest.fixture
def captions(tmp_path):
    rows = [f"{i}.jpg,a red dog number {i},{'train' if i else 'test'}" for i in range(5)]
    path = tmp_path / "c.csv"
    path.write_text("image,caption,split\n" + "\n".join(rows) + "\n")
    return path


def test_captions_and_a_vocabulary_of_them(capsys, tmp_path, captions):
    vocabulary = tmp_path / "v.json"
    words = ["data", captions, "--vocabulary", vocabulary]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert re.search(r"train +4 +4", out)
    known = json.loads(vocabulary.read_text())["word2idx"]
    assert set(known) == {"<pad>", "<start>", "<end>", "<unk>", "a", "red", "dog", "number"}
    found = json.loads(run(capsys, *words, "--min-count", 1, "--json")[1])
    assert found["vocabulary"] == {"file": str(vocabulary), "words": 12}  # and 1, 2, 3, 4


@pytest.mark.parametrize(
    ("rows", "has"), [("a.jpg,a cat,test\n", "test"), ("a.jpg,a cat,\n", "no splits at all")]
)
def test_a_vocabulary_needs_a_train_split(capsys, tmp_path, captions, rows, has):
    captions.write_text("image,caption,split\n" + rows)
    code, out, err = run(capsys, "data", captions, "--vocabulary", tmp_path / "v.json")
    assert (code, out) == (2, "")
    assert "wanted a train split to take the words from" in err
    assert f"the set has {has}\n" in err
    assert not (tmp_path / "v.json").exists()


def test_a_vocabulary_needs_a_folder_to_go_to(capsys, tmp_path, captions):
    code, _, err = run(capsys, "data", captions, "--vocabulary", tmp_path / "no" / "v.json")
    assert code == 2
    assert f"{tmp_path}/no: no such folder, wanted a folder to write the vocabulary to" in err
    code, _, err = run(capsys, "data", captions, "--vocabulary", tmp_path)
    assert code == 2
    assert "is a folder" in err


@pytest.mark.parametrize("option", ["--vocabulary", "--entities"])
def test_what_goes_with_captions_is_refused_on_questions(capsys, tmp_path, option):
    pytest.importorskip("easy_vqa")
    code, out, err = run(capsys, "data", "easy-vqa", option, tmp_path / "x")
    assert (code, out) == (2, "")
    assert f"{option[2:]}: goes with captions, easy-vqa holds questions" in err
    assert not list(tmp_path.iterdir())


def test_min_count_goes_with_a_vocabulary(capsys, captions):
    code, _, err = run(capsys, "data", captions, "--min-count", "2")
    assert code == 2
    assert "min-count: goes with --vocabulary" in err


def test_entities_and_what_was_left_out_of_them(capsys, tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("image,caption\n42.jpg,Two pups chase each other\n9.jpg,a cat\n")
    folder = entity_files.folder(tmp_path / "entities")
    (folder / "Sentences" / "notes.md").write_text("x")
    words = ["data", path, "--entities", folder]
    found = json.loads(run(capsys, *words, "--json")[1])
    assert found["entities"]["annotated_images"] == 1
    beside = [line for line in found["left_out"] if "notes.md" in line]
    assert beside == [
        "entities: 1 files beside them that are not ID.xml or ID.txt (Sentences/notes.md)"
    ]
    assert any("images without annotation (9.jpg)" in line for line in found["left_out"])
    out = run(capsys, *words)[1]
    assert "  left out: entities: 1 files beside them" in out
    assert "[" not in out  # no Python list in a table for people


def test_questions(capsys):
    pytest.importorskip("easy_vqa")
    code, out, _ = run(capsys, "data", "easy-vqa")
    assert code == 0
    assert "38,575" in out


@needs_shared
def test_the_real_sets(capsys):
    data = SHARED / "data"
    found = json.loads(run(capsys, "data", data / "flickr8k", "--json")[1])
    assert found["images"] == 8090
    assert found["captions"] == 40450
    found = json.loads(run(capsys, "data", data / "daquar", "--json")[1])
    assert found["questions"] == 12468
