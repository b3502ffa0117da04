"""What regions cost nothing, or no training: fixed boxes, and selective search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.errors import InputError, MissingExtraError
from crossgaze.evaluation.coverage import Array, box_iou


def lattice_boxes(steps: int) -> Array:
    """Return every box whose edges lie on a lattice of `steps` x `steps` cells, (n, 4).

    Example:
        >>> len(lattice_boxes(2))
        9
    """
    spans = [
        (low / steps, high / steps) for low in range(steps) for high in range(low + 1, steps + 1)
    ]
    rows = [(x[0], y[0], x[1], y[1]) for y in spans for x in spans]
    return np.array(rows, np.float32)


def fixed_boxes(
    wanted: Sequence[Array], count: int = 36, *, steps: int = 12, threshold: float = 0.5
) -> Array:
    """Return the boxes that, the same in every image, cover most: greedily, from a lattice.

    Args:
        wanted: (n, 4) boxes of each training image, shares of its sides.
        count: how many to choose.
        steps: of the lattice, see `lattice_boxes`.
        threshold: IoU that covers.
    """
    boxes = np.concatenate([np.asarray(one, np.float32).reshape(-1, 4) for one in wanted])
    if not len(boxes):
        raise InputError("wanted: holds no box")
    pool = lattice_boxes(steps)
    covers = np.zeros((len(pool), len(boxes)), bool)
    for start in range(0, len(boxes), 2000):  # the whole table of overlaps would take gigabytes
        part = slice(start, start + 2000)
        covers[:, part] = box_iou(pool, boxes[part]) >= threshold
    left = np.ones(len(boxes), np.float32)
    chosen: list[int] = []
    table = covers.astype(np.float32)
    for _ in range(min(count, len(pool))):
        gain = table @ left
        gain[chosen] = -1
        best = int(gain.argmax())
        chosen.append(best)
        left[covers[best]] = 0
    return pool[chosen]


def require_selective_search() -> Any:  # noqa: ANN401 (OpenCV has no types)
    """Return OpenCV's selective search; its plain package has none, only the one with extras."""
    try:
        import cv2

        return cv2.ximgproc.segmentation
    except (ImportError, AttributeError):
        package = "opencv-contrib-python-headless"
        raise MissingExtraError("selective search", package, "selective-search") from None


def selective_search(pixels: npt.NDArray[np.uint8], count: int = 36) -> Array:
    """Return the first boxes of OpenCV's selective search (fast), shares of the sides, (n, 4).

    J. R. R. Uijlings et al. Selective Search for Object Recognition. IJCV 2013.

    Args:
        pixels: (H, W, 3) RGB bytes.
        count: the most to return; a photograph with nothing in it gives itself.
    """
    search = require_selective_search().createSelectiveSearchSegmentation()
    search.setBaseImage(np.ascontiguousarray(pixels[:, :, ::-1]))  # OpenCV reads blue first
    search.switchToSelectiveSearchFast()
    found = np.asarray(search.process(), np.float32).reshape(-1, 4)[:count]  # x, y, w, h
    height, width = pixels.shape[:2]
    corners = np.concatenate([found[:, :2], found[:, :2] + found[:, 2:]], 1)
    shares = (corners / np.array([width, height] * 2, np.float32)).clip(0, 1)
    return shares if len(shares) else np.array([[0, 0, 1, 1]], np.float32)
