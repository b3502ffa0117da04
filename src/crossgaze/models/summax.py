"""Sum-Max: the best region of each word, or the best word of each region, without attention.

Karpathy, Fei-Fei: Deep Visual-Semantic Alignments for Generating Image Descriptions, CVPR 2015,
as Lee et al. (SCAN, ECCV 2018) revisit it in eqs. 9 and 10, with SCAN's encoders and loss.

| paper | code | shape |
| --- | --- | --- |
| v_i, region i | `regions[:, i]` | (P, k, D) |
| e_j, word j | `words[:, j]` | (P, n, D) |
| s_ij = v_i' e_j | `scores[:, i, j]` | (P, k, n) |
| S'_SM, S_SM | `sum_max(..., "t-i")`, `sum_max(..., "i-t")` | (P,) |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.models.checks import require_choice
from crossgaze.models.cross_attention import Direction, clean_fragments
from crossgaze.models.encoded import Attention, Encoded
from crossgaze.models.matcher import require_pairs
from crossgaze.models.regions import EncoderConfig, FragmentMatcher
from crossgaze.scoring.fragments import BestFragments, FragmentKernel


@dataclass(frozen=True)
class SumMaxConfig(EncoderConfig):
    """What a Sum-Max is, beside what `EncoderConfig` says.

    Args:
        direction: "t-i", each word takes its best region, or "i-t", each region its best word.
    """

    direction: Direction = "t-i"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("direction", self.direction, get_args(Direction))


def pair_scores(regions: Tensor, words: Tensor, k_mask: Tensor, n_mask: Tensor) -> Tensor:
    """Return s_ij = v_i' e_j, (P, k, n), -inf where region i or word j is padding."""
    scores = regions @ words.transpose(1, 2)  # (P, k, n)
    return scores.masked_fill(~(k_mask[..., None] & n_mask[:, None]), -torch.inf)


def sum_max(
    regions: Tensor, words: Tensor, k_mask: Tensor, n_mask: Tensor, direction: Direction
) -> Tensor:
    """Return the score of P pairs, (P,).

    Args:
        regions: (P, k, D).
        words: (P, n, D).
        k_mask: (P, k), which regions are real.
        n_mask: (P, n), which words are real.
        direction: which side sums.
    """
    scores = pair_scores(regions, words, k_mask, n_mask)  # (P, k, n)
    if direction == "t-i":
        # Eq. 9 of SCAN: sum over words of the best region's score.
        return scores.max(1).values.masked_fill(~n_mask, 0.0).sum(1)
    # Eq. 10 of SCAN: sum over regions of the best word's score.
    return scores.max(2).values.masked_fill(~k_mask, 0.0).sum(1)


class SumMax(FragmentMatcher):
    """Sum-Max in one direction.

    Args:
        config: what it is.
        vocabulary: the words; not needed where the text encoder brings its own.
    """

    family = "sum-max"
    config: SumMaxConfig

    def __init__(self, config: SumMaxConfig, vocabulary: Vocabulary | int | None = None) -> None:
        super().__init__(config, vocabulary)

    def kernel(self) -> FragmentKernel:
        """Return the fast form of S_SM(I, T)."""
        return FragmentKernel({self.config.direction: BestFragments()})

    def _pairs(self, regions: Tensor, words: Tensor, k_mask: Tensor, n_mask: Tensor) -> Tensor:
        """Return S_SM(I, T) of P pairs, (P,)."""
        return sum_max(regions, words, k_mask, n_mask, self.config.direction)

    def attention(self, images: Encoded, texts: Encoded) -> Attention:
        """Return which pairs of word and region count, (P, 1, words, regions).

        1 at the region that a word takes (t-i) or the word that a region takes (i-t), else 0:
        summed with s_ij they give the score.
        """
        require_pairs(images, texts)
        (regions, k_mask), (words, n_mask) = map(clean_fragments, (images, texts))
        scores = pair_scores(regions, words, k_mask, n_mask).transpose(1, 2)  # (P, n, k)
        both = n_mask[..., None] & k_mask[:, None]  # (P, n, k)
        if self.config.direction == "t-i":
            taken = F.one_hot(scores.argmax(2), scores.shape[2])  # (P, n, k)
        else:
            taken = F.one_hot(scores.argmax(1), scores.shape[1]).transpose(1, 2)  # (P, n, k)
        weights = (taken.bool() & both).to(scores.dtype)
        return Attention(names=(self.config.direction,), weights=weights[:, None])
