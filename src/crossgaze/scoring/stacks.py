"""MMCA's cross attention over all pairs: stacks of equal height, many at a time.

Here nothing can be taken out of the pair: after the attention every fragment of a stack goes
through layers of its own (eq. 4 of MMCA), k + n of them a pair. What is left to win is to make
queries, keys and values once a side, to have no padding, and to keep each group of stacks small
enough for a core's cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.models.transformer_unit import Heads

NUMBERS = 1 << 19  # of the fragments of the stacks worked on at once: 2 MB of float32


class Stacked(NamedTuple):
    """A tile of one side: its vectors (I, D), fragments (I, m, D) and their `Heads`."""

    vectors: Tensor
    fragments: Tensor
    heads: Heads


@dataclass(frozen=True)
class StackKernel:
    """i_0 . c_0 + alpha i_1 . c_1 of MMCA.

    Args:
        project: makes queries, keys and values of fragments.
        cross: i_1 . c_1 of P pairs: regions, their heads, words, their heads -> (P,).
        alpha: how much it counts.
        dtype: precision of the layers.
    """

    project: Callable[[Tensor], Heads]
    cross: Callable[[Tensor, Heads, Tensor, Heads], Tensor]
    alpha: float
    dtype: torch.dtype
    tile: ClassVar = (36 * 8, 12 * 8)  # every pair is much work, so that small tiles share it out
    items_first: ClassVar = (True, True)

    def images(self, side: Encoded) -> Stacked:
        """Prepare images."""
        return self._prepare(side)

    def texts(self, side: Encoded) -> Stacked:
        """Prepare sentences."""
        return self._prepare(side)

    def score(self, images: Stacked, texts: Stacked) -> Tensor:
        """Return (images, texts) scores."""
        scores = images.vectors @ texts.vectors.T
        height = images.fragments.shape[1] + texts.fragments.shape[1]
        pairs = torch.cartesian_prod(
            torch.arange(len(images.vectors), device=scores.device),
            torch.arange(len(texts.vectors), device=scores.device),
        )
        size = max(NUMBERS // (height * images.fragments.shape[2]), 1)
        parts = []
        for part in torch.split(pairs, size):
            region_rows, word_rows = part.unbind(1)
            parts.append(
                self.cross(
                    images.fragments[region_rows],
                    Heads(*(head[region_rows] for head in images.heads)),
                    texts.fragments[word_rows],
                    Heads(*(head[word_rows] for head in texts.heads)),
                )
            )
        return scores + self.alpha * torch.cat(parts).view_as(scores)

    def numbers(self, regions: int, words: int) -> int:
        """Hold some twelve tensors the size of a group of stacks, and little else."""
        return regions * words + 12 * NUMBERS

    def _prepare(self, side: Encoded) -> Stacked:
        if side.vectors is None or side.fragments is None:
            raise InputError("got a side without vectors or fragments, wanted this model's own")
        # Layers compute in the precision of their weights, whatever was asked for.
        fragments = side.fragments.to(self.dtype)
        return Stacked(side.vectors.to(self.dtype), fragments, self.project(fragments))
