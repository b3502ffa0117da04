"""VSE++: one vector an image, one vector a sentence, and their inner product.

Faghri, Fleet, Kiros, Fidler: VSE++: Improving Visual-Semantic Embeddings with Hard Negatives,
BMVC 2018: the baseline without fragments. An image is its global feature, or the mean of its
region features; a sentence is the GRU's state at its last real word.

| paper | code | shape |
| --- | --- | --- |
| phi(i), feature of an image | mean over `regions` (and the last one: `whole`) | (N, d) |
| W_f' phi(i) | `Vse.regions` | (N, D) |
| psi(c), state at the last word | `text.whole(...)` | (N, D) |
| f(i), g(c) of length 1 | `Encoded.vectors` | (N, D) |
| s(i, c) = f(i) . g(c) | `Vse.similarity` | (images, texts) |
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.encoded import Attention, Encoded, real
from crossgaze.models.matcher import Matcher, require_pairs
from crossgaze.models.norms import l2norm
from crossgaze.models.regions import EncoderConfig, RegionProjection
from crossgaze.models.text import TextConfig, build_text


@dataclass(frozen=True)
class VseConfig(EncoderConfig):
    """What a VSE++ is: `EncoderConfig`, with a sentence read in one direction.

    Args:
        absolute: whether vectors are taken without their signs (the public code's `use_abs`).
        whole: whether an image's last region, which is the whole image where `crossgaze extract`
            made them, stands beside the mean of all: phi(i) is both, (N, 2 d). Ours, not the
            paper's, whose phi(i) is either.
    """

    text: TextConfig = field(default_factory=lambda: TextConfig(bidirectional=False))
    absolute: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("absolute", "whole"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name}: got {getattr(self, name)!r}, wanted True or False")


class Vse(Matcher):
    """VSE++.

    Args:
        config: what it is.
        vocabulary: the words; not needed where the text encoder brings its own.

    Example:
        >>> import torch
        >>> model = Vse(VseConfig(region_width=8, size=4), Vocabulary.build(["a dog"], 1))
        >>> model.encode_images(torch.ones(2, 8)).vectors.shape  # one global feature an image
        torch.Size([2, 4])
    """

    family = "vse++"
    embeds = True
    config: VseConfig

    def __init__(self, config: VseConfig, vocabulary: Vocabulary | int | None = None) -> None:
        super().__init__()
        self.config = config
        width = config.region_width * (2 if config.whole else 1)
        self.regions = RegionProjection(width, config.size, config.projection)
        self.text = build_text(config.text, config.size, vocabulary)

    def _encode_regions(self, regions: Tensor, counts: Tensor) -> Encoded:
        """Project the mean of the real regions of (N, k, d); one region is a global feature."""
        mask = real(counts, regions.shape[1])[..., None]  # (N, k, 1)
        mean = regions.masked_fill(~mask, 0.0).sum(1) / counts[:, None]  # (N, d)
        if self.config.whole:
            rows = torch.arange(len(regions), device=regions.device)
            mean = torch.cat([mean, regions[rows, counts - 1]], 1)  # (N, 2 d)
        f: Tensor = self.regions(mean)  # (N, D)
        vectors = l2norm(f) if self.config.normalize_images else f
        vectors = vectors.abs() if self.config.absolute else vectors
        return Encoded(vectors=vectors, fragments=None, counts=counts)

    def _encode_words(self, ids: Tensor, lengths: Tensor) -> Encoded:
        """Read (N, n) word numbers and keep the state at the last real word, (N, D).

        With a BERT, which has no last state, the mean of its words.
        """
        g = self.text.whole(self.text(ids, lengths), lengths)  # (N, D)
        vectors = l2norm(g) if self.config.normalize_texts else g
        vectors = vectors.abs() if self.config.absolute else vectors
        return Encoded(vectors=vectors, fragments=None, counts=lengths)

    def attention(self, images: Encoded, texts: Encoded) -> Attention:
        """Return no map at all: no word is related to a region.

        Every region counts the same in the mean; with `whole`, the whole image stands beside it.
        """
        require_pairs(images, texts)
        return Attention(names=())
