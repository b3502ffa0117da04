"""What every source of regions is to an extraction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from crossgaze.vision.photos import Photo

WHOLE = np.array([[0, 0, 1, 1]], np.float32)  # the box of a whole image, as shares
Stop = Callable[[], None]  # raises when nobody wants the result any more


@dataclass(frozen=True, eq=False)
class Found:
    """The regions of one photograph.

    Args:
        features: (n, d).
        boxes: (n, 4), x1, y1, x2, y2 as shares of the photograph's width and height.
        fields: (n,) arrays for other fields of a store, such as "confidence".
    """

    features: npt.NDArray[np.float32]
    boxes: npt.NDArray[np.float32]
    fields: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)


class RegionSource(Protocol):
    """Makes regions of photographs.

    Attributes:
        regions: k, the most that a photograph gets.
        width: d, of a feature.
        size: pixels that photographs are resized to.
        multiple: what both sides are a multiple of, where proportions are kept.
        fields: the store's fields beside features, counts, boxes, sizes and stamps.
        labels: what the numbers in those fields mean.
        made_by: what decides the regions, kept in the store; another extraction must agree.
        device: where it computes.
    """

    regions: int
    width: int
    size: int
    multiple: int
    fields: tuple[str, ...]
    labels: Mapping[str, Sequence[str]]
    made_by: Mapping[str, Any]
    device: torch.device

    def __call__(self, photos: Sequence[Photo], names: Sequence[str], go_on: Stop) -> list[Found]:
        """Return the regions of some photographs, calling `go_on` before each batch."""


def batches(photos: Sequence[Photo], size: int) -> Iterator[tuple[list[int], torch.Tensor]]:
    """Give photographs of one shape together: their numbers and pixels (b, H, W, 3)."""
    shapes: dict[tuple[int, ...], list[int]] = {}
    for row, photo in enumerate(photos):
        shapes.setdefault(photo.pixels.shape, []).append(row)
    for rows in shapes.values():
        for start in range(0, len(rows), size):
            chosen = rows[start : start + size]
            yield chosen, torch.from_numpy(np.stack([photos[row].pixels for row in chosen]))
