"""Photographs made in memory, for several test files."""

import io
import struct
import zlib

import numpy as np
from PIL import Image

from crossgaze.vision.photos import read_photo

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
