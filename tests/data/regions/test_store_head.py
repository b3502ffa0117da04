"""A region store's folder and head that are something else, or were tampered with."""

import json

import numpy as np
import pytest

from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import FileFormatError, InputError


def write(folder):
    with RegionWriter(folder, 3, 4, dtype="float32", fields=["counts"]) as writer:
        writer.append(["a"], np.ones((1, 3, 4), np.float32))


def test_folders_that_are_something_else_are_left_alone(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file, wanted a folder"):
        RegionWriter(tmp_path / "file", 3, 4)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("x")
    with pytest.raises(InputError, match=r"holds 'cat.jpg'"):
        RegionWriter(tmp_path / "photos", 3, 4)
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]
    with pytest.raises(InputError, match="no such folder, wanted a region store"):
        RegionStore(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"it has no head.json"):
        RegionStore(tmp_path / "photos")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "does not read as a store's head"),
        ("[]", "does not read as a store's head"),
        ('{"format": "other"}', "format is 'other'"),
        ('{"format": "crossgaze-regions", "version": 9}', "version is 9"),
        ('{"format": "crossgaze-regions", "version": 1}', "KeyError"),
        ('{"format": "crossgaze-regions", "version": 1, "regions": 1e999, "width": 1}', "1e999"),
        ("[" * 100_000, "RecursionError"),
    ],
)
def test_a_head_that_is_not_one_is_named(tmp_path, text, message):
    (tmp_path / "head.json").write_text(text)
    with pytest.raises(FileFormatError, match=message):
        RegionStore(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"file": "../../etc/passwd"},
        {"dtype": "|O"},
        {"dtype": "nonsense"},
        {"shape": [3, -4]},
        {"shape": [2, 4]},
        {"external": "/x.npy", "row_step": 0, "offset": 0},
        {"external": "/x.npy", "row_step": 1, "offset": -1},
    ],
)
def test_a_head_that_was_tampered_with_is_refused(tmp_path, change):
    write(tmp_path / "s")
    path = tmp_path / "s" / "head.json"
    head = json.loads(path.read_text())
    head["fields"]["features"] |= change
    path.write_text(json.dumps(head))
    with pytest.raises(FileFormatError, match=r"head.json"):
        RegionStore(tmp_path / "s")


@pytest.mark.parametrize("change", [{"made_by": []}, {"made_by": None}, {"labels": "x"}])
def test_a_head_of_other_types_is_refused(tmp_path, change):
    write(tmp_path / "s")
    path = tmp_path / "s" / "head.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FileFormatError, match="must be keys and values"):
        RegionStore(tmp_path / "s")


@pytest.mark.parametrize("labels", [{"classes": 5}, {"classes": ["a", 5]}, {"classes": "ab"}])
def test_labels_that_are_no_texts_are_refused(tmp_path, labels):
    write(tmp_path / "s")
    head = json.loads((tmp_path / "s" / "head.json").read_text())
    (tmp_path / "s" / "head.json").write_text(json.dumps(head | {"labels": labels}))
    with pytest.raises(FileFormatError, match="labels of 'classes' must be a list of texts"):
        RegionStore(tmp_path / "s")
