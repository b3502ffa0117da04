"""Small photographs that would take minutes to decode: refused, and no other is."""

import io
import struct

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from crossgaze.vision import bombs
from crossgaze.vision.bombs import jpeg_problem
from crossgaze.vision.photos import PhotoError
from crossgaze.vision.taken import taken_at
from photo_files import UPRIGHT, encode, exif, read, repeated_tiff, scans, smooth


def segment(kind, content=b""):
    return bytes([0xFF, kind]) + struct.pack(">H", len(content) + 2) + content


SCANS = "has more than 100 scans, wanted a photograph, which has about ten at most"


def test_a_jpeg_of_many_scans_is_refused_before_it_is_decoded(monkeypatch):
    few = read(scans(100))
    assert few.pixels.shape == (1024, 1024, 3)
    assert len(np.unique(few.pixels)) == 1
    assert read(scans(20, 0xCA)).pixels.shape == (1024, 1024, 3)  # in arithmetic coding
    monkeypatch.setattr(Image.Image, "load", None)  # nothing is decoded
    with pytest.raises(PhotoError, match=f"photograph: {SCANS}"):
        read(scans(101))
    with pytest.raises(PhotoError, match="has more than 20 scans"):
        read(scans(21, 0xCA))


@pytest.mark.parametrize(
    "hidden",
    [
        segment(0xE1, b"\xff\xda" * 500),  # scans in metadata are none
        segment(0xFE, b"\xff\xd9"),  # and an end there is none
        b"\xff" * 50,  # padding
        b"\xff\0\xff\xd0\0\1",
    ],
)
def test_what_stands_before_the_scans_neither_hides_nor_makes_any(hidden):
    assert read(scans(100, before=hidden)).pixels.shape == (1024, 1024, 3)
    with pytest.raises(PhotoError, match=SCANS):
        read(scans(101, before=hidden))


def test_a_length_that_only_the_guard_would_believe_hides_nothing():
    """libjpeg passes over two bytes of these, so what comes after them is counted."""
    for kind in (0x01, 0x02, 0xD0, 0xD8, 0xC8, 0xF0):
        trick = bytes([0xFF, kind]) + struct.pack(">H", 60_000)
        assert jpeg_problem(b"\xff\xd8" + trick + scans(101)[2:]) == SCANS


def test_metadata_that_pillow_would_join_for_minutes_is_refused():
    part = segment(0xE1, b"Exif\0\0" + b"a" * 10)
    for read_it in (lambda data: jpeg_problem(data), lambda data: _message(data)):
        assert "has more than 1,000 segments" in read_it(scans(2, before=part * 1001))
    assert jpeg_problem(scans(2, before=part * 900)) is None
    dated = encode(smooth(24, 40), "JPEG", exif=exif(6))
    assert taken_at(dated[:2] + part * 1001 + dated[2:]) is None
    for junk in (b"\xff" * 100_005, bytes(100_005)):
        begun = segment(0xE0) + junk
        assert "more than 100,000 bytes before its pixels" in _message(b"\xff\xd8" + begun)
        assert "more than 100,000 bytes before" in jpeg_problem(scans(2, before=begun))


def _message(data):
    with pytest.raises(PhotoError) as caught:
        read(data)
    return str(caught.value)


@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"progressive": True, "restart": 1}]
)
def test_jpegs_of_encoders_are_read(options):
    options = {"restart_marker_blocks": 1, **options} if options.pop("restart", 0) else options
    data = encode(UPRIGHT.repeat(20, 0).repeat(20, 1), "JPEG", quality=95, exif=exif(1), **options)
    assert jpeg_problem(data) is None
    # A film behind the photograph, as some telephones put it there, may hold anything.
    assert jpeg_problem(data + b"\xff\xda" * 1000) is None
    assert read(data + b"\xff\xda" * 1000).pixels.shape == (480, 800, 3)


def test_a_tiff_that_lists_its_strips_over_and_over_is_refused(monkeypatch):
    assert read(repeated_tiff(100, 2)).pixels.shape == (100, 100, 3)
    with pytest.raises(PhotoError, match=r"cannot be read as TIFF: its 40 parts cover it 20 times"):
        read(repeated_tiff(100, 40))
    monkeypatch.setattr(bombs, "MAX_PARTS", 39)
    with pytest.raises(PhotoError, match=r"as TIFF: 40 strips or tiles, wanted 39 at most"):
        read(repeated_tiff(100, 40))


def test_tiffs_of_many_strips_are_read():
    strips = TiffImagePlugin.ImageFileDirectory_v2()
    strips[TiffImagePlugin.ROWSPERSTRIP] = 1
    file = io.BytesIO()
    Image.fromarray(UPRIGHT).save(file, "TIFF", tiffinfo=strips, strip_size=1)
    found = Image.open(io.BytesIO(file.getvalue()))
    assert len(found.tag_v2[TiffImagePlugin.STRIPOFFSETS]) == len(UPRIGHT)
    np.testing.assert_array_equal(read(file.getvalue()).pixels, UPRIGHT)
