"""Photographs in the sizes that the page shows: upright, small, made once."""

from __future__ import annotations

import io
import time
from enum import IntEnum

from PIL import Image

from crossgaze.search.entries import Entry
from crossgaze.vision.photos import PhotoError, read_photo
from crossgaze.web.metrics import Metrics
from crossgaze.web.problems import RequestError
from crossgaze.web.recent import Recent

QUALITY = 82


class Side(IntEnum):
    """Pixels of the longer side; few sizes, so that the cache holds many photographs."""

    SMALL = 480
    MIDDLE = 960
    LARGE = 1600


class Thumbnails:
    """Makes thumbnails, and keeps them in memory within a bound.

    Args:
        most: bytes to keep.
        metrics: where the making is counted.
    """

    def __init__(self, most: int, metrics: Metrics) -> None:
        self.kept: Recent[tuple[int, str, int], bytes] = Recent(most, len)
        self._metrics = metrics

    def find(self, entry: Entry, side: int) -> bytes | None:
        """Return a thumbnail that is there already."""
        return self.kept.get((entry.uid, entry.digest, side))

    def make(self, entry: Entry, side: int) -> bytes:
        """Return a photograph as a JPEG whose longer side is at most `side`."""
        started = time.perf_counter()
        longer = max(entry.width, entry.height)
        try:
            photo = read_photo(
                entry.key,
                min(side, longer) if longer else side,
                fit="keep",
                multiple=1,
            )
        except PhotoError as error:
            raise RequestError(404, f"this photograph cannot be shown: {error.reason}") from None
        file = io.BytesIO()
        Image.fromarray(photo.pixels).save(file, "JPEG", quality=QUALITY)
        data = file.getvalue()
        self.kept.put((entry.uid, entry.digest, side), data)
        self._metrics.step("thumbnail", time.perf_counter() - started)
        return data
