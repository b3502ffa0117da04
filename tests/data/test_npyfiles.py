"""Arrays that are mapped, or named."""

import numpy as np
import pytest

from crossgaze.data.npyfiles import map_npy
from crossgaze.errors import FileFormatError, InputError


def npy(header):
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(96)


def test_an_array_is_mapped(tmp_path):
    array = np.arange(24.0).reshape(2, 3, 4)
    np.save(tmp_path / "x.npy", array)
    mapped = map_npy(tmp_path / "x.npy")
    assert isinstance(mapped, np.memmap)
    assert not mapped.flags.writeable
    np.testing.assert_array_equal(mapped, array)


def test_a_python_2_header_is_read_quietly(tmp_path):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L, 4L)}\n"
    (tmp_path / "x.npy").write_bytes(npy(header))
    assert map_npy(tmp_path / "x.npy").shape == (2, 3, 4)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04 a zip file",
        npy(b"((((((\n"),
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3, 4)}\n"),
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, True)}\n"),
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 999)}\n"),
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 3)}\n" % 10**30),
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d)}\n" % (1 << 62, 1 << 62)),
    ],
)
def test_files_that_are_no_npy(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"x.npy: is not a whole .npy file: .") as caught:
        map_npy(tmp_path / "x.npy")
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_opened(tmp_path):
    (tmp_path / "x.npy").mkdir()
    with pytest.raises(InputError, match=r"x.npy: is a folder, wanted a .npy file"):
        map_npy(tmp_path / "x.npy")
