"""What a model makes of images and of sentences, and what attention it paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from crossgaze.errors import InputError


@dataclass(frozen=True)
class Encoded:
    """One side, encoded: N images or N sentences.

    Args:
        vectors: (N, D) one vector an image or sentence, or None where a model has none.
        fragments: (N, n, D') regions or words, or None where a model keeps none; rows past `counts`
            mean nothing and never change a score.
        counts: (N,) int64, how many fragments are real.
        features: (N, n, d) what attention is computed from where that is not `fragments`.
    """

    vectors: Tensor | None
    fragments: Tensor | None
    counts: Tensor
    features: Tensor | None = None

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, rows: int | Sequence[int] | slice | Tensor) -> Encoded:
        """Return some of the images or sentences, in the order of `rows`; one number gives one."""
        if not isinstance(rows, slice | Tensor):
            # A list of True and False is a mask, and a single number keeps the batch axis.
            rows = torch.as_tensor(np.atleast_1d(rows), device=self.counts.device)
            rows = rows if rows.dtype == torch.bool else rows.long()

        def pick(part: Tensor | None) -> Tensor | None:
            return None if part is None else part[rows]

        return replace(
            self,
            vectors=pick(self.vectors),
            fragments=pick(self.fragments),
            counts=self.counts[rows],
            features=pick(self.features),
        )

    @property
    def mask(self) -> Tensor:
        """(N, n) bool, which fragments are real."""
        part = self.fragments if self.fragments is not None else self.features
        if part is None:
            raise InputError("this model keeps no fragments, only one vector a side")
        return real(self.counts, part.shape[1])


def real(counts: Tensor, width: int) -> Tensor:
    """Return (N, width) bool: row i has `counts[i]` True and then False.

    Example:
        >>> real(torch.tensor([2]), 3)
        tensor([[ True,  True, False]])
    """
    return torch.arange(width, device=counts.device) < counts[:, None]


@dataclass(frozen=True)
class Attention:
    """The weights that a model gave, for P pairs of an image and a sentence.

    Args:
        names: the maps: directions ("t-i", "i-t"), steps ("step 1"), heads ("head 1") ...
        weights: (P, maps, words, regions), or None where a model does not relate the two.
        regions: (P, maps, regions), how much each region counted, or None.
        words: (P, maps, words), how much each word counted, or None.
        dense: (P, maps, words, regions), the weights before the model set some of `weights` to
            zero (BFAN), or None where it drops nothing.
    """

    names: tuple[str, ...]
    weights: Tensor | None = None
    regions: Tensor | None = None
    words: Tensor | None = None
    dense: Tensor | None = None
