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


def greedy_keep(
    boxes: Tensor, threshold: float, *, wanted: int | None = None, block: int = 64
) -> Tensor:
    """Which boxes greedy suppression keeps; they come best first.

    The rule: a box stays if no kept better box overlaps it by more than the threshold. Block by
    block the rule is applied until nothing changes, a few rounds, and then what stays suppresses
    what comes later: no loop over boxes, and overlaps that fit in a cache.

    Args:
        boxes: (B, n, 4), best first.
        threshold: an IoU above this suppresses.
        wanted: stop when every photograph has so many; later boxes count as suppressed.
        block: boxes at a time.

    Returns:
        (B, n) bool.
    """
    keep = boxes.new_ones(boxes.shape[:-1], dtype=torch.bool)  # (B, n)
    for start in range(0, boxes.shape[-2], block):
        end = min(start + block, boxes.shape[-2])
        over = (iou(boxes[..., start:end, :], boxes[..., start:, :]) > threshold).to(boxes.dtype)
        among = over[..., : end - start].triu(1)  # (B, better, worse)
        alive = keep[..., start:end]
        kept = alive
        while True:
            found = alive & ~_hit(kept, among)
            if torch.equal(found, kept):
                break
            kept = found
        later = keep[..., end:] & ~_hit(kept, over[..., end - start :])
        keep = torch.cat([keep[..., :start], kept, later], -1)
        if wanted is not None and bool((keep[..., :end].sum(-1) >= wanted).all()):
            return torch.cat([keep[..., :end], torch.zeros_like(later)], -1)
    return keep


def _hit(kept: Tensor, over: Tensor) -> Tensor:
    """Which boxes (B, m) a kept one is over; (B, b) bool and (B, b, m)."""
    return (kept.to(over.dtype).unsqueeze(-2) @ over).squeeze(-2) > 0.5


def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Return the numbers of the boxes (n, 4) that greedy suppression keeps, best first."""
    order = scores.argsort(descending=True, stable=True)
    return order[greedy_keep(boxes[order].unsqueeze(0), threshold)[0]]
