"""Boxes as tensors (..., 4): x1, y1, x2, y2, as shares of the photograph's width and height.

Overlap is the same in shares and in pixels, so a photograph's proportions never enter.

H. Rezatofighi et al. Generalized Intersection over Union. CVPR 2019 (`giou`).
"""

from __future__ import annotations

import torch
from torch import Tensor

SMALLEST = 1 / 1024  # the least side of a box, as a share
MOST_GROWTH = 2.0  # a side grows or shrinks at most e^2 = 7.4 times against its anchor


def area(boxes: Tensor) -> Tensor:
    """(..., 4) -> (...), in shares of the photograph."""
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def iou(a: Tensor, b: Tensor) -> Tensor:
    """Intersection over union of every pair, (..., n, 4) and (..., m, 4) -> (..., n, m).

    Example:
        >>> iou(torch.tensor([[0.0, 0, 1, 1]]), torch.tensor([[0.5, 0, 1, 1]])).tolist()
        [[0.5]]
    """
    a, b = a.unsqueeze(-2), b.unsqueeze(-3)  # (..., n, 1, 4), (..., 1, m, 4)
    wide = (torch.minimum(a[..., 2], b[..., 2]) - torch.maximum(a[..., 0], b[..., 0])).clamp(0)
    high = (torch.minimum(a[..., 3], b[..., 3]) - torch.maximum(a[..., 1], b[..., 1])).clamp(0)
    both = wide * high
    return both / (area(a) + area(b) - both).clamp(min=1e-12)


def giou(a: Tensor, b: Tensor) -> Tensor:
    """Generalised IoU of pairs, (..., 4) and (..., 4) -> (...): IoU - empty share of the hull."""
    low, high = torch.minimum(a, b), torch.maximum(a, b)
    side = (low[..., 2:] - high[..., :2]).clamp(0)  # of the intersection
    hull = high[..., 2:] - low[..., :2]
    both, whole = side.prod(-1), hull.prod(-1).clamp(min=1e-12)
    union = (area(a) + area(b) - both).clamp(min=1e-12)
    return both / union - (whole - union) / whole


def mirror(boxes: Tensor) -> Tensor:
    """Return boxes (..., 4) as they are in the mirror image.

    Example:
        >>> mirror(torch.tensor([0.0, 0.1, 0.25, 0.2])).tolist()[::2]
        [0.75, 1.0]
    """
    x1, y1, x2, y2 = boxes.unbind(-1)
    return torch.stack([1 - x2, y1, 1 - x1, y2], -1)


def inside(boxes: Tensor) -> Tensor:
    """Cut boxes to the photograph; each keeps sides of at least `SMALLEST`."""
    low = boxes[..., :2].clamp(0, 1 - SMALLEST)
    high = torch.maximum(boxes[..., 2:].clamp(max=1), low + SMALLEST)
    return torch.cat([low, high], -1)


def decode(anchors: Tensor, shifts: Tensor) -> Tensor:
    """Move anchors by predicted shifts (dx, dy in sides, dw, dh in logarithms), (..., 4) each."""
    side = anchors[..., 2:] - anchors[..., :2]
    middle = (anchors[..., 2:] + anchors[..., :2]) / 2 + shifts[..., :2] * side
    half = side * shifts[..., 2:].clamp(-MOST_GROWTH, MOST_GROWTH).exp() / 2
    return torch.cat([middle - half, middle + half], -1)


def greedy_keep(boxes: Tensor, threshold: float) -> Tensor:
    """Which boxes greedy suppression keeps; they come best first.

    The rule, that a box stays if no kept better box overlaps it by more than the threshold, has
    one solution. It is found for all boxes together by applying the rule until nothing changes: as
    many rounds as the longest chain of boxes that suppress each other (about ten), and no loop
    over boxes, so it runs on a GPU as it stands.

    Args:
        boxes: (B, n, 4), best first.
        threshold: an IoU above this suppresses.

    Returns:
        (B, n) bool.
    """
    over = (iou(boxes, boxes) > threshold).triu(1).to(boxes.dtype)  # (B, better, worse)
    keep = boxes.new_ones(boxes.shape[:-1])  # (B, n)
    while True:
        found = (keep.unsqueeze(-2) @ over).squeeze(-2) < 0.5  # no kept better box is over it
        if torch.equal(found, keep > 0.5):
            return found
        keep = found.to(boxes.dtype)


def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Return the numbers of the boxes (n, 4) that greedy suppression keeps, best first."""
    order = scores.argsort(descending=True, stable=True)
    return order[greedy_keep(boxes[order].unsqueeze(0), threshold)[0]]
