"""What a kernel is: the fast form of one model's similarity, without gradient."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded

HALF = (torch.float16, torch.bfloat16)


class Kernel(Protocol):
    """Scores every image of a tile with every sentence of a tile.

    A tile is prepared once and then meets many of the other side.
    """

    @property
    def tile(self) -> tuple[int, int]:
        """Regions and words of tiles that suit it."""

    @property
    def items_first(self) -> tuple[bool, bool]:
        """How images' and sentences' fragments lie in memory best, see `make_tiles`."""

    def images(self, side: Encoded) -> Any:  # noqa: ANN401 (each kernel's own)
        """Prepare images with equally many regions."""

    def texts(self, side: Encoded) -> Any:  # noqa: ANN401
        """Prepare sentences with equally many words."""

    def score(self, images: Any, texts: Any) -> Tensor:  # noqa: ANN401
        """Return the scores of prepared images with prepared sentences, (images, texts)."""

    def numbers(self, regions: int, words: int) -> int:
        """Return how many numbers `score` holds for tiles of so many regions and words in all."""


class InnerProducts:
    """The kernel of models that give each side one vector: a matrix product."""

    tile = (1024, 4096)
    items_first = (True, True)

    def images(self, side: Encoded) -> Tensor:
        """Take the images' vectors, (I, D)."""
        return _vectors(side)

    def texts(self, side: Encoded) -> Tensor:
        """Take the sentences' vectors, (T, D)."""
        return _vectors(side)

    def score(self, images: Tensor, texts: Tensor) -> Tensor:
        """Multiply, (I, T)."""
        return images @ texts.T

    def numbers(self, regions: int, words: int) -> int:
        """Hold the product."""
        return regions * words


def _vectors(side: Encoded) -> Tensor:
    if side.vectors is None:
        raise InputError("got a side without vectors, wanted this model's own")
    return side.vectors
