"""PyTorch's files from anybody: nothing is run, nothing is inflated."""

import argparse
import io
import pickle
import zipfile

import pytest
import torch

from crossgaze.errors import FileFormatError, InputError
from crossgaze.models.checkpoints import import_checkpoint
from crossgaze.torchfiles import load_torch
from crossgaze.training.snapshots import read_checkpoint
from crossgaze.vision.backbones.base import read_weights

READERS = {
    "model.pth.tar": lambda path: import_checkpoint(path, "scan"),
    "weights.pth": read_weights,
    "checkpoint.pt": lambda path: read_checkpoint(path.parent, torch.device("cpu")),
}


class Malice:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (open, (str(self.mark), "w"))


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("form", ["zip", "old", "pickle"])
def test_no_pickle_is_run_by_any_reader(tmp_path, name, form):
    raw = {"model": [Malice(tmp_path / "evil"), {}], "opt": argparse.Namespace(), "state": 1}
    if form == "pickle":
        (tmp_path / name).write_bytes(pickle.dumps(raw))
    else:
        torch.save(raw, tmp_path / name, _use_new_zipfile_serialization=form == "zip")
    with pytest.raises(FileFormatError):
        READERS[name](tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def bomb(path, times=1000):
    """Write a file of torch.save whose one tensor is zeros, compressed, `times` as large."""
    file, out = io.BytesIO(), io.BytesIO()
    torch.save({"a": torch.zeros(times * 256)}, file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    path.write_bytes(out.getvalue())
    assert path.stat().st_size < times * 10


@pytest.mark.parametrize("name", READERS)
def test_a_zip_bomb_is_refused_before_it_unpacks(tmp_path, name):
    bomb(tmp_path / name)
    with pytest.raises(
        InputError, match=r"bytes and unpacks to 1,0\d\d,\d{3}; torch.save packs no"
    ):
        READERS[name](tmp_path / name)


@pytest.mark.parametrize("new", [True, False])
def test_both_formats_of_torch_are_read(tmp_path, new):
    value = {"a": torch.arange(5.0), "b": [1, "two"]}
    torch.save(value, tmp_path / "x.pt", _use_new_zipfile_serialization=new)
    found = load_torch(tmp_path / "x.pt")
    assert torch.equal(found["a"], value["a"])
    assert found["b"] == value["b"]
