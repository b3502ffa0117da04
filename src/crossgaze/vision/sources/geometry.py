"""Where a region lies, as numbers at the end of its feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.vision.photos import Photo
from crossgaze.vision.sources.base import Found, RegionSource, Stop

NUMBERS = 5


def geometry(boxes: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return (n, 5) for boxes (n, 4): their edges and their area, as shares of the photograph.

    Example:
        >>> geometry(np.array([[0, 0, 0.5, 1]], np.float32)).tolist()
        [[0.0, 0.0, 0.5, 1.0, 0.5]]
    """
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1, keepdims=True)
    return np.concatenate([boxes, area], 1)


class WithGeometry:
    """A source of regions whose features end with where they lie.

    Args:
        source: makes the regions.
    """

    def __init__(self, source: RegionSource) -> None:
        self.source = source
        self.regions, self.width = source.regions, source.width + NUMBERS
        self.size, self.multiple = source.size, source.multiple
        self.fields, self.labels, self.device = source.fields, source.labels, source.device
        self.made_by: Mapping[str, Any] = {**source.made_by, "geometry": True}

    def __call__(self, photos: Sequence[Photo], names: Sequence[str], go_on: Stop) -> list[Found]:
        """Make the regions of some photographs."""
        return [
            replace(found, features=np.concatenate([found.features, geometry(found.boxes)], 1))
            for found in self.source(photos, names, go_on)
        ]
