"""What a view asks the network for: boxes, what they are called, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from crossgaze.evaluation.coverage import Annotated, Array
from crossgaze.vision.objects.samples import View
from crossgaze.vision.objects.words import Words

CAPTIONS = 5  # a thing that every caption names once has been named fully


@dataclass(frozen=True, eq=False)
class Target:
    """What one view asks for; boxes are shares.

    Args:
        boxes: (n, 4), the annotated boxes, then the boxes around a phrase's several boxes.
        own: how many of them are annotated boxes.
        phrases: (k, 4), each phrase's box once.
        named: (k,) how many phrases have it, over the five captions.
        nouns: (own, N) how often a phrase calls a box so, shares of 1; rows of 0 where unknown.
        attributes: (own, A) likewise.
        setting: (N,) nouns of the scene phrases, for the whole view.
    """

    boxes: Tensor
    own: int
    phrases: Tensor
    named: Tensor
    nouns: Tensor
    attributes: Tensor
    setting: Tensor

    def to(self, device: torch.device) -> Target:
        """Return it on a device."""
        names = ("boxes", "phrases", "named", "nouns", "attributes", "setting")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})


def target(wanted: Annotated, view: View, words: Words) -> Target:
    """Return what a view of an annotated photograph asks for."""
    boxes, stays = view.boxes(wanted.boxes)
    around, around_stays = view.boxes(wanted.phrases)
    nouns = np.zeros((len(boxes), len(words.nouns)), np.float32)
    attributes = np.zeros((len(boxes), len(words.attributes)), np.float32)
    named: Counter[tuple[float, ...]] = Counter()
    several: dict[tuple[float, ...], None] = {}
    for row, (members, text) in enumerate(zip(wanted.members, wanted.texts, strict=True)):
        noun, described = words.parse(text)
        for member in members:
            if noun is not None:
                nouns[member, noun] += 1
            attributes[member, list(described)] += 1
        if around_stays[row]:
            key = tuple(around[row].tolist())
            named[key] += 1
            if len(members) > 1:
                several[key] = None
    setting = np.zeros(len(words.nouns), np.float32)
    for text in wanted.scenes:
        noun, _ = words.parse(text)
        if noun is not None:
            setting[noun] += 1
    hulls = np.array(list(several), np.float32).reshape(-1, 4)
    return Target(
        boxes=torch.from_numpy(np.concatenate([boxes[stays], hulls])),
        own=int(stays.sum()),
        phrases=torch.tensor(list(named), dtype=torch.float32).view(-1, 4),
        named=torch.tensor(list(named.values()), dtype=torch.float32) / CAPTIONS,
        nouns=torch.from_numpy(_shares(nouns[stays])),
        attributes=torch.from_numpy(_shares(attributes[stays])),
        setting=torch.from_numpy(_shares(setting[None])[0]),
    )


def targets(wanted: Sequence[Annotated], views: Sequence[View], words: Words) -> list[Target]:
    """Return what each view asks for."""
    return [target(a, view, words) for a, view in zip(wanted, views, strict=True)]


def _shares(counts: Array) -> Array:
    """Return rows that sum to 1, or stay 0."""
    return np.asarray(counts / np.maximum(counts.sum(-1, keepdims=True), 1), np.float32)
