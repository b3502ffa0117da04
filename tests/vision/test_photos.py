"""Reading photographs: every mode and format against values worked out by hand, and bad files."""

import io
import logging
import os
import pickle
import struct
import threading
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from crossgaze.errors import InputError
from crossgaze.vision import photos
from crossgaze.vision.photos import MAX_PIXELS, PhotoError, read_photo
from support import SHARED, needs_shared

# An upright picture in which no two of the eight orientations look the same.
UPRIGHT = np.random.default_rng(0).integers(0, 256, (24, 40, 3), dtype=np.uint8)


def encode(image, form, **options):
    file = io.BytesIO()
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image)
    image.save(file, form, **options)
    return file.getvalue()


def read(data, *args, **options):
    return read_photo(io.BytesIO(data), *args, **options)


def smooth(height, width):
    """(height, width, 3) without edges, so that JPEG and resizing change it little."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x / width * 7), np.cos(y / height * 5), np.sin((x + y) / width * 4)]
    return (np.stack(waves, axis=-1) * 100 + 128).astype(np.uint8)


def exif(orientation):
    tags = Image.Exif()
    tags[0x010F] = "a maker of cameras"
    tags[0x0112] = orientation
    return tags.tobytes()


def png(width, height, bits, colour, rows, *, before=b""):
    """Return a PNG built from the standard, not by Pillow."""

    def chunk(kind, body):
        check = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + check

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))
    before = chunk(before[:4], before[4:]) if before else b""
    pixels = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + head + before + pixels + chunk(b"IEND", b"")


# ---- formats and modes


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "WEBP"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (24, 40)])
def test_lossless_formats_give_the_very_pixels(form, shape):
    pixels = UPRIGHT[: shape[0], : shape[1]]
    photo = read(encode(pixels, form, **({"lossless": True} if form == "WEBP" else {})))
    np.testing.assert_array_equal(photo.pixels, pixels)
    assert (photo.width, photo.height) == shape[::-1]
    assert photo.pixels.dtype == np.uint8
    assert photo.pixels.flags.c_contiguous
    assert photo.pixels.flags.writeable


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_deflate", "packbits"])
def test_compressed_tiff(compression):
    np.testing.assert_array_equal(
        read(encode(UPRIGHT, "TIFF", compression=compression)).pixels, UPRIGHT
    )


@pytest.mark.parametrize(
    ("form", "options"), [("JPEG", {"quality": 95}), ("WEBP", {"quality": 95})]
)
def test_lossy_formats_come_close(form, options):
    pixels = smooth(60, 80)
    found = read(encode(pixels, form, **options)).pixels
    assert np.abs(found.astype(int) - pixels).mean() < 2


def over_white(colour, alpha):
    return [c * alpha / 255 + 255 * (1 - alpha / 255) for c in colour]


@pytest.mark.parametrize(
    ("mode", "colour", "form", "wanted"),
    [
        ("L", 77, "PNG", (77, 77, 77)),
        ("L", 77, "JPEG", (77, 77, 77)),
        ("L", 77, "GIF", (77, 77, 77)),
        ("L", 77, "TIFF", (77, 77, 77)),
        ("1", 1, "PNG", (255, 255, 255)),
        ("1", 0, "BMP", (0, 0, 0)),
        ("1", 1, "TIFF", (255, 255, 255)),
        ("LA", (40, 51), "PNG", over_white((40, 40, 40), 51)),
        ("LA", (40, 0), "TIFF", (255, 255, 255)),
        ("RGBA", (10, 200, 90, 102), "PNG", over_white((10, 200, 90), 102)),
        ("RGBA", (10, 200, 90, 102), "WEBP", over_white((10, 200, 90), 102)),
        ("RGBA", (10, 200, 90, 102), "TIFF", over_white((10, 200, 90), 102)),
        ("RGBA", (10, 200, 90, 0), "PNG", (255, 255, 255)),
        # No ink is white and full black ink is black, in a JPEG (Adobe, inverted) and a TIFF.
        ("CMYK", (0, 0, 0, 0), "JPEG", (255, 255, 255)),
        ("CMYK", (0, 255, 255, 0), "JPEG", (255, 0, 0)),
        ("CMYK", (0, 0, 0, 255), "JPEG", (0, 0, 0)),
        ("CMYK", (0, 255, 255, 0), "TIFF", (255, 0, 0)),
        ("CMYK", (0, 0, 0, 255), "TIFF", (0, 0, 0)),
        ("YCbCr", (76, 85, 255), "TIFF", (255, 0, 0)),  # pure red in JFIF's YCbCr
        ("LAB", (255, 128, 128), "TIFF", (255, 255, 255)),
        ("F", 0.2, "TIFF", (51, 51, 51)),
    ],
)
def test_a_plain_colour_in_every_mode(mode, colour, form, wanted):
    image = Image.new(mode, (8, 8), colour)
    data = encode(image, form, **({"lossless": True, "exact": True} if form == "WEBP" else {}))
    if (mode, form) == ("CMYK", "JPEG"):
        assert b"Adobe" in data
    found = read(data).pixels
    assert np.abs(found.astype(float) - wanted).max() <= 1.5


def test_palettes_with_and_without_transparency():
    image = Image.fromarray(np.array([[0, 1], [2, 1]], dtype=np.uint8), "P")
    image.putpalette([255, 0, 0, 0, 250, 0, 0, 0, 200])
    red, green, blue, white = (255, 0, 0), (0, 250, 0), (0, 0, 200), (255, 255, 255)
    for form in ("PNG", "GIF", "BMP", "TIFF"):
        assert read(encode(image, form)).pixels.tolist() == [
            [[*red], [*green]],
            [[*blue], [*green]],
        ]
    for form in ("PNG", "GIF"):
        found = read(encode(image, form, transparency=1)).pixels
        assert found.tolist() == [[[*red], [*white]], [[*blue], [*white]]]
    found = read(encode(image, "PNG", transparency=bytes([255, 0, 51]))).pixels
    assert np.abs(found - np.array([[red, white], [over_white(blue, 51), white]])).max() <= 1


def test_grey_of_16_bits_is_scaled_and_not_clipped():
    levels = np.array([[0, 257, 257 * 128], [257 * 254, 65535, 300]], dtype=np.uint16)
    wanted = [[0, 1, 128], [254, 255, 1]]
    little = Image.fromarray(levels)
    big = Image.frombytes("I;16B", (3, 2), levels.astype(">u2").tobytes())
    whole = Image.fromarray(levels.astype(np.int32))
    for data in (encode(little, "PNG"), *(encode(i, "TIFF") for i in (little, big, whole))):
        assert read(data).pixels.tolist() == [[[v] * 3 for v in row] for row in wanted]
    every = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    nearest = [[round(int(v) * 255 / 65535) for v in row] for row in every]
    np.testing.assert_array_equal(read(encode(every, "PNG")).pixels[..., 0], nearest)


@pytest.mark.parametrize(
    ("kind", "values", "wanted"),
    [
        (np.int32, [0, 65536 * 4, 65536 * 2, -5], [0, 255, 128, 0]),
        (np.float32, [0, 1, 0.5, -3], [0, 255, 128, 0]),
        (np.float32, [0, 255, 100, 99.6], [0, 255, 100, 100]),
        (np.float32, [0, 65535, 25700, 257], [0, 255, 100, 1]),
        (np.float32, [0, 1e9, 5e8, 1], [0, 255, 128, 0]),
        (np.float32, [np.nan, np.inf, -np.inf, 0.4], [0, 255, 0, 102]),
        (np.float32, [np.nan] * 4, [0] * 4),
    ],
)
def test_wide_values_are_scaled_by_the_range_that_holds_them(kind, values, wanted):
    data = encode(np.array([values], dtype=kind), "TIFF")
    assert read(data).pixels[0, :, 0].tolist() == wanted


def test_one_transparent_colour_in_png_of_every_depth():
    # Grey and RGB PNGs may declare one colour transparent (tRNS).
    grey16 = png(2, 1, 16, 0, b"\0" + struct.pack(">HH", 514, 65535), before=b"tRNS\x02\x02")
    grey8 = png(2, 1, 8, 0, b"\0\x05\x06", before=b"tRNS\0\x05")
    grey1 = png(2, 1, 1, 0, b"\0\x40", before=b"tRNS\0\0")
    rgb = png(2, 1, 8, 2, b"\0\x01\x02\x03\x04\x05\x06", before=b"tRNS\0\x01\0\x02\0\x03")
    assert read(grey16).pixels.tolist() == [[[255] * 3, [255] * 3]]
    assert read(png(1, 1, 16, 0, b"\0\x02\x02")).pixels.tolist() == [[[2] * 3]]
    assert read(grey8).pixels.tolist() == [[[255] * 3, [6] * 3]]
    assert read(grey1).pixels.tolist() == [[[255] * 3, [255] * 3]]
    assert read(rgb).pixels.tolist() == [[[255] * 3, [4, 5, 6]]]


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG", "TIFF"])
def test_of_several_frames_the_first_is_read(form):
    frames = [Image.new("RGB", (9, 7), colour) for colour in ("red", "blue", "lime")]
    lossless = {"lossless": True} if form == "WEBP" else {}
    data = encode(frames[0], form, save_all=True, append_images=frames[1:], **lossless)
    photo = read(data)
    assert (photo.width, photo.height) == (9, 7)
    assert (photo.pixels == (255, 0, 0)).all()


# ---- orientation


def stored(upright, orientation):
    """Lay out the pixels as EXIF 2.3 words it: which edges row 0 and column 0 of the file are."""
    row0, column0 = {
        1: "top left", 2: "top right", 3: "bottom right", 4: "bottom left",
        5: "left top", 6: "right top", 7: "right bottom", 8: "left bottom",
    }[orientation].split()  # fmt: skip
    height, width = upright.shape[:2]
    shape = (height, width) if orientation < 5 else (width, height)
    out = np.empty((*shape, 3), dtype=np.uint8)
    for r in range(shape[0]):
        for c in range(shape[1]):
            along = {row0: r, column0: c}
            y = along["top"] if "top" in along else height - 1 - along["bottom"]
            x = along["left"] if "left" in along else width - 1 - along["right"]
            out[r, c] = upright[y, x]
    return out


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["PNG", "TIFF", "WEBP", "JPEG"])
def test_every_orientation_is_made_upright(orientation, form):
    upright = smooth(24, 40) if form == "JPEG" else UPRIGHT
    options = {"WEBP": {"lossless": True}, "JPEG": {"quality": 100, "subsampling": 0}}.get(form, {})
    data = encode(stored(upright, orientation), form, exif=exif(orientation), **options)
    photo = read(data)
    assert (photo.width, photo.height) == (40, 24)
    assert np.abs(photo.pixels.astype(int) - upright).max() <= (4 if form == "JPEG" else 0)
    # Resized, the long side stays the long side.
    small = read(data, 20, fit="keep", multiple=4)
    assert small.pixels.shape == (12, 20, 3)
    assert (small.width, small.height) == (40, 24)
    plain = read(encode(upright, "PNG"), 20, fit="keep", multiple=4)
    assert np.abs(small.pixels.astype(int) - plain.pixels).max() <= 4


def test_orientation_after_the_pixels_of_a_png_counts():
    data = encode(stored(UPRIGHT, 6), "PNG", exif=exif(6))
    start = data.index(b"eXIf") - 4
    end = start + 12 + struct.unpack(">I", data[start : start + 4])[0]
    late = data[:start] + data[end:-12] + data[start:end] + data[-12:]
    np.testing.assert_array_equal(read(late).pixels, UPRIGHT)


@pytest.mark.parametrize("value", [0, 9, 65535])
def test_an_orientation_that_does_not_exist_is_upright(value):
    np.testing.assert_array_equal(read(encode(UPRIGHT, "PNG", exif=exif(value))).pixels, UPRIGHT)


def test_a_raw_profile_that_is_not_hexadecimal_is_upright():
    text = b"tEXtRaw profile type exif\0\nexif\n 6\nnot hexadecimal"
    assert read(png(1, 1, 8, 0, b"\0\x05", before=text)).pixels.tolist() == [[[5, 5, 5]]]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_broken_exif_never_loses_the_photograph(data):
    tags = bytearray(exif(6))
    for _ in range(data.draw(st.integers(1, 8))):
        tags[data.draw(st.integers(6, len(tags) - 1))] = data.draw(st.integers(0, 255))
    tags = bytes(tags[: data.draw(st.integers(7, len(tags)))])
    jpeg = encode(UPRIGHT, "JPEG", exif=tags)
    assert jpeg[2:4] == b"\xff\xe0"
    # Without its JFIF header Pillow asks EXIF for the resolution as well.
    for file in (jpeg, jpeg[:2] + jpeg[20:], encode(UPRIGHT, "PNG", exif=tags)):
        photo = read(file)
        assert sorted((photo.width, photo.height)) == [24, 40]


def test_a_resolution_that_is_text_does_not_lose_the_photograph():
    entries = struct.pack("<HHL4s", 0x011A, 2, 2, b"7") + struct.pack("<HHLL", 0x0128, 3, 1, 2)
    tags = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", 2) + entries + bytes(4)
    jpeg = encode(UPRIGHT, "JPEG", exif=tags)
    jpeg = jpeg[:2] + jpeg[20:]
    with pytest.raises(SyntaxError):  # what makes the test worth having
        photos.JpegImageFile(io.BytesIO(jpeg))
    assert read(jpeg).width == 40


# ---- size


def test_stretch_is_pillows_bicubic():
    image = Image.fromarray(UPRIGHT)
    for size in (7, 32, 100):
        wanted = np.asarray(image.resize((size, size), Image.Resampling.BICUBIC))
        np.testing.assert_array_equal(read(encode(image, "PNG"), size).pixels, wanted)


@pytest.mark.parametrize(
    ("width", "height", "size", "multiple", "wanted"),
    [
        (640, 480, 256, 32, (256, 192)),
        (480, 640, 256, 32, (192, 256)),
        (500, 375, 224, 32, (224, 160)),  # 168 is 5.25 x 32
        (10000, 1, 256, 32, (256, 32)),
        (1, 10000, 256, 32, (32, 256)),
        (1, 1, 250, 32, (256, 256)),
        (3, 2, 10, 32, (32, 32)),
        (4, 3, 8, 4, (8, 8)),  # 6 lies halfway between 4 and 8
        (300, 200, 30, 1, (30, 20)),
    ],
)
def test_keep_rounds_both_sides_to_the_multiple(width, height, size, multiple, wanted):
    data = encode(Image.new("L", (width, height)), "PNG")
    photo = read(data, size, fit="keep", multiple=multiple)
    assert photo.pixels.shape == (wanted[1], wanted[0], 3)
    assert (photo.width, photo.height) == (width, height)


@settings(max_examples=40, deadline=None)
@given(*[st.integers(1, 90)] * 2, st.integers(1, 80), st.integers(1, 40))
def test_keep_takes_the_nearest_multiple(width, height, size, multiple):
    data = encode(Image.new("1", (width, height)), "BMP")
    rows, columns, _ = read(data, size, fit="keep", multiple=multiple).pixels.shape
    for found, side in ((columns, width), (rows, height)):
        ideal = side * size / max(width, height)
        assert found % multiple == 0
        assert found > 0
        assert abs(found - ideal) <= multiple / 2 + 1e-9 or (found == multiple and ideal < multiple)


@pytest.mark.parametrize("shape", [(1, 10000), (10000, 1), (1, 1)])
def test_extreme_shapes_stretch(shape):
    photo = read(encode(np.full((*shape, 3), 9, dtype=np.uint8), "JPEG"), 64)
    assert photo.pixels.shape == (64, 64, 3)
    assert np.abs(photo.pixels.astype(int) - 9).max() <= 2


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("fit", ["stretch", "keep"])
def test_a_large_jpeg_is_decoded_small_but_never_below_twice_the_size(
    monkeypatch, orientation, fit
):
    data = encode(smooth(1201, 2003), "JPEG", quality=95, exif=exif(orientation))
    decoded = []

    def spy(image):
        decoded.append(image.size)
        return flat(image)

    flat = photos._flat
    monkeypatch.setattr(photos, "_flat", spy)
    fast = read(data, 128, fit=fit).pixels
    monkeypatch.setattr(photos._Jpeg, "draft", lambda *_: None)
    slow = read(data, 128, fit=fit).pixels
    assert decoded[1] == (2003, 1201)
    assert decoded[0] == (501, 301)  # a quarter; an eighth would leave less than twice 128 high
    assert fast.shape == slow.shape
    assert np.abs(fast.astype(int) - slow).mean() < 0.5
    assert np.abs(fast.astype(int) - slow).max() <= 6


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"size": 0}, "size: found 0, wanted a whole number from 1 to 10,000"),
        ({"size": 10_001}, "size: found 10001, wanted a whole number from 1 to 10,000"),
        ({"size": 2.5}, "size: found 2.5, wanted a whole number from 1 to 10,000"),
        ({"size": 8, "multiple": 0}, "multiple: found 0, wanted a whole number from 1 to 10,000"),
        ({"fit": "keeep"}, "fit: found 'keeep' (did you mean 'keep'?), wanted one of "),
    ],
)
def test_arguments_out_of_range_are_named(options, problem):
    with pytest.raises(InputError) as caught:
        read(b"", **options)
    assert str(caught.value).startswith(problem)


def test_size_may_be_a_numpy_integer():
    assert read(encode(UPRIGHT, "PNG"), np.int64(5)).pixels.shape == (5, 5, 3)


# ---- files that are no photographs


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
        assert refusal(file).startswith(f"{path}: gives str, wanted a file opened as binary")
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
