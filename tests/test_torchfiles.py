"""PyTorch's files from anybody: nothing is run, nothing is inflated."""

import argparse
import errno
import io
import pickle
import struct
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import checkpoint_files
import search_parts
from crossgaze.errors import FileFormatError, InputError
from crossgaze.models.checkpoints import import_checkpoint
from crossgaze.models.pretrained import load
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


def bomb(path, how=zipfile.ZIP_DEFLATED, times=1000):
    """Write a file of torch.save whose one tensor is zeros, packed: a thousandth as large."""
    file, out = io.BytesIO(), io.BytesIO()
    torch.save({"a": torch.zeros(times * 256)}, file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w", how) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    path.write_bytes(out.getvalue())
    assert path.stat().st_size < max(times * 10, 5000)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    ("how", "said"),
    [
        (zipfile.ZIP_DEFLATED, "deflated"),
        (zipfile.ZIP_BZIP2, "packed by bzip2"),  # which Python inflates whole, whatever it declares
        (zipfile.ZIP_LZMA, "packed by LZMA"),
    ],
)
def test_a_zip_bomb_is_refused_before_it_unpacks(tmp_path, name, how, said):
    bomb(tmp_path / name, how)
    with pytest.raises(FileFormatError, match=rf"has 'archive/[^']+' {said}, wanted stored$"):
        READERS[name](tmp_path / name)


@pytest.mark.parametrize("name", READERS)
def test_parts_that_lie_over_each_other_are_a_bomb(tmp_path, name):
    path = tmp_path / name
    torch.save({"a": torch.zeros(2000)}, path)
    data = path.read_bytes()
    first = data.index(b"PK\x01\x02")  # the list of members, which names them once more each
    last = data.rindex(b"PK\x05\x06")
    listed, count = data[first:last], int.from_bytes(data[last + 10 : last + 12], "little")
    listed = listed[: listed.index(b"PK\x06\x06")] if b"PK\x06\x06" in listed else listed
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2 * count, 2 * count, 2 * len(listed), first, 0)
    path.write_bytes(data[:first] + 2 * listed + end)
    with pytest.raises(FileFormatError, match=r"bytes and unpacks to 1\d,\d{3}; torch.save packs"):
        READERS[name](path)


@pytest.mark.parametrize("name", READERS)
def test_what_torch_takes_for_a_zip_is_checked_as_one(tmp_path, name):
    """Python sees no zip where an end begins too near the file's own; torch looks at the start."""
    bomb(tmp_path / name)
    with (tmp_path / name).open("ab") as file:
        file.write(b"PK\x05\x06end")
    assert not zipfile.is_zipfile(tmp_path / name)
    with pytest.raises(FileFormatError, match="is not a readable zip file"):
        READERS[name](tmp_path / name)


def parts(data):
    """Return a zip's members and its list of them, whose places are of a zip without more."""
    end = data.rindex(b"PK\5\6")
    size, place = struct.unpack_from("<LL", data, end + 12)
    return (
        data[:place],
        data[place : place + size],
        int.from_bytes(data[end + 10 : end + 12], "little"),
    )


def moved(listed, by):
    """Return a list of members that lie `by` bytes later than it said."""
    out, at = bytearray(listed), 0
    while at < len(out):
        place = int.from_bytes(out[at + 42 : at + 46], "little") + by
        out[at + 42 : at + 46] = place.to_bytes(4, "little")
        at += 46 + sum(struct.unpack_from("<3H", out, at + 28))
    return bytes(out)


def two_lists(bad, good, wide):
    """Return a zip for torch whose list of members is `bad`'s, and for Python `good`'s.

    Python takes the list right before the end, torch the one at the place that is written there;
    with the records of 64 bits (`wide`) Python takes the record before the end, torch the one that
    is named.
    """
    (bad_members, bad_list, count), (members, listed, more) = parts(bad), parts(good)
    assert (count, len(bad_list)) == (more, len(listed))  # or Python would read half of one
    place, size = len(bad_members), len(bad_list)
    if not wide:
        # Python adds to each place how far off its list is, so here that is taken off.
        off = size + len(members)
        listed = moved(listed, place + size - off)
        end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, size, place, 0)
        return bad_members + bad_list + members + listed + end

    def record(where):
        return struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, where)

    before = bad_members + bad_list + record(place)
    start = len(before) + len(members)
    end = struct.pack("<4sLQL", b"PK\6\7", 0, place + size, 1)
    end += struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, *[0xFFFF] * 2, *[0xFFFFFFFF] * 2, 0)
    return before + members + moved(listed, len(before)) + record(start) + end


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("wide", [False, True])
def test_a_bomb_that_only_torch_sees_is_refused(tmp_path, name, wide):
    path = tmp_path / name
    bomb(path, times=8000)
    bad = path.read_bytes()
    bomb(path, zipfile.ZIP_STORED, times=1)
    path.write_bytes(two_lists(bad, path.read_bytes(), wide))
    with zipfile.ZipFile(path) as archive:  # as Python reads it, nothing is wrong
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.testzip() is None
    with torch.serialization.safe_globals([]):  # as torch reads it, it is the bomb
        assert len(torch.load(path, weights_only=True)["a"]) == 2_048_000
    with pytest.raises(FileFormatError, match=r"its end (says|is not where a record says)"):
        READERS[name](path)


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


def damaged(data, rng, count=24):
    """Give copies of a file with one bit flipped, and copies that are cut off."""
    for _ in range(count):
        place, bit = int(rng.integers(len(data))), int(rng.integers(8))
        yield data[:place] + bytes([data[place] ^ (1 << bit)]) + data[place + 1 :]
    for share in (0.0, 0.1, 0.5, 0.9, 0.999):
        yield data[: int(share * len(data))]


def test_no_flipped_bit_of_a_model_is_loaded_and_none_that_is_cut_off(tmp_path):
    search_parts.reranker().save_pretrained(tmp_path / "m")
    path = tmp_path / "m" / "model.safetensors"
    for bad in damaged(path.read_bytes(), np.random.default_rng(0)):
        path.write_bytes(bad)
        with pytest.raises(InputError, match=r"model\.safetensors"):
            load(tmp_path / "m")


def test_a_flipped_bit_of_a_checkpoint_changes_nothing_or_is_refused(tmp_path):
    """Some bits of a zip say nothing: dates, say. The tensors must be what they were."""
    torch.manual_seed(0)
    whole = {"a": torch.randn(500), "b": {"c": torch.arange(300)}}
    path = tmp_path / "checkpoint.pt"
    torch.save(whole, path)
    refused = 0
    for bad in damaged(path.read_bytes(), np.random.default_rng(1), count=200):
        path.write_bytes(bad)
        try:
            found = load_torch(path)
        except Exception:  # noqa: BLE001 (of many kinds, as it says; who calls it makes them one)
            refused += 1
            continue
        assert torch.equal(found["a"], whole["a"])
        assert torch.equal(found["b"]["c"], whole["b"]["c"])
    assert refused > 150


def test_a_flipped_weight_of_a_papers_checkpoint_is_named(tmp_path):
    path = checkpoint_files.save(
        tmp_path / "c.pth.tar", checkpoint_files.plain_states(), checkpoint_files.options()
    )
    data = bytearray(path.read_bytes())
    weight = torch.load(path, weights_only=False)["model"][0]["fc.weight"]
    place = data.find(weight.numpy().tobytes())
    data[place + 2] ^= 64
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"c\.pth\.tar: is damaged: .* is not what its checksum"):
        import_checkpoint(path, "scan")
