"""Choose the regions that together cover most, not the boxes that are each the likeliest.

With p_i the probability that box i covers a thing at IoU t, the gain of adding i to the chosen set
S is p_i times the probability that no chosen box covers the same thing:

    gain_t(i) = p_i  prod_{j in S} (1 - c_t(IoU_ij)),

where c_t(u) is the probability that a box covers a thing given that another, which overlaps it by
the IoU u, does: a logistic curve, fitted once on dev photographs (`fit_shared`). The gains at IoU
0.5 and 0.7 and how often the thing is named are added with weights, and the largest gain is taken
next. It is soft suppression (Bodla et al. Soft-NMS. ICCV 2017) with a curve that means something.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from crossgaze.errors import InputError
from crossgaze.vision.objects.boxes import area, iou


@dataclass(frozen=True)
class SelectionConfig:
    """How regions are chosen.

    Args:
        count: the most an image gets.
        weights: of covering a box at IoU 0.5, at 0.7, and of being named.
        shared_50: middle and width of the logistic curve c at IoU 0.5.
        shared_70: the same at IoU 0.7.
        blend: (3, 11), how each quality follows from what both stages say, see `blended`.
        mirror: whether boxes and qualities are the mean of what the photograph and its mirror
            image say, which takes twice as long.
    """

    count: int = 36
    weights: tuple[float, float, float] = (1.0, 0.07, 0.15)
    shared_50: tuple[float, float] = (0.55, 0.08)
    shared_70: tuple[float, float] = (0.72, 0.06)
    blend: tuple[tuple[float, ...], ...] = (
        (1.0, 0.0, 0.0, *(0.0,) * 8),
        (0.0, 1.0, 0.0, *(0.0,) * 8),
        (0.0, 0.0, 1.0, *(0.0,) * 8),
    )
    mirror: bool = False

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InputError(f"count: got {self.count}, wanted at least 1")
        if min(self.weights) < 0 or not sum(self.weights) > 0:
            raise InputError(f"weights: got {self.weights}, wanted none below 0 and one above")


def evidence(quality: Tensor, scores: Tensor, support: Tensor, boxes: Tensor) -> Tensor:
    """What is known of a box, (..., 11): its three qualities, objectness, size, support, and 1.

    Args:
        quality: (..., 3) logits of the second stage.
        scores: (...) logits of the first.
        support: (..., 5), what the anchors around say (`network.support`).
        boxes: (..., 4).
    """
    size = area(boxes).clamp(min=1e-6).log()
    own = torch.stack([scores, size], -1)
    return torch.cat([quality, own, support, torch.ones_like(size).unsqueeze(-1)], -1)


def blended(known: Tensor, config: SelectionConfig) -> Tensor:
    """Return the probabilities (..., 3) that the choice works with: logistic in the evidence.

    The second stage has seen the training photographs' boxes and trusts itself too much; the fit on
    photographs that it has not seen (`fit_blend`) sets that right and weighs in the first stage.

    Args:
        known: (..., 11), `evidence`.
        config: with the fit.
    """
    return (known @ known.new_tensor(config.blend).T).sigmoid()


def fit_blend(known: Tensor, truth: Tensor) -> tuple[tuple[float, ...], ...]:
    """Fit `SelectionConfig.blend` by logistic regression.

    Args:
        known: (n, 11), `evidence` of many boxes of photographs that were not trained on.
        truth: (n, 3), what the qualities should have been, 0 to 1.
    """
    scale = known.std(0).clamp(min=1e-3)
    scale[-1] = 1
    matrix = torch.zeros(3, known.shape[1], requires_grad=True)
    step = torch.optim.LBFGS([matrix], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        step.zero_grad()
        out = F.binary_cross_entropy_with_logits((known / scale) @ matrix.T, truth)
        out = out + 1e-5 * matrix.square().sum()
        out.backward()  # type: ignore[no-untyped-call]
        return out

    step.step(loss)  # type: ignore[no-untyped-call]
    found = (matrix.detach() / scale).tolist()
    return tuple(tuple(round(value, 4) for value in row) for row in found)


def choose(
    boxes: Tensor, quality: Tensor, valid: Tensor, config: SelectionConfig
) -> tuple[Tensor, Tensor, Tensor]:
    """Choose boxes greedily by what each adds.

    Args:
        boxes: (B, n, 4).
        quality: (B, n, 3), probabilities as `network.QUALITIES` orders them.
        valid: (B, n) bool; the others are only chosen when nothing else is left.
        config: how.

    Returns:
        (B, m) numbers of the chosen, m = min(count, n), in the order of choice; (B, m) the share of
        the largest possible gain that each added, never rising; (B, m) whether it was valid.
    """
    overlap = iou(boxes, boxes)  # (B, n, n)
    shared_50 = _curve(overlap, config.shared_50)
    shared_70 = _curve(overlap, config.shared_70)
    w50, w70, named = config.weights
    live = valid.to(boxes.dtype)
    gain_50 = (w50 * quality[..., 0] + named * quality[..., 2]) * live  # (B, n)
    gain_70 = w70 * quality[..., 1] * live
    free = torch.ones_like(live)
    chosen, gains = [], []
    for _ in range(min(config.count, boxes.shape[1])):
        gain = (gain_50 + gain_70).masked_fill(free == 0, -1.0)
        best, number = gain.max(1, keepdim=True)  # (B, 1)
        chosen.append(number)
        gains.append(best)
        free = free.scatter(1, number, 0.0)
        row = number.unsqueeze(-1).expand(-1, -1, boxes.shape[1])  # (B, 1, n)
        gain_50 = gain_50 * (1 - shared_50.gather(1, row).squeeze(1))
        gain_70 = gain_70 * (1 - shared_70.gather(1, row).squeeze(1))
    picked, value = torch.cat(chosen, 1), torch.cat(gains, 1) / (w50 + w70 + named)
    return picked, value, valid.gather(1, picked)


def _curve(overlap: Tensor, curve: tuple[float, float]) -> Tensor:
    middle, width = curve
    return ((overlap - middle) / width).sigmoid()


def fit_shared(
    boxes: list[Tensor], things: list[Tensor], threshold: float, bins: int = 50
) -> tuple[float, float]:
    """Fit c_t: (middle, width) of the logistic curve, from images' boxes and annotated boxes.

    Args:
        boxes: (n, 4) for each image, as the second stage gives them.
        things: (m, 4) for each image.
        threshold: t.
        bins: of the overlap between two boxes, from 0 to 1.
    """
    both, one = torch.zeros(bins), torch.zeros(bins)
    for found, wanted in zip(boxes, things, strict=True):
        if not len(wanted):
            continue
        covers = (iou(wanted, found) >= threshold).float()  # (m, n)
        index = (iou(found, found) * bins).long().clamp(max=bins - 1).flatten()  # (n n)
        other = 1 - torch.eye(len(found)).flatten()
        pair = (covers.T @ covers).flatten() * other  # things that both cover
        first = covers.sum(0).unsqueeze(1).expand(-1, len(found)).flatten() * other
        both += both.new_zeros(bins).index_add(0, index, pair)
        one += one.new_zeros(bins).index_add(0, index, first)
    share = both / one.clamp(1)
    place = (torch.arange(bins) + 0.5) / bins
    curve = torch.tensor([0.6, 0.1], requires_grad=True)
    step = torch.optim.Adam([curve], 0.02)
    for _ in range(300):
        error = (((place - curve[0]) / curve[1].clamp(min=0.01)).sigmoid() - share) ** 2
        step.zero_grad()
        (error * one.sqrt()).sum().backward()  # type: ignore[no-untyped-call]
        step.step()
    middle, width = curve.tolist()
    return round(middle, 3), round(max(width, 0.01), 3)
