"""RoI align: what a map of features holds inside a box, by bilinear sampling.

K. He et al. Mask R-CNN. ICCV 2017. A box is cut into bins x bins parts, each is sampled at
samples x samples points, and each point is read bilinearly from the four cells around it, whose
values stand at their centres. So a bin is a weighted sum of 4 samples^2 rows of the map, which is
what `embedding_bag` computes: in one pass, on any device, without the list of sampled vectors.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def roi_align(features: Tensor, boxes: Tensor, bins: int, samples: int = 2) -> Tensor:
    """Pool a map inside boxes.

    Args:
        features: (B, C, H, W), fastest in channels_last.
        boxes: (B, n, 4), shares of the map's width and height.
        bins: along each side of a box.
        samples: points along each side of a bin.

    Returns:
        (B, n, bins * bins, C), bins row by row.

    Example:
        >>> flat = torch.arange(4.0).view(1, 1, 2, 2)
        >>> roi_align(flat, torch.tensor([[[0.0, 0, 1, 1]]]), 1).tolist()
        [[[[1.5]]]]
    """
    batch, channels, height, width = features.shape
    count, points = boxes.shape[1], bins * samples
    x0, x1, wx = _corners(boxes[..., 0], boxes[..., 2], points, width)  # (B, n, points) each
    y0, y1, wy = _corners(boxes[..., 1], boxes[..., 3], points, height)
    rows = torch.stack([y0, y0, y1, y1], -1).unsqueeze(3)  # (B, n, py, 1, 4)
    columns = torch.stack([x0, x1, x0, x1], -1).unsqueeze(2)  # (B, n, 1, px, 4)
    left_right = torch.stack([1 - wx, wx, 1 - wx, wx], -1).unsqueeze(2)
    up_down = torch.stack([1 - wy, 1 - wy, wy, wy], -1).unsqueeze(3)
    first = torch.arange(batch, device=boxes.device).view(-1, 1, 1, 1, 1) * (height * width)
    index = first + rows * width + columns  # (B, n, py, px, 4)
    weight = up_down * left_right / samples**2

    def by_bin(x: Tensor) -> Tensor:
        # (B, n, bins, s, bins, s, 4) -> (B * n * bins * bins, s * s * 4)
        cut = x.view(batch, count, bins, samples, bins, samples, 4).transpose(3, 4)
        return cut.reshape(batch * count * bins * bins, samples * samples * 4)

    table = features.permute(0, 2, 3, 1).reshape(batch * height * width, channels)
    found = F.embedding_bag(
        by_bin(index), table, per_sample_weights=by_bin(weight).to(table.dtype), mode="sum"
    )
    return found.view(batch, count, bins * bins, channels)


def _corners(low: Tensor, high: Tensor, points: int, cells: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return, for each point, the cell before it, the one after it, and the latter's weight."""
    share = (torch.arange(points, device=low.device, dtype=low.dtype) + 0.5) / points
    place = low.unsqueeze(-1) + (high - low).unsqueeze(-1) * share  # (B, n, points)
    place = (place * cells - 0.5).clamp(0, cells - 1)  # at an edge the outer cell goes on
    before = place.floor().long().clamp(max=max(cells - 2, 0))
    after = (before + 1).clamp(max=cells - 1)
    return before, after, place - before
