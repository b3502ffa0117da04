"""Anchors: boxes of a few sizes and proportions around every cell of a level."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def level_anchors(cells: int, sides: Sequence[float], ratios: Sequence[float]) -> Tensor:
    """Return the anchors of a square level, (cells * cells * len(sides) * len(ratios), 4).

    Cells come row by row, then sides, then ratios. Anchors may pass the photograph's edges.

    Args:
        cells: along a side of the level.
        sides: of a square anchor, as shares of the photograph.
        ratios: height over width, at the same area.

    Example:
        >>> level_anchors(1, [0.5], [1.0]).tolist()
        [[0.25, 0.25, 0.75, 0.75]]
    """
    centre = (torch.arange(cells) + 0.5) / cells
    y, x = torch.meshgrid(centre, centre, indexing="ij")
    middle = torch.stack([x, y], -1).view(-1, 1, 2)  # (cells^2, 1, 2)
    half = torch.tensor(
        [[side / math.sqrt(r) / 2, side * math.sqrt(r) / 2] for side in sides for r in ratios]
    )  # (A, 2)
    return torch.cat([middle - half, middle + half], -1).view(-1, 4)  # (cells^2 * A, 4)
