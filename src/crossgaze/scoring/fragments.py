"""The kernel of models that compare every region with every word: one large GEMM, then reductions.

One side is the *context*, c fragments an item, the other the *query*, q fragments an item: regions
and words in t-i, words and regions in i-t. A tile of C context items and one of I query items meet
in one matrix product,

    (C c, D) @ (D, q I) -> scores (C, c, q, I),

with the query's items innermost. Every later step (a norm over q, a softmax over c, a mean over q)
then runs along contiguous memory, and a small slice of it at a time stays in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from crossgaze.errors import InputError
from crossgaze.models.cross_attention import Direction
from crossgaze.models.encoded import Encoded
from crossgaze.scoring.kernel import HALF

SLICE = 3 << 16  # scores worked on at once: under a megabyte of float32, so that caches hold them


@dataclass(frozen=True)
class Fragments:
    """A tile of one side.

    Args:
        rows: (items count, D) or (count items, D), the fragments as the product takes them.
        items: images or sentences.
        count: fragments of each.
        first: whether items come first in `rows`, before their fragments.
    """

    rows: Tensor
    items: int
    count: int
    first: bool

    @property
    def fragments(self) -> Tensor:
        """(items, count, D), at least in single precision."""
        if self.first:
            x = self.rows.view(self.items, self.count, -1)
        else:
            x = self.rows.view(self.count, self.items, -1).transpose(0, 1)
        return x.float() if x.dtype in HALF else x

    @cached_property
    def gram(self) -> Tensor:
        """(items, count + 1, count) inner products within each item, and a row of ones below.

        Made once, when first wanted.
        """
        x = self.fragments
        return torch.cat([x @ x.transpose(1, 2), x.new_ones(len(x), 1, x.shape[1])], dim=1)

    @cached_property
    def lengths(self) -> Tensor:
        """(count, items) length of each fragment."""
        lengths: Tensor = self.fragments.norm(dim=2)
        return lengths.T.contiguous()


class Reduce(Protocol):
    """Turns the scores of a context tile with a query tile into the items' scores."""

    def __call__(self, scores: Tensor, context: Fragments, query: Fragments) -> Tensor:
        """Reduce (C, c, q, I) scores, which it may overwrite, to (C, I)."""

    def recorded(self, scores: Tensor, context: Tensor, query: Tensor) -> Tensor:
        """Do the same with autograd; the sides are (C, c, D) and (q, I, D)."""


class FragmentKernel:
    """Scores by reductions of the fragments' inner products, summed over directions.

    Args:
        ways: the reduction of each direction that counts.
    """

    tile = (3600, 3072)

    def __init__(self, ways: Mapping[Direction, Reduce]) -> None:
        self.ways = dict(ways)
        # The context of the product has its items first: images, unless i-t is all.
        self.items_first = ("t-i" in self.ways, "t-i" not in self.ways)

    def images(self, side: Encoded) -> Fragments:
        """Prepare images."""
        return _prepare(side, first=self.items_first[0])

    def texts(self, side: Encoded) -> Fragments:
        """Prepare sentences."""
        return _prepare(side, first=self.items_first[1])

    def score(self, images: Fragments, texts: Fragments) -> Tensor:
        """Return (images, texts) scores."""
        if "t-i" not in self.ways:
            return self.ways["i-t"](_multiply(texts, images), texts, images).T
        scores = _multiply(images, texts)  # (images, k, n, texts)
        if "i-t" not in self.ways:
            return self.ways["t-i"](scores, images, texts)
        # Turning the scores round is much cheaper than a second product. Always a copy: reductions
        # overwrite, and `contiguous` would give what it got where sizes are 1.
        turned = scores.permute(3, 2, 1, 0).clone(memory_format=torch.contiguous_format)
        ahead = self.ways["t-i"](scores, images, texts)
        return ahead + self.ways["i-t"](turned, texts, images).T

    def recorded(self, images: Tensor, texts: Tensor) -> Tensor:
        """Return (images, texts) scores with autograd, of (I, k, D) regions and (T, n, D) words."""
        count, k, _ = images.shape
        words, regions = texts.transpose(0, 1), images.transpose(0, 1)  # (n, T, D), (k, I, D)
        products = images.flatten(0, 1) @ words.flatten(0, 1).T  # (I k, n T)
        scores = products.view(count, k, len(words), len(texts))
        parts = []
        if "t-i" in self.ways:
            parts.append(self.ways["t-i"].recorded(scores, images, words))
        if "i-t" in self.ways:
            turned = scores.permute(3, 2, 1, 0)  # (T, n, k, I)
            parts.append(self.ways["i-t"].recorded(turned.contiguous(), texts, regions).T)
        return torch.stack(parts).sum(0)

    def numbers(self, regions: int, words: int) -> int:
        """Hold the scores, in both directions if both count, and a few slices."""
        scores = regions * words
        return len(self.ways) * scores + 4 * min(SLICE, scores)


def _prepare(side: Encoded, *, first: bool) -> Fragments:
    x = side.fragments  # (items, count, D)
    if x is None:
        raise InputError("got a side without fragments, wanted this model's own")
    rows = x if first else x.transpose(0, 1)  # (items, count, D) or (count, items, D)
    return Fragments(rows.reshape(-1, x.shape[2]), len(x), x.shape[1], first)


def _multiply(context: Fragments, query: Fragments) -> Tensor:
    """Return the inner products of all fragments, (C, c, q, I), at least in single precision."""
    scores = context.rows @ query.rows.T  # (C c, q I)
    scores = scores.float() if scores.dtype in HALF else scores
    return scores.view(context.items, context.count, query.count, query.items)


def slices(scores: Tensor) -> Iterator[slice]:
    """Cut (C, c, q, I) scores along the context's items into parts of about SLICE numbers."""
    items, size = len(scores), max(SLICE // scores[0].numel(), 1)
    for start in range(0, items, size):
        yield slice(start, min(start + size, items))


class BestFragments:
    """Sum-Max: each query fragment's best context fragment, summed; eqs. 9-10 of SCAN."""

    def __call__(self, scores: Tensor, context: Fragments, query: Fragments) -> Tensor:
        """Reduce (C, c, q, I) scores to (C, I)."""
        return scores.amax(1).sum(1)  # (C, c, q, I) -> (C, q, I) -> (C, I)

    def recorded(self, scores: Tensor, context: Tensor, query: Tensor) -> Tensor:
        """Do the same with autograd; of equals, the first gets the gradient."""
        return scores.max(1).values.sum(1)
