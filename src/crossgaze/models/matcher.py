"""The one interface of every model that matches images and sentences."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy.typing as npt
from torch import Tensor

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.base import Model
from crossgaze.models.companion import Companion
from crossgaze.models.encoded import Attention, Encoded
from crossgaze.scoring.kernel import HALF, InnerProducts, Kernel


class Matcher(Model):
    """A model that scores how well images and sentences belong together.

    Every image is k region features, every sentence words. Sides are encoded by themselves and
    compared by `similarity`; gradients flow through all of it when torch records them.

    Attributes:
        embeds: whether each side becomes one vector whose inner products are the similarities
            (VSE++, VSRN, m-DAN), or pairs must be seen together (SCAN, BFAN, MMCA).
        companion_type: the configuration's class of what is trained along (`Companion`), if any.
    """

    embeds: ClassVar[bool]
    companion_type: ClassVar[type[Any] | None] = None

    # Encoding ---------------------------------------------------------------------------------

    def encode_images(
        self, regions: Tensor | npt.NDArray[Any], counts: Tensor | npt.NDArray[Any] | None = None
    ) -> Encoded:
        """Encode images.

        Args:
            regions: (N, k, d) region features, or (N, d) for one region an image.
            counts: (N,) how many regions are real; all of them if not given.
        """
        return self._encode_regions(*self._regions(regions, counts))

    def encode_texts(self, texts: Sequence[str]) -> Encoded:
        """Encode sentences, with the words of the model's vocabulary."""
        return self.encode_tokens(*self._read_texts("texts", texts))

    def encode_tokens(
        self, ids: Tensor | npt.NDArray[Any], lengths: Tensor | npt.NDArray[Any] | Sequence[int]
    ) -> Encoded:
        """Encode sentences given as numbers of words.

        Args:
            ids: (N, n) numbers in the model's vocabulary, padded on the right with anything.
            lengths: (N,) how many are real, at least 1, in any order.
        """
        return self._encode_words(*self._tokens(ids, lengths))

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

    def make_companion(
        self,
        config: Any,  # noqa: ANN401 (a `companion_type`)
        vocabulary: Vocabulary,
    ) -> Companion:
        """Return what learns along with this model, of its `companion_type`.

        Args:
            config: what it is.
            vocabulary: in whose numbers it reads the sentences.
        """
        raise InputError(f"{self.family}: nothing is trained along with it")


def require_pairs(images: Encoded, texts: Encoded) -> None:
    """Refuse unless there are as many images as sentences, which attention takes in pairs."""
    if len(images) != len(texts):
        raise InputError(f"got {len(images)} images and {len(texts)} texts, wanted pairs")


def vectors_of(model: Matcher, side: Encoded) -> Tensor:
    """Return one side's vectors, or say that another model encoded it."""
    if side.vectors is None:
        raise InputError(f"{model.family}: got a side without vectors, wanted this model's own")
    return side.vectors
