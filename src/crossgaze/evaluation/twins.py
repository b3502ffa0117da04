"""Images with the same regions and sentences with the same words: scored once, they tie exactly.

A score's last bits depend on what was computed beside it: on the batch that its sentence was read
in, on the tile that its image lay in. Twins that are scored apart may so differ by rounding, and a
tie that should count against the query is won by chance. So each is scored once for all its twins.
And what is scored stands in an order that its content decides, not the order of files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crossgaze.evaluation.sources import RegionSource
from crossgaze.models.text import TextEncoder

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Twins:
    """D different things among N, in an order that does not depend on where they stand.

    Args:
        first: (D,) where one of each stands.
        number: (N,) which of the D each is.
        by_number: (N,) all places, those of thing 0 first.
        ends: (D + 1,) how many places the first 0, 1, ... D things have together.

    Example:
        >>> found = Twins.of([b"cat", b"ant", b"cat"])
        >>> found.first.tolist(), found.number.tolist(), list(found.places(1, 2))
        ([1, 0], [1, 0, 1], [(0, 1), (2, 1)])
    """

    first: Places
    number: Places
    by_number: Places
    ends: Places

    @classmethod
    def of(cls, keys: Sequence[bytes]) -> Twins:
        """Find what has the same key; things come by the length of their keys, then by these."""
        places: dict[bytes, int] = {}
        for place, key in enumerate(keys):
            places.setdefault(key, place)
        order = sorted(places, key=lambda key: (len(key), key))
        known = {key: number for number, key in enumerate(order)}
        number = np.array([known[key] for key in keys], np.int64)
        return cls(
            first=np.array([places[key] for key in order], np.int64),
            number=number,
            by_number=np.argsort(number, kind="stable"),
            ends=np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(order)))]),
        )

    def places(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Give every place of the things `start` to `stop`, each with its thing's number."""
        for place in self.by_number[self.ends[start] : self.ends[stop]].tolist():
            yield place, int(self.number[place])


def twin_captions(text: TextEncoder, captions: Sequence[str]) -> Twins:
    """Find captions that a text encoder reads as the same words; short ones come first."""
    rows = (text.tokenize(caption) for caption in captions)
    return Twins.of([np.asarray(row, ">i4").tobytes() for row in rows])


def twin_images(regions: RegionSource, start: int, stop: int, batch: int) -> Twins:
    """Find images, of those from `start` to `stop`, whose regions are the same bit for bit.

    Args:
        regions: of these images and others; each is read once, and only a checksum is kept.
        start: the first image.
        stop: behind the last.
        batch: images read together.
    """
    keys = []
    for first in range(start, stop, batch):
        features, counts = regions.read(slice(first, min(first + batch, stop)))
        for row, image in enumerate(features):
            real = image if counts is None else image[: counts[row]]
            keys.append(hashlib.blake2b(real.tobytes(), digest_size=16).digest())
    return Twins.of(keys)
