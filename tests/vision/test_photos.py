"""Photographs of every kind as upright pixels."""

import io
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from crossgaze.errors import InputError
from crossgaze.vision import photos
from photo_files import UPRIGHT, encode, exif, png, read, smooth


# An upright picture in which no two of the eight orientations look the same.
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


def test_a_jpeg_decoded_small_is_not_shifted(monkeypatch):
    # At an eighth 257 pixels become 33, of which only 32.125 are the photograph.
    ramp = np.broadcast_to(np.linspace(0, 255, 257).astype(np.uint8)[:, None], (257, 257, 3))
    data = encode(np.ascontiguousarray(ramp), "JPEG", quality=98)
    fast = read(data, 16).pixels.astype(int)
    monkeypatch.setattr(photos._Jpeg, "draft", lambda *_: None)
    assert np.abs(fast - read(data, 16).pixels).max() <= 3


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"size": 0}, "size: found 0, wanted a whole number from 1 to 10,000"),
        ({"size": 10_001}, "size: found 10001, wanted a whole number from 1 to 10,000"),
        ({"size": 2.5}, "size: found 2.5, wanted a whole number from 1 to 10,000"),
        ({"size": 8, "multiple": 0}, "multiple: found 0, wanted a whole number from 1 to 10,000"),
        ({"max_pixels": 0}, "max_pixels: found 0, wanted a whole number from 1 to 4,294,967,296"),
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
