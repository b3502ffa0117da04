"""What the two stages are trained for.

X. Li et al. Generalized Focal Loss. NeurIPS 2020 (quality focal loss: objectness is taught the IoU
of the box that an anchor was moved to). S. Zhang et al. ATSS. CVPR 2020 (every box has its best
anchors, however small it is, but those that a later box has, too).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from crossgaze.vision.objects.boxes import giou, iou
from crossgaze.vision.objects.network import Guesses, Judged
from crossgaze.vision.objects.targets import Target

POSITIVE = 0.5  # IoU of an anchor with a box that it is moved to
BEST = 6  # anchors that every box has, whatever their IoU
EACH = 8.0  # the weight of a box, shared by its anchors; an anchor without a box weighs 1
SETTING = 4.0  # the weight of a setting's nouns, against a region's
NEAR = 0.4  # IoU of a proposal with the box that the second stage moves it to


def quality_focal(logits: Tensor, quality: Tensor) -> Tensor:
    """|q - p|^2 times the cross entropy of p = sigmoid(logit) against q, element by element."""
    gap = (quality - logits.sigmoid()).abs()
    return gap**2 * F.binary_cross_entropy_with_logits(logits, quality, reduction="none")


def assign(anchors: Tensor, boxes: Tensor) -> Tensor:
    """Return the number of the box that each anchor is moved to, -1 for none; (A,) long."""
    overlap = iou(anchors, boxes)  # (A, n)
    best, number = overlap.max(1)
    number = torch.where(best >= POSITIVE, number, -1)
    closest = overlap.topk(min(BEST, len(anchors)), 0).indices  # (BEST, n)
    for column in range(len(boxes)):
        number[closest[:, column]] = column
    return number


def proposal_loss(found: Guesses, anchors: Tensor, wanted: list[Target]) -> tuple[Tensor, Tensor]:
    """Return the loss of the objectness and of the boxes, a mean over annotated boxes.

    Only anchors that were asked for a box are taught that they found one. Those that found it
    unasked are taught to stay silent: else large boxes, which many anchors find, might crowd out
    small ones. Nor are boxes around a phrase's several boxes asked for.
    """
    score, box, count = found.logits.sum() * 0, found.logits.sum() * 0, 0
    for logits, decoded, target in zip(found.logits, found.decoded, wanted, strict=True):
        boxes = target.boxes[: target.own]
        if not len(boxes):
            score = score + quality_focal(logits, torch.zeros_like(logits)).sum()
            continue
        number = assign(anchors, boxes)
        rows = (number >= 0).nonzero().squeeze(1)
        mine = number[rows]
        count += len(boxes)
        share = EACH * _shared(mine, len(boxes))
        with torch.no_grad():
            quality, counts = torch.zeros_like(logits), torch.ones_like(logits)
            quality[rows] = iou(decoded[rows], boxes)[torch.arange(len(rows)), mine]
            counts[rows] = share
        score = score + (quality_focal(logits, quality) * counts).sum()
        box = box + ((1 - giou(decoded[rows], boxes[mine])) * share).sum()
    return score / max(count, 1), box / max(count, 1) / EACH


def _shared(box: Tensor, boxes: int) -> Tensor:
    """Share each box among the anchors that have it, (A,) numbers -> (A,) shares of 1."""
    return (1 / box.bincount(minlength=boxes).clamp(1))[box]


@torch.no_grad()
def qualities(boxes: Tensor, target: Target) -> Tensor:
    """Return what the qualities of boxes (n, 4) should be, (n, 3), see `network.QUALITIES`."""
    found = boxes.new_zeros(len(boxes), 3)
    if target.own:
        best = iou(boxes, target.boxes[: target.own]).max(1).values
        found[:, 0], found[:, 1] = best >= 0.5, best >= 0.7
    if len(target.phrases):
        covers = (iou(boxes, target.phrases) >= 0.5).to(boxes.dtype)  # (n, k)
        found[:, 2] = (covers @ target.named).clamp(max=1)
    return found


def judge_loss(
    found: Judged, proposed: Tensor, valid: Tensor, wanted: list[Target]
) -> dict[str, Tensor]:
    """Return the losses of the second stage by name.

    The last box of each photograph is the whole photograph: it learns the setting's nouns, and the
    rest like any other.

    Args:
        found: about (B, n) boxes.
        proposed: (B, n, 4), the boxes before they were moved.
        valid: (B, n) bool, the rest is not counted.
        wanted: B targets.
    """
    zero = found.quality.sum() * 0
    total = dict.fromkeys(("quality", "box", "noun", "attribute"), zero)
    count = {"quality": float(valid.sum()), "box": 0.0, "noun": 0.0, "attribute": 0.0}

    def add(name: str, loss: Tensor, number: float) -> None:
        total[name] = total[name] + loss.sum()
        count[name] += number

    for row, target in enumerate(wanted):
        boxes, real = found.boxes[row], valid[row]
        truth = qualities(boxes, target)
        raw = F.binary_cross_entropy_with_logits(found.quality[row], truth, reduction="none")
        add("quality", raw[real], 0)
        if target.setting.sum() > 0:
            add("noun", SETTING * _word_loss(found.nouns[row, -1:], target.setting), SETTING)
        if not len(target.boxes):
            continue
        start, goal = iou(proposed[row], target.boxes).max(1)
        near = (start >= NEAR) & real
        add("box", 1 - giou(boxes[near], target.boxes[goal[near]]), float(near.sum()))
        if not target.own:
            continue
        best, number = iou(boxes.detach(), target.boxes[: target.own]).max(1)
        good = (best >= 0.5) & real
        for name, logits, labels in (
            ("noun", found.nouns[row], target.nouns),
            ("attribute", found.attributes[row], target.attributes),
        ):
            aim = labels[number[good]]  # (g, words), rows of 0 where no caption says
            add(name, _word_loss(logits[good], aim), float((aim.sum(-1) > 0).sum()))
    return {name: total[name] / max(count[name], 1.0) for name in total}


def _word_loss(logits: Tensor, shares: Tensor) -> Tensor:
    """Cross entropy with shares of words, (n, words) -> (n,); 0 where there are none."""
    return -(shares * logits.log_softmax(-1)).sum(-1)
