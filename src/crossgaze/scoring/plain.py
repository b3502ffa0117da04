"""The kernel of a model that has none of its own: what it says of pairs, for every pair.

As right as the model, and far slower than a kernel that multiplies large matrices
(`crossgaze.scoring.fragments`): a family is written down first and made fast later, if at all.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded

Pairs = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class PlainKernel:
    """Scores a sentence at a time with all images of a tile.

    Args:
        pairs: returns the (P,) scores of P pairs of (P, k, D) regions and (P, n, D) words, given
            the masks (P, k) and (P, n) of which are real.
    """

    tile = (3600, 256)
    items_first = (True, True)

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs

    def images(self, side: Encoded) -> Tensor:
        """Take the images' fragments, (I, k, D)."""
        return _fragments(side)

    def texts(self, side: Encoded) -> Tensor:
        """Take the sentences' fragments, (T, n, D)."""
        return _fragments(side)

    def score(self, images: Tensor, texts: Tensor) -> Tensor:
        """Return (I, T) scores."""
        count, words = len(images), texts.shape[1]
        seen = images.new_ones(count, images.shape[1], dtype=torch.bool)  # a tile has no padding
        said = images.new_ones(count, words, dtype=torch.bool)
        columns = [
            self.pairs(images, text.expand(count, -1, -1), seen, said)  # (I,)
            for text in texts
        ]
        return torch.stack(columns, dim=1)

    def numbers(self, regions: int, words: int) -> int:
        """Hold a few numbers for each region with each word; of one sentence, but a long one."""
        return 4 * regions * words


def _fragments(side: Encoded) -> Tensor:
    if side.fragments is None:
        raise InputError("got a side without fragments, wanted this model's own")
    return side.fragments
