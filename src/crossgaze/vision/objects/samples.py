"""What training sees: views of annotated photographs, whole, or mirrored and slightly cut.

A view is a photograph stretched to a square. The second view of a training photograph is its
mirror image with up to an eighth cut from each side: a box follows, and goes when less than half
of it is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from crossgaze.vision.photos import read_photo

MOST_CUT = 0.12  # of a side
LEAST_LEFT = 0.5  # of a box's area


@dataclass(frozen=True)
class View:
    """How a photograph is shown: `crop` (x1, y1, x2, y2 as shares) is cut out, then mirrored."""

    image: str
    crop: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)
    mirror: bool = False

    def pixels(self, folder: Path, size: int) -> npt.NDArray[np.uint8]:
        """Return (size, size, 3) RGB bytes."""
        if self.crop == (0.0, 0.0, 1.0, 1.0):
            found = read_photo(folder / self.image, size).pixels
        else:
            whole = Image.fromarray(read_photo(folder / self.image).pixels)
            x1, y1, x2, y2 = self.crop
            wide, high = whole.size
            box = (x1 * wide, y1 * high, x2 * wide, y2 * high)
            found = np.array(whole.resize((size, size), Image.Resampling.BICUBIC, box=box))
        return np.ascontiguousarray(found[:, ::-1]) if self.mirror else found

    def boxes(
        self, boxes: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Carry boxes (n, 4), shares of the photograph, into the view; second, which stay.

        Example:
            >>> box = np.array([[0.0, 0.0, 0.5, 1.0]], np.float32)
            >>> View("a", mirror=True).boxes(box)[0].tolist()
            [[0.5, 0.0, 1.0, 1.0]]
        """
        x1, y1, x2, y2 = self.crop
        low = np.array([x1, y1, x1, y1], np.float32)
        scale = np.array([x2 - x1, y2 - y1] * 2, np.float32)
        full = (boxes - low) / scale
        found = full.clip(0, 1)
        stays = _area(found) >= LEAST_LEFT * _area(full)
        if self.mirror:
            found = np.stack([1 - found[:, 2], found[:, 1], 1 - found[:, 0], found[:, 3]], 1)
        return found.astype(np.float32), stays


def second_views(images: Sequence[str], seed: int) -> list[View]:
    """Return a mirrored and slightly cut view of each photograph."""
    rng = np.random.default_rng(seed)
    views = []
    for image in images:
        left, top, right, bottom = rng.uniform(0, MOST_CUT, 4).tolist()
        views.append(View(image, (left, top, 1 - right, 1 - bottom), mirror=True))
    return views


def read_views(views: Sequence[View], folder: Path, size: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Give the pixels of each view in turn."""
    for view in views:
        yield view.pixels(folder, size)


def _area(boxes: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.asarray((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))
