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


def scans(count, start=0xC2, before=b""):
    """Return a grey JPEG of 1024 x 1024 pixels, all alike, with `count` scans of a few bytes.

    The first holds the means of its 16,384 blocks, a bit each; any other says in 15 bits that none
    of them has anything more. `before` stands where metadata does.
    """

    def segment(kind, content):
        return bytes([0xFF, kind]) + struct.pack(">H", len(content) + 2) + content

    def scan(first, last, content):
        return segment(0xDA, bytes([1, 1, 0, first, last, 0])) + content

    out = b"\xff\xd8" + before + segment(0xDB, b"\0" + b"\1" * 64)
    out += segment(start, struct.pack(">BHHB", 8, 1024, 1024, 1) + bytes([1, 0x11, 0]))
    out += segment(0xC4, bytes([0, 1, *[0] * 15, 0]))  # of means: the code 0 is no difference
    out += segment(0xC4, bytes([0x10, 1, *[0] * 15, 0xE0]))  # of the rest: 0 ends 16,384 and more
    return out + scan(0, 0, bytes(2048)) + scan(1, 63, b"\0\1") * (count - 1) + b"\xff\xd9"


def repeated_tiff(side, parts):
    """Return a black and white TIFF whose two strips are listed `parts` times."""
    row, fields = -(-side // 8), 9
    offsets = 8 + 2 + 12 * fields + 4
    counts, pixels = offsets + 4 * parts, offsets + 8 * parts
    values = [(256, side), (257, side), (258, 1), (259, 1), (262, 1), (273, offsets), (277, 1)]
    out = b"II*\0" + struct.pack("<LH", 8, fields)
    for tag, value in [*values, (278, side - 1), (279, counts)]:
        out += struct.pack("<HHLL", tag, 4, parts if tag in (273, 279) else 1, value)
    out += bytes(4) + b"".join(struct.pack("<L", pixels + number) for number in range(parts))
    return out + struct.pack("<L", row * side) * parts + bytes(row * side + parts)
