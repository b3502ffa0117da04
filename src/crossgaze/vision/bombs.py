"""Photographs whose header is modest and whose decoding is not: found before a pixel is decoded.

A photograph that announces few pixels may still ask for them to be made over and over. A JPEG may
have thousands of scans of a few bytes, each of which passes over all of it; a TIFF may list one
strip of it thousands of times.
"""

from __future__ import annotations

import re

from PIL.ImageFile import ImageFile
from PIL.TiffImagePlugin import STRIPOFFSETS, TILEOFFSETS, TiffImageFile

# Encoders write 1 scan or about 10; those that search for the smallest file try 64 and keep fewer.
# One takes some hundredths of a second in the largest photograph, ten times that in arithmetic
# coding, which no camera and no browser knows.
MAX_SCANS, MAX_SCANS_ARITHMETIC = 100, 20
MAX_SEGMENTS = 1_000  # of 64 kB: more metadata than any camera writes; Pillow joins some each time
MAX_JUNK = 100_000  # bytes between segments, over which Pillow goes one by one
MAX_PARTS = 200_000  # strips or tiles: 100 million pixels are 1,526 tiles of 256 x 256
MAX_LAYERS = 8  # times that they may cover the photograph; one for each of its at most 6 samples

# A marker, past padding, zeros that stand for an 0xff in data, and restarts, which are among data.
_MARKER = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])")
_SCAN, _END = 0xDA, 0xD9
_ARITHMETIC = frozenset((0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF))
# What has a length and a content, to Pillow and to libjpeg; what one of them goes into is not
# passed over here, so that nothing hides in it.
_WITH_LENGTH = frozenset((*range(0xC0, 0xC8), *range(0xC9, 0xD0), *range(0xDA, 0xF0), 0xFE))


def jpeg_problem(data: bytes) -> str | None:
    r"""Return why a JPEG should not be decoded, or None.

    Example:
        >>> jpeg_problem(b"\xff\xd8" + 101 * b"\xff\xda\0\2")
        'has more than 100 scans, wanted a photograph, which has about ten at most'
    """
    at, segments, scans, junk, most = 2, 0, 0, 0, MAX_SCANS
    while found := _MARKER.search(data, at):
        junk += 0 if scans else found.start() - at
        kind, at = found[1][0], found.end()
        if kind == _END:
            return None
        if kind in _WITH_LENGTH:
            at += max(int.from_bytes(data[at : at + 2], "big"), 2)
        segments += 1
        most = MAX_SCANS_ARITHMETIC if kind in _ARITHMETIC else most
        if kind == _SCAN:
            scans += 1
            # Nearly always enough, and at once: as many as could follow are few.
            if scans == 1 and data.count(b"\xff\xda", at) < most:
                break
        if scans > most:
            return f"has more than {most} scans, wanted a photograph, which has about ten at most"
        if segments > MAX_SEGMENTS:
            return f"has more than {MAX_SEGMENTS:,} segments, wanted a photograph with fewer"
        if junk > MAX_JUNK:
            break
    junk += 0 if scans else max(len(data) - at, 0)
    if junk > MAX_JUNK:
        return f"has more than {MAX_JUNK:,} bytes before its pixels that say nothing"
    return None


class Tiff(TiffImageFile):
    """A TIFF of a bounded number of strips or tiles."""

    def _setup(self) -> None:
        parts = self.tag_v2.get(STRIPOFFSETS) or self.tag_v2.get(TILEOFFSETS) or ()
        if isinstance(parts, tuple) and len(parts) > MAX_PARTS:
            raise ValueError(f"{len(parts):,} strips or tiles, wanted {MAX_PARTS:,} at most")
        super()._setup()  # type: ignore[no-untyped-call,unused-ignore]


def tiles_problem(image: ImageFile) -> str | None:
    """Return why the parts of an opened file should not be decoded, or None."""
    width, height = image.size
    boxes = [tile[1] for tile in image.tile]
    covered = sum((box[2] - box[0]) * (box[3] - box[1]) for box in boxes if box is not None)
    if covered > MAX_LAYERS * width * height:
        return f"its {len(boxes):,} parts cover it {covered // (width * height):,} times"
    return None
