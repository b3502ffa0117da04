"""What the two stages are trained for.

X. Li et al. Generalized Focal Loss. NeurIPS 2020 (quality focal loss: objectness is taught the IoU
of the box that an anchor was moved to). S. Zhang et al. ATSS. CVPR 2020 (every box has its best
anchors, however small it is).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from crossgaze.vision.objects.boxes import giou, iou
from crossgaze.vision.objects.network import Judged, Proposals
from crossgaze.vision.objects.targets import Target

POSITIVE = 0.5  # IoU of an anchor with a box that it is moved to
BEST = 6  # anchors that every box has, whatever their IoU
EACH = 8.0  # the weight of a box, shared by its anchors; an anchor without a box weighs 1
HULL = 0.5  # the weight of a box around several, against an annotated one
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


def proposal_loss(found: Proposals, anchors: Tensor, wanted: list[Target]) -> tuple[Tensor, Tensor]:
    """Return the loss of the objectness and of the boxes, a mean over annotated boxes."""
    score, box, count = found.logits.sum() * 0, found.logits.sum() * 0, 0.0
    for logits, decoded, target in zip(found.logits, found.decoded, wanted, strict=True):
        if not len(target.boxes):
            score = score + quality_focal(logits, torch.zeros_like(logits)).sum()
            continue
        number = assign(anchors, target.boxes)
        rows = (number >= 0).nonzero().squeeze(1)
        mine = number[rows]
        weights = logits.new_full((len(target.boxes),), HULL)
        weights[: target.own] = 1
        count += float(weights.sum())
        share = (weights * EACH / number[rows].bincount(minlength=len(weights)).clamp(1))[mine]
        with torch.no_grad():
            overlap = iou(decoded, target.boxes)  # (A, n)
            quality = torch.zeros_like(logits)
            quality[rows] = overlap[rows, mine]
            # An anchor that found a box it was not asked for is neither right nor wrong.
            counts = (overlap.max(1).values < POSITIVE).to(logits.dtype)
            counts[rows] = share
        score = score + (quality_focal(logits, quality) * counts).sum()
        box = box + ((1 - giou(decoded[rows], target.boxes[mine])) * share).sum()
    return score / max(count, 1), box / max(count, 1) / EACH


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
    moved = named = described = 0.0
    for row, target in enumerate(wanted):
        boxes, live = found.boxes[row], valid[row].to(zero.dtype)
        quality = torch.zeros_like(found.quality[row])  # (n, 3)
        if len(target.boxes):
            with torch.no_grad():
                overlap = iou(boxes, target.boxes[: max(target.own, 1)])  # (n, own)
                best, number = overlap.max(1)
                quality[:, 0], quality[:, 1] = best >= 0.5, best >= 0.7
                covers = (iou(boxes, target.phrases) >= 0.5).to(zero.dtype)  # (n, k)
                quality[:, 2] = (covers @ target.named).clamp(max=1)
                start, goal = iou(proposed[row], target.boxes).max(1)
                near = (start >= NEAR) & valid[row]
            gap = 1 - giou(boxes[near], target.boxes[goal[near]])
            total["box"] = total["box"] + gap.sum()
            moved += float(near.sum())
            good = ((best >= 0.5) & valid[row]).nonzero().squeeze(1)
            for name, logits, labels in (
                ("noun", found.nouns[row], target.nouns),
                ("attribute", found.attributes[row], target.attributes),
            ):
                if not target.own:
                    continue
                aim = labels[number[good]]  # (g, words)
                loss = -(aim * logits[good].log_softmax(-1)).sum(-1)
                total[name] = total[name] + loss.sum()
                known = float((aim.sum(-1) > 0).sum())
                named, described = (
                    (named + known, described) if name == "noun" else (named, described + known)
                )
        if target.setting.sum() > 0:
            total["noun"] = (
                total["noun"] - (target.setting * found.nouns[row, -1].log_softmax(-1)).sum() * 4
            )
            named += 4
        raw = F.binary_cross_entropy_with_logits(found.quality[row], quality, reduction="none")
        total["quality"] = total["quality"] + (raw * live.unsqueeze(-1)).sum()
    return {
        "quality": total["quality"] / valid.sum().clamp(1),
        "box": total["box"] / max(moved, 1),
        "noun": total["noun"] / max(named, 1),
        "attribute": total["attribute"] / max(described, 1),
    }
