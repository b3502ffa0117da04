"""Grid regions: every image cut into g x g cells, each with its box and its mean feature."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


def pooling_matrix(cells: int, outputs: int) -> Tensor:
    """Return (outputs, cells) weights that average a row of cells over equal stretches.

    Output o covers the cells from o * cells / outputs to (o + 1) * cells / outputs; a cell counts
    by the part of it that lies inside. Where `outputs` divides `cells` this is plain average
    pooling; where it does not (8 cells to 6), no cell is used by more than its share, so a region's
    box is exactly what its feature was taken from.

    Example:
        >>> pooling_matrix(3, 2)
        tensor([[0.6667, 0.3333, 0.0000],
                [0.0000, 0.3333, 0.6667]])
    """
    edges = torch.linspace(0, cells, outputs + 1, dtype=torch.float64)
    starts = torch.arange(cells, dtype=torch.float64)
    last = torch.minimum(edges[1:, None], starts + 1)  # (outputs, cells)
    first = torch.maximum(edges[:-1, None], starts)
    return ((last - first).clamp(min=0) * outputs / cells).float()


def pool_grid(features: Tensor, grid: int) -> Tensor:
    """Average a map over a g x g grid.

    Args:
        features: (B, d, h, w) a backbone's map.
        grid: g.

    Returns:
        (B, g * g, d) region features, row by row from the top left.
    """
    batch, width, h, w = features.shape
    if (h, w) != (grid, grid):
        rows = pooling_matrix(h, grid).to(features)  # (g, h)
        columns = pooling_matrix(w, grid).to(features)  # (g, w)
        features = torch.einsum("gh,bdhw,kw->bdgk", rows, features, columns)
    return features.reshape(batch, width, grid * grid).transpose(1, 2)


def grid_boxes(grid: int, width: int, height: int) -> npt.NDArray[np.float32]:
    """Return the cells' boxes in pixels of a width x height image, (g * g, 4) as x1, y1, x2, y2.

    Example:
        >>> grid_boxes(2, 100, 50)[1].tolist()
        [50.0, 0.0, 100.0, 25.0]
    """
    xs = np.linspace(0, width, grid + 1, dtype=np.float32)
    ys = np.linspace(0, height, grid + 1, dtype=np.float32)
    top, left = np.meshgrid(ys[:-1], xs[:-1], indexing="ij")
    bottom, right = np.meshgrid(ys[1:], xs[1:], indexing="ij")
    return np.stack([left, top, right, bottom], axis=-1).reshape(grid * grid, 4)
