"""Zips from anybody: one list of members, and no more of them than fit."""

import io
import os
import struct
import zipfile

import numpy as np
import pytest
import torch

from crossgaze.errors import FileFormatError, InputError
from crossgaze.zips import PACKED, open_zip


def write(path, content=b"x", comment=b"", **options):
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("a.txt", "w", **options) as member:
            member.write(content)
        archive.comment = comment


def numpys(path):
    with path.open("wb") as file:
        np.savez(file, a=np.ones(3), b=np.zeros(2))


def listed(path, count, name=b"%04x"):
    """Write a zip that is nothing but a list of `count` members."""
    head = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, *[0] * 8, len(name % 0), *[0] * 6)
    entries = b"".join(head + name % number for number in range(count))
    few, size = min(count, 0xFFFF), len(entries)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, few, few, size, 0, 0)
    path.write_bytes(entries + end)


def test_zips_of_common_tools_are_read(tmp_path):
    path = tmp_path / "a.zip"
    made = {
        "plain": lambda: write(path),
        "with a comment": lambda: write(path, comment=b"a comment" * 1000),
        "of 64 bits": lambda: write(path, force_zip64=True),
        "empty": lambda: zipfile.ZipFile(path, "w").close(),
        "NumPy's": lambda: numpys(path),
        "torch's": lambda: torch.save({"a": torch.ones(3)}, path),
    }
    for make in made.values():
        make()
        with zipfile.ZipFile(path) as archive, open_zip(path) as found:
            assert found.namelist() == archive.namelist()
    write(path, comment=b"a comment")
    with path.open("ab") as file:  # as some downloads end
        file.write(b"\0" * 100)
    with open_zip(path) as archive:
        assert archive.namelist() == ["a.txt"]


@pytest.mark.parametrize("wide", [False, True])
def test_what_does_not_lie_where_its_end_says_is_refused(tmp_path, wide):
    path = tmp_path / "a.zip"
    write(path, force_zip64=wide)
    whole = path.read_bytes()
    path.write_bytes(b"#!/bin/sh\n" + whole)  # Python reads it; torch looks elsewhere
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["a.txt"]
    with pytest.raises(FileFormatError, match=r"a\.zip: has its list of members somewhere else"):
        open_zip(path)


def test_a_record_of_64_bits_that_is_not_there_is_refused(tmp_path):
    path = tmp_path / "a.zip"
    write(path)
    whole = path.read_bytes()
    place = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)
    path.write_bytes(whole[:-22] + place + whole[-22:])
    with pytest.raises(FileFormatError, match="its end is not where a record says that it is"):
        open_zip(path)


def test_too_many_members_are_refused_before_python_lists_them(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    listed(path, 100)
    with open_zip(path, PACKED, most=100) as archive:
        assert len(archive.namelist()) == 100
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(FileFormatError, match=r"a\.zip: has 100 members, wanted 99 at most"):
        open_zip(path, PACKED, most=99)
    listed(path, 20, b"a" * 1000 + b"%04x")
    with pytest.raises(
        FileFormatError, match=r"a list of members of 2\d,\d+ bytes, wanted 5,120 at"
    ):
        open_zip(path, PACKED, most=20)
    listed(path, 100)
    with path.open("r+b") as file:  # says that it has one, which Python does not go by
        file.seek(-12, io.SEEK_END)
        file.write(struct.pack("<H", 1))
    with pytest.raises(FileFormatError, match="has 100 members"):
        open_zip(path, PACKED, most=99)


def test_what_has_no_end_and_what_is_no_file_is_refused(tmp_path):
    path = tmp_path / "a.zip"
    for content in (b"", b"PK\5\6", b"PK\3\4" + bytes(100), b"x" * 100_000):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"is not a readable zip file: it has no end"):
            open_zip(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match=r"a\.zip: is a pipe, socket or device, wanted a zip"):
        open_zip(path)
