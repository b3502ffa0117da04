"""Regions to fragments, and the two encoders that SCAN, Sum-Max, BFAN and VSE++ share.

Lee, Chen, Hua, Hu, He: Stacked Cross Attention for Image-Text Matching, ECCV 2018, section 3.3
(eq. 13) and section 3.4 (eqs. 14-16, whose recurrence is `crossgaze.models.text`).

| paper | code | shape |
| --- | --- | --- |
| f_i, feature of region i | `regions[:, i]` | (N, k, d) |
| W_v, b_v | `RegionProjection.weight`, `.bias` | (D, d), (D,) |
| v_i, region i embedded | `Encoded.fragments` of an image | (N, k, D) |
| e_j, word j in its sentence | `Encoded.fragments` of a sentence | (N, n, D) |
| h = D | `EncoderConfig.size` | |
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.checks import require_choice, require_whole
from crossgaze.models.cross_attention import clean_fragments
from crossgaze.models.encoded import Encoded, real
from crossgaze.models.matcher import Matcher, require_pairs
from crossgaze.models.norms import EPS, l2norm, length
from crossgaze.models.text import TextConfig, build_text
from crossgaze.scoring.kernel import Kernel
from crossgaze.scoring.plain import PlainKernel

Projection = Literal["basic", "weight_norm"]


@dataclass(frozen=True)
class EncoderConfig:
    """How both sides are encoded.

    Args:
        region_width: width d of a region feature.
        size: width D of the space that regions and words share.
        text: how words are read.
        projection: "basic", or "weight_norm" for a matrix kept as direction and length.
        normalize_images: whether region embeddings get length 1 (off: `no_imgnorm`).
        normalize_texts: whether word features get length 1 (off: `no_txtnorm`).
    """

    region_width: int = 2048
    size: int = 1024
    text: TextConfig = field(default_factory=TextConfig)
    projection: Projection = "basic"
    normalize_images: bool = True
    normalize_texts: bool = True

    def __post_init__(self) -> None:
        require_whole("region_width", self.region_width)
        require_whole("size", self.size)
        require_choice("projection", self.projection, get_args(Projection))
        for name in ("normalize_images", "normalize_texts"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name}: got {getattr(self, name)!r}, wanted True or False")


class RegionProjection(nn.Module):
    """One linear layer from region features to the shared space.

    Its parameters are called what the public code calls them: `weight` and `bias`, or
    `weight_g` (), `weight_v` and `bias` with weight normalisation over the whole matrix.

    Args:
        width: width d of a region feature.
        size: width D of an embedding.
        kind: "basic" or "weight_norm".
    """

    def __init__(self, width: int, size: int, kind: Projection = "basic") -> None:
        super().__init__()
        self.kind = kind
        reach = math.sqrt(6.0) / math.sqrt(width + size)  # Xavier's, as the public code begins
        weight = torch.empty(size, width).uniform_(-reach, reach)  # (D, d)
        if kind == "weight_norm":
            self.weight_g = nn.Parameter(weight.norm())  # ()
            self.weight_v = nn.Parameter(weight)
        else:
            self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(size))

    def matrix(self) -> Tensor:
        """Return W_v, (D, d); weight-normalised it is g V / |V|, the length over all entries."""
        if self.kind == "basic":
            return self.weight
        norm = length(self.weight_v.flatten(), 0)  # (1,)
        return self.weight_v * (self.weight_g / norm.clamp(min=EPS))

    def forward(self, regions: Tensor) -> Tensor:
        """Map (..., d) region features to (..., D).

        Eq. 13 of SCAN: v_i = W_v f_i + b_v.
        """
        return F.linear(regions, self.matrix(), self.bias)


class FragmentMatcher(Matcher):
    """A model that compares regions with words: both sides as fragments of one space.

    Args:
        config: the model's configuration.
        vocabulary: the words; not needed where the text encoder brings its own.
    """

    embeds = False
    config: EncoderConfig

    def __init__(self, config: EncoderConfig, vocabulary: Vocabulary | int | None = None) -> None:
        super().__init__()
        self.config = config
        self.regions = RegionProjection(config.region_width, config.size, config.projection)
        self.text = build_text(config.text, config.size, vocabulary)

    def _encode_regions(self, regions: Tensor, counts: Tensor) -> Encoded:
        """Embed (N, k, d) regions; the fragments are (N, k, D), zero past `counts`."""
        past = ~real(counts, regions.shape[1])[..., None]  # (N, k, 1)
        # Zeroed before too, or what lies in the padding would reach the projection's gradient.
        v: Tensor = self.regions(regions.masked_fill(past, 0.0))
        v = l2norm(v) if self.config.normalize_images else v
        return Encoded(vectors=None, fragments=v.masked_fill(past, 0.0), counts=counts)

    def _encode_words(self, ids: Tensor, lengths: Tensor) -> Encoded:
        """Read (N, n) word numbers; the fragments are (N, n, D), zero past `lengths`.

        Eqs. 14-16 of SCAN: e_j is the mean of the two directions' states (see `RecurrentText`).
        """
        e: Tensor = self.text(ids, lengths)
        e = l2norm(e) if self.config.normalize_texts else e
        return Encoded(vectors=None, fragments=e, counts=lengths)

    def kernel(self) -> Kernel:
        """Return what `_pairs` says, pair by pair; a family that is used much has a faster form."""
        return PlainKernel(self._pairs)

    def pair_similarity(self, images: Encoded, texts: Encoded) -> Tensor:
        """Return the similarity of P pairs, image i with sentence i, (P,), with gradient."""
        require_pairs(images, texts)
        (regions, k_mask), (words, n_mask) = map(clean_fragments, (images, texts))
        return self._pairs(regions, words, k_mask, n_mask)

    def _meeting(self) -> tuple[Tensor, ...]:
        """Return the weights that neither encoder has, which can only be used when sides meet."""
        encoders = {id(p) for part in (self.regions, self.text) for p in part.parameters()}
        return tuple(p for p in self.parameters() if id(p) not in encoders)

    @abstractmethod
    def _pairs(self, regions: Tensor, words: Tensor, k_mask: Tensor, n_mask: Tensor) -> Tensor:
        """Return the score of P pairs, (P,).

        Args:
            regions: (P, k, D), zero where there is none.
            words: (P, n, D), likewise.
            k_mask: (P, k), which regions are real.
            n_mask: (P, n), which words are real.
        """
