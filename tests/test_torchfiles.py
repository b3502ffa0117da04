"""PyTorch's files from anybody: nothing is run, nothing is inflated."""

import argparse
import errno
import io
import pickle
import zipfile

import pytest
import torch
from safetensors.torch import load_file

from crossgaze.errors import FileFormatError, InputError
from crossgaze.models.checkpoints import import_checkpoint
from crossgaze.torchfiles import load_torch, save_tensors, save_torch
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


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_is_called_so(tmp_path, number):
    class Full(io.BytesIO):
        def write(self, data):
            if self.tell() > 1000:
                raise OSError(number, "full")
            return super().write(data)

    with pytest.raises(OSError, match="full") as caught:
        save_torch(Full(), {"a": torch.ones(10_000)})
    assert caught.value.errno == number


def test_what_safetensors_cannot_write_is_what_the_system_said(tmp_path):
    with pytest.raises(OSError, match="No such file or directory") as caught:
        save_tensors(tmp_path / "no" / "x.safetensors", {"a": torch.ones(2)})
    assert caught.value.errno == errno.ENOENT
    save_tensors(tmp_path / "x.safetensors", {"a": torch.ones(2)})
    assert load_file(tmp_path / "x.safetensors")["a"].tolist() == [1, 1]
