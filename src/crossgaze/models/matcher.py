"""The one interface of every model that matches images and sentences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy.typing as npt
import torch
from torch import Tensor, nn

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.checks import numbers, require_counts, whole_numbers
from crossgaze.models.companion import Companion
from crossgaze.models.encoded import Attention, Encoded
from crossgaze.models.text import TextEncoder
from crossgaze.scoring.kernel import HALF, InnerProducts, Kernel


class Matcher(nn.Module, ABC):
    """A model that scores how well images and sentences belong together.

    Every image is k region features, every sentence words. Sides are encoded by themselves and
    compared by `similarity`; gradients flow through all of it when torch records them.

    Class attributes:
        family: the model's name in `config.json`.
        embeds: whether each side becomes one vector whose inner products are the similarities
            (VSE++, VSRN, m-DAN), or pairs must be seen together (SCAN, BFAN, MMCA).
        companion_type: the configuration's class of what is trained along (`Companion`), if any.
    """

    family: ClassVar[str]
    embeds: ClassVar[bool]
    companion_type: ClassVar[type[Any] | None] = None
    config: Any
    text: TextEncoder

    def __init__(self) -> None:
        super().__init__()
        # Where the weights came from, kept in config.json: an imported checkpoint, a training run.
        self.origin: dict[str, Any] = {}

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The words the model knows; None where it reads word pieces."""
        return self.text.vocabulary

    # Encoding ---------------------------------------------------------------------------------

    def encode_images(
        self, regions: Tensor | npt.NDArray[Any], counts: Tensor | npt.NDArray[Any] | None = None
    ) -> Encoded:
        """Encode images.

        Args:
            regions: (N, k, d) region features, or (N, d) for one region an image.
            counts: (N,) how many regions are real; all of them if not given.
        """
        # A copy of an array: a mapped store is read-only, and torch would warn.
        x = regions if isinstance(regions, Tensor) else numbers("regions", regions)
        x = x.to(self.device, next(self.parameters()).dtype)
        x = x[:, None] if x.ndim == 2 else x
        width = self.config.region_width
        if x.ndim != 3 or x.shape[1] == 0 or x.shape[2] != width:
            raise InputError(f"regions: got shape {tuple(x.shape)}, wanted (N, k, {width})")
        real = require_counts("counts", counts, len(x), x.shape[1]).to(self.device)
        return self._encode_regions(x, real)

    def encode_texts(self, texts: Sequence[str]) -> Encoded:
        """Encode sentences, with the words of the model's vocabulary."""
        if isinstance(texts, str):
            raise InputError(f"texts: got one text {texts[:40]!r}, wanted a list of texts")
        texts = list(texts)
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                kind = type(text).__name__
                raise InputError(f"texts[{number}]: got a {kind}, wanted a text")
        rows = [self.text.tokenize(text) for text in texts]
        for number, (row, text) in enumerate(zip(rows, texts, strict=True)):
            if not row:
                raise InputError(f"texts[{number}]: {text!r} has no word in it")
        lengths = torch.tensor([len(row) for row in rows], dtype=torch.long)
        ids = torch.zeros(len(rows), int(lengths.max()) if rows else 1, dtype=torch.long)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = torch.tensor(row)
        return self.encode_tokens(ids, lengths)

    def encode_tokens(
        self, ids: Tensor | npt.NDArray[Any], lengths: Tensor | npt.NDArray[Any] | Sequence[int]
    ) -> Encoded:
        """Encode sentences given as numbers of words.

        Args:
            ids: (N, n) numbers in the model's vocabulary, padded on the right with anything.
            lengths: (N,) how many are real, at least 1, in any order.
        """
        tokens = whole_numbers("ids", ids).to(self.device)
        if tokens.ndim != 2:
            raise InputError(f"ids: got shape {tuple(tokens.shape)}, wanted (N, n)")
        real = require_counts("lengths", lengths, len(tokens), tokens.shape[1]).to(self.device)
        self.text.require_known(tokens, real)
        return self._encode_words(tokens, real)

    @abstractmethod
    def _encode_regions(self, regions: Tensor, counts: Tensor) -> Encoded:
        """Encode (N, k, d) regions of which `counts` (N,) are real."""

    @abstractmethod
    def _encode_words(self, ids: Tensor, lengths: Tensor) -> Encoded:
        """Encode (N, n) word numbers of which `lengths` (N,) are real."""

    # Comparing --------------------------------------------------------------------------------

    def similarity(self, images: Encoded, texts: Encoded) -> Tensor:
        """Return the similarity of every image with every sentence, (images, texts) float32.

        A model in float64 gives float64; one that computes in half precision still gives float32.
        With a gradient, the backward pass costs only the pairs that the loss looks at (see
        `crossgaze.scoring.pairs`); for more than fits into memory see `crossgaze.scoring`.
        """
        from crossgaze.scoring.pairs import score_every_pair

        if self.embeds:
            scores = vectors_of(self, images) @ vectors_of(self, texts).T
            return scores.float() if scores.dtype in HALF else scores
        return score_every_pair(self, images, texts, self._meeting())

    def kernel(self) -> Kernel:
        """Return the fast form of `similarity`, without gradient, that `crossgaze.scoring` runs."""
        return InnerProducts()

    def pair_similarity(self, images: Encoded, texts: Encoded) -> Tensor:
        """Return the similarity of P pairs, image i with sentence i, (P,), with gradient."""
        require_pairs(images, texts)
        return (vectors_of(self, images) * vectors_of(self, texts)).sum(-1)

    def _meeting(self) -> tuple[Tensor, ...]:
        """Return the weights that are used when sides meet, none where they only multiply."""
        return ()

    @abstractmethod
    def attention(self, images: Encoded, texts: Encoded) -> Attention:
        """Return the attention of pairs: image i with sentence i, with gradient where it has one.

        A map is named for its direction where it has one: "t-i", words look at regions, or "i-t",
        regions look at words.
        """

    def aggregate(self, relevances: Tensor, mask: Tensor) -> Tensor:
        """Turn the relevances of a pair's fragments into its score, (P,): here, their mean.

        Eq. 3 of CCR/CCS: AGG of one direction. `crossgaze.training.constraints` asks for it.

        Args:
            relevances: (P, q) of the fragments that look.
            mask: (P, q), which of them count, at least one a pair.
        """
        return relevances.masked_fill(~mask, 0.0).sum(1) / mask.sum(1)

    # Training ---------------------------------------------------------------------------------

    def make_companion(self, config: Any) -> Companion:  # noqa: ANN401 (a `companion_type`)
        """Return what learns along with this model, of its `companion_type`."""
        raise InputError(f"{self.family}: nothing is trained along with it")

    # Keeping ----------------------------------------------------------------------------------

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model to a folder that `crossgaze.load` reads, without any pickle."""
        from crossgaze.models.pretrained import save_pretrained

        save_pretrained(self, folder)


def require_pairs(images: Encoded, texts: Encoded) -> None:
    """Refuse unless there are as many images as sentences, which attention takes in pairs."""
    if len(images) != len(texts):
        raise InputError(f"got {len(images)} images and {len(texts)} texts, wanted pairs")


def vectors_of(model: Matcher, side: Encoded) -> Tensor:
    """Return one side's vectors, or say that another model encoded it."""
    if side.vectors is None:
        raise InputError(f"{model.family}: got a side without vectors, wanted this model's own")
    return side.vectors
