"""Figures on the dev split, by which the best snapshot is chosen."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from crossgaze.evaluation.recall import retrieve
from crossgaze.models.encoded import Encoded
from crossgaze.models.matcher import Matcher
from crossgaze.training.batches import CaptionSet

IMAGES, TEXTS = 128, 512  # encoded at once


@torch.no_grad()
def evaluate_dev(model: Matcher, dev: CaptionSet) -> dict[str, float]:
    """Return recalls, medians and the sum of recalls of a model; its mode is left as it was.

    Args:
        model: as it is now.
        dev: the captions and their images.
    """
    training = model.training
    model.eval()
    try:
        images, texts = encode_images(model, dev), encode_texts(model, dev)
        return retrieve(model, images, texts, dev.owners).figures()
    finally:
        model.train(training)


def encode_images(model: Matcher, part: CaptionSet) -> Encoded:
    """Encode every image of a set, in order."""
    numbers = np.arange(len(part.regions))
    blocks = np.array_split(numbers, max(len(numbers) // IMAGES, 1))
    return join([model.encode_images(*part.regions.gather(block)) for block in blocks])


def encode_texts(model: Matcher, part: CaptionSet) -> Encoded:
    """Encode every caption of a set, in order."""
    numbers = np.arange(len(part.sentences))
    lengths = part.sentences.lengths
    width = int(lengths.max())
    blocks = np.array_split(numbers, max(len(numbers) // TEXTS, 1))
    return join(
        [
            model.encode_tokens(part.sentences.padded(block, width), lengths[block])
            for block in blocks
        ]
    )


def join(parts: list[Encoded]) -> Encoded:
    """Return parts of one width as one; what only attention needs is left behind."""

    def together(found: list[Tensor | None]) -> Tensor | None:
        there = [part for part in found if part is not None]
        return torch.cat(there) if there else None

    return Encoded(
        together([part.vectors for part in parts]),
        together([part.fragments for part in parts]),
        torch.cat([part.counts for part in parts]),
    )
