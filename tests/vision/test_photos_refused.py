"""Photographs that cannot be read, and the guards in front of them."""

import io
import logging
import os
import pickle
import struct
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from crossgaze.vision import photos
from crossgaze.vision.photos import MAX_PIXELS, PhotoError, read_photo
from photo_files import UPRIGHT, encode, exif, png, read, smooth
from support import SHARED, needs_shared


# An upright picture in which no two of the eight orientations look the same.
def refusal(source, **options):
    with pytest.raises(PhotoError) as caught:
        read_photo(source, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_files_that_cannot_be_photographs(tmp_path):
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "text.jpg").write_text("a caption, not a photograph")
    (tmp_path / "riff.webp").write_bytes(b"RIFF\x10\0\0\0WAVEfmt ")
    os.mkfifo(tmp_path / "pipe.jpg")
    for name, problem in [
        ("empty.jpg", "is empty, wanted a JPEG, PNG, WebP, GIF, BMP or TIFF photograph"),
        ("text.jpg", "is not an image (it begins with b'a captio'), wanted a JPEG"),
        ("riff.webp", "is not an image (it begins with b'RIFF"),
        ("none.jpg", "no such file, wanted a JPEG"),
        ("", "is a folder, wanted a JPEG"),
        ("pipe.jpg", "is a pipe, socket or device, wanted a JPEG"),
        ("text.jpg/a.jpg", "cannot be opened (Not a directory)"),
        ("x" * 300, "cannot be opened (File name too long)"),
    ]:
        path = tmp_path / name
        assert refusal(path).startswith(f"{path}: {problem}")
        assert refusal(str(path)) == refusal(path)
    assert refusal("/dev/zero").startswith("/dev/zero: is a pipe, socket or device")
    assert refusal("a\0b.jpg").startswith(r"'a\x00b.jpg': cannot be opened (embedded null byte)")


def test_names_that_cannot_be_printed_are_quoted(tmp_path):
    assert r"caf\udce9.jpg': no such file" in refusal(os.fsdecode(b"caf\xe9.jpg"))
    assert r"two\nlines.jpg': no such file" in refusal(tmp_path / "two\nlines.jpg")


def test_a_file_that_may_not_be_opened(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    path.write_bytes(encode(UPRIGHT, "PNG"))

    def refuse(*_args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(photos.Path, "open", refuse)
    assert refusal(path).startswith(f"{path}: cannot be opened (Permission denied)")


def test_a_file_of_many_bytes_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "a.bmp"
    with path.open("wb") as file:
        file.write(b"BM")
        file.truncate(photos.MAX_BYTES + 1)  # sparse: takes no room
    assert refusal(path) == f"{path}: is larger than 1,073,741,824 bytes, wanted a photograph"
    monkeypatch.setattr(photos, "MAX_BYTES", 10)
    assert "larger than 10 bytes" in refusal(io.BytesIO(encode(UPRIGHT, "PNG")))


def test_open_files_are_read_from_where_they_stand_and_left_open(tmp_path):
    data = encode(UPRIGHT, "PNG")
    path = tmp_path / "a.bin"
    path.write_bytes(b"head" + data)
    with path.open("rb") as file:
        file.read(4)
        np.testing.assert_array_equal(read_photo(file).pixels, UPRIGHT)
        assert not file.closed
        assert refusal(file).startswith(f"{path}: is empty")
    assert refusal(file).startswith(f"{path}: cannot be read (read of closed file)")
    with path.open(encoding="latin-1") as file:
        assert refusal(file).startswith(
            f"{path}: cannot be read (can't concat str to bytearray), wanted"
        )
    assert refusal(object()).startswith("photograph: cannot be read (")


def test_an_error_survives_pickling():
    error = pickle.loads(pickle.dumps(PhotoError("a.jpg", "is empty")))
    assert (str(error), error.path, error.reason) == ("a.jpg: is empty", "a.jpg", "is empty")


COLOUR = Image.fromarray(UPRIGHT)
SAMPLES = {
    "JPEG": encode(smooth(24, 40), "JPEG", exif=exif(6)),
    "JPEG CMYK": encode(COLOUR.convert("CMYK"), "JPEG", progressive=True),
    "PNG": encode(UPRIGHT, "PNG", exif=exif(8)),
    "PNG palette": encode(COLOUR.quantize(9), "PNG", transparency=bytes(range(9))),
    "WebP": encode(smooth(24, 40), "WEBP"),
    "WebP alpha": encode(COLOUR.convert("RGBA"), "WEBP", lossless=True),
    "GIF": encode(COLOUR, "GIF", save_all=True, append_images=[COLOUR.rotate(180)]),
    "BMP": encode(UPRIGHT, "BMP"),
    "TIFF": encode(UPRIGHT, "TIFF", exif=exif(3)),
    "TIFF 16": encode(UPRIGHT[..., 0].astype(np.uint16) * 257, "TIFF"),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_truncated_files_are_refused_with_path_and_reason(tmp_path, kind):
    data = SAMPLES[kind]
    path = tmp_path / "cut.jpg"
    for size in (20, len(data) // 4, len(data) // 2):
        path.write_bytes(data[:size])
        message = refusal(path, size=16)
        assert message.startswith(f"{path}: cannot be read as {kind.split()[0]}: ")
        assert len(message) > len(f"{path}: cannot be read as {kind.split()[0]}: ")


def test_a_header_without_pixels_is_refused():
    assert "cannot be read as PNG" in refusal(io.BytesIO(png(0, 5, 8, 0, b"")))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_whatever_the_bytes_only_a_photo_error_comes_out(kind, data):
    broken = bytearray(SAMPLES[kind])
    # Half of the hits go to the head of the file, where its structure is.
    places = st.one_of(st.integers(0, 100), st.integers(0, len(broken) - 1))
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=6)):
        broken[place] = value
    broken = broken[: data.draw(st.one_of(st.just(len(broken)), st.integers(0, len(broken))))]
    try:
        photo, message = read(bytes(broken), data.draw(st.sampled_from([None, 16]))), ""
    except PhotoError as error:
        photo, message = None, str(error)
    assert "\n" not in message
    if photo is None:
        assert message.startswith("photograph: ")
    else:
        assert photo.pixels.ndim == 3
        assert photo.pixels.shape[2] == 3


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from([start for _, starts, _ in photos._FORMATS for start in starts]), st.binary()
)
def test_noise_behind_a_format_s_first_bytes_is_refused(start, noise):
    if start == b"RIFF":
        start += b"\0\0\0\0WEBP"
    assert "cannot be read as" in refusal(io.BytesIO(start + noise))


# ---- decompression bombs, warnings and threads


def tiff(width, height):
    """Return the head of a TIFF of one 8-bit grey strip, without the strip."""
    tags = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1)]
    tags += [(278, height), (279, width * height)]
    entries = b"".join(struct.pack("<HHLL", tag, 4, 1, value) for tag, value in tags)
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + bytes(4)


def announce(kind, width, height):
    """Return a small file whose header announces width x height pixels."""
    data = bytearray(SAMPLES[kind])
    if kind == "JPEG":
        start = data.index(b"\xff\xc0") + 5
        data[start : start + 4] = struct.pack(">HH", height, width)
    elif kind == "PNG":
        data = png(width, height, 8, 0, b"")
    elif kind == "GIF":
        data[6:10] = struct.pack("<HH", width, height)
    elif kind == "BMP":
        data[18:26] = struct.pack("<ii", width, height)
    elif kind == "TIFF":
        data = tiff(width, height)
    else:
        # Of an animation a frame may be smaller than the whole.
        frames = [Image.new("RGB", (5, 5), colour) for colour in ("red", "blue")]
        data = bytearray(encode(frames[0], "WEBP", save_all=True, append_images=frames[1:]))
        assert data[12:16] == b"VP8X"
        data[24:30] = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    return bytes(data)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WebP", "GIF", "BMP", "TIFF"])
def test_too_many_pixels_are_refused_from_the_header_in_silence(kind, capfd):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        message = refusal(io.BytesIO(announce(kind, 10_100, 10_000)))
        assert "10,100 x 10,000 = 101,000,000 pixels, wanted at most 100,000,000" in message
        # Far past Pillow's own limit, where it raises.
        huge = refusal(io.BytesIO(announce(kind, 60_000, 60_000)))
        assert "pixels" in huge
        assert "3600000000" in huge.replace(",", "")
        small = refusal(io.BytesIO(announce(kind, 70, 90)), max_pixels=6299)
        assert "70 x 90 = 6,300 pixels, wanted at most 6,299" in small
    assert heard == []
    assert capfd.readouterr() == ("", "")


def test_a_gif_whose_frame_is_larger_than_its_screen_is_refused_in_silence():
    screen = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0, 0, 0)
    frame = b"," + struct.pack("<HHHHB", 0, 0, 10_100, 10_000, 0) + b"\x02\x01\x4c\0;"
    assert "101,000,000 pixels" in refusal(io.BytesIO(screen + frame))


@pytest.mark.parametrize(("mode", "form"), [("1", "PNG"), ("L", "JPEG"), ("1", "TIFF")])
def test_a_hundred_megapixels_are_read_in_silence(mode, form, capfd):
    options = {"TIFF": {"compression": "group4"}, "PNG": {"compress_level": 1}}.get(form, {})
    data = encode(Image.new(mode, (10_000, 10_000), 1 if mode == "1" else 200), form, **options)
    limit = Image.MAX_IMAGE_PIXELS
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        photo = read(data, 32)
    assert photo.width * photo.height == MAX_PIXELS
    assert (photo.pixels == (255 if mode == "1" else 200)).all()
    assert heard == []
    assert capfd.readouterr() == ("", "")
    assert limit == Image.MAX_IMAGE_PIXELS


def test_a_stricter_limit_of_pillow_is_kept(monkeypatch):
    data = encode(UPRIGHT, "PNG")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 959)
    assert "40 x 24 = 960 pixels, wanted at most 959" in refusal(io.BytesIO(data))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 960)
    assert read(data, max_pixels=960).width == 40
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert read(data).width == 40
    assert "wanted at most 959" in refusal(io.BytesIO(data), max_pixels=959)


def test_pillows_warnings_neither_fail_a_photograph_nor_stay_hidden_elsewhere(monkeypatch):
    # An APNG without frames makes Pillow warn; the filters of this test turn that into an error.
    data = png(1, 1, 8, 0, b"\0\x05", before=b"acTL" + bytes(8))
    with pytest.raises(UserWarning, match="Invalid APNG"):
        Image.open(io.BytesIO(data))
    with ThreadPoolExecutor(8) as pool:
        for photo in pool.map(read, [data] * 200):
            assert photo.pixels.tolist() == [[[5, 5, 5]]]
    with pytest.raises(UserWarning, match="Invalid APNG"):
        Image.open(io.BytesIO(data))

    # While one thread reads, another still hears its own warnings.
    started, finish = threading.Event(), threading.Event()

    def slow(*_args):
        started.set()
        assert finish.wait(10)
        warnings.warn("not for the user", UserWarning, stacklevel=1)
        return "read"

    monkeypatch.setattr(photos, "_decode", slow)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read, data)
        assert started.wait(10)
        with pytest.warns(UserWarning, match="for the user"):
            warnings.warn("for the user", UserWarning, stacklevel=1)
        # The end of pytest.warns has put the filters back as they were before; that one is in.
        finish.set()
        assert reading.result() == "read"


def test_the_filter_is_kept_once_and_in_front():
    data = encode(UPRIGHT, "PNG")
    with warnings.catch_warnings():
        for _ in range(5):
            warnings.simplefilter("error")
            read(data)
            warnings.filterwarnings("ignore", message=f"{_}")
            read(data)
        ours = [entry for entry in warnings.filters if entry is photos._IGNORE]
        assert len(ours) == 1
        assert warnings.filters[0] is photos._IGNORE
        warnings.resetwarnings()
        read(data)
        assert warnings.filters == [photos._IGNORE]


def test_pillows_complaints_by_logging_are_held_back_while_reading(caplog):
    data = bytearray(tiff(4, 4))
    start = data.index(struct.pack("<HHL", 277, 4, 1)) + 8
    data[start : start + 4] = struct.pack("<L", 1000)
    with caplog.at_level(logging.DEBUG):
        assert "cannot be read as TIFF" in refusal(io.BytesIO(bytes(data)))
        assert {record.levelno for record in caplog.records} == {logging.DEBUG}
        with pytest.raises(OSError, match="cannot identify"):
            Image.open(io.BytesIO(bytes(data)))
        assert any("samples per pixel" in record.message for record in caplog.records)


@needs_shared
def test_real_photographs_are_read_as_pillow_reads_them():
    paths = sorted((SHARED / "data" / "flickr8k" / "images").iterdir())[::400]
    assert len(paths) > 20
    for path in paths:
        photo = read_photo(path, 256)
        with Image.open(path) as image:
            assert (photo.width, photo.height) == image.size == (224, 224)
            wanted = image.convert("RGB").resize((256, 256), Image.Resampling.BICUBIC)
        np.testing.assert_array_equal(photo.pixels, np.asarray(wanted))
