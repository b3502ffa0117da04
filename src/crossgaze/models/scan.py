"""SCAN: stacked cross attention between regions and words.

Lee, Chen, Hua, Hu, He: Stacked Cross Attention for Image-Text Matching, ECCV 2018.

Here: pooling, eqs. 5-8, and the model. Eqs. 1-4 are in `crossgaze.models.cross_attention`, eq. 13
in `crossgaze.models.regions`, eqs. 14-16 in `crossgaze.models.text`.

| paper | code | shape |
| --- | --- | --- |
| V = {v_1 .. v_k} | `regions`, an image's fragments | (P, k, D) |
| E = {e_1 .. e_n} | `words`, a sentence's fragments | (P, n, D) |
| alpha_ij (i-t), alpha'_ij (t-i) | `weights` | (P, k, n), (P, n, k) |
| R(v_i, a_i^t) (i-t), R'(e_j, a_j^v) (t-i) | `relevances` | (P, k), (P, n) |
| S_LSE, S_AVG, S'_LSE, S'_AVG | `pool(...)` | (P,) |
| lambda_1, lambda_2 | `ScanConfig.lambda1`, `.lambda2` | |

The public code's options: `cross_attn` t2i, i2t is `direction`; `agg_func` LogSumExp, Mean, Sum,
Max is `pooling`; `lambda_softmax`, `lambda_lse` are `lambda1`, `lambda2`; `raw_feature_norm` is
`feature_norm`, with "paper" besides; `bi_gru` is `text.bidirectional`; `no_imgnorm`, `no_txtnorm`
are `normalize_images`, `normalize_texts` turned off; `precomp_enc_type` is `projection`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.models.checks import require_choice, require_positive
from crossgaze.models.cross_attention import (
    Direction,
    FeatureNorm,
    Pooling,
    attend,
    clean_fragments,
    relevance,
)
from crossgaze.models.encoded import Attention, Encoded
from crossgaze.models.matcher import require_pairs
from crossgaze.models.regions import EncoderConfig, FragmentMatcher
from crossgaze.scoring.attention import Attend
from crossgaze.scoring.fragments import FragmentKernel


@dataclass(frozen=True)
class ScanConfig(EncoderConfig):
    """What a SCAN is, beside what `EncoderConfig` says.

    Args:
        direction: "t-i", words look at regions, or "i-t", regions look at words.
        pooling: how relevances become a score.
        lambda1: inverse temperature of the attention.
        lambda2: how much LSE magnifies the most relevant fragments.
        feature_norm: how similarities are normalised before the softmax.
    """

    direction: Direction = "t-i"
    pooling: Pooling = "AVG"
    lambda1: float = 9.0
    lambda2: float = 6.0
    feature_norm: FeatureNorm = "clipped_l2norm"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("direction", self.direction, get_args(Direction))
        require_choice("pooling", self.pooling, get_args(Pooling))
        require_choice("feature_norm", self.feature_norm, get_args(FeatureNorm))
        require_positive("lambda1", self.lambda1)
        require_positive("lambda2", self.lambda2)


def pool(relevances: Tensor, mask: Tensor, pooling: Pooling, lambda2: float) -> Tensor:
    """Turn the relevances of a pair's query fragments into its score, (P,).

    Eqs. 5-6 of SCAN over regions (i-t): LSE and AVG.
    Eqs. 7-8 of SCAN over words (t-i): the same two. SUM and MAX are those of its Table 4.

    Args:
        relevances: (P, q).
        mask: (P, q), which fragments are real, at least one a pair.
        pooling: "LSE", "AVG", "SUM" or "MAX".
        lambda2: factor of LSE.
    """
    if pooling == "LSE":
        return (lambda2 * relevances).masked_fill(~mask, -torch.inf).logsumexp(1) / lambda2
    if pooling == "MAX":
        return relevances.masked_fill(~mask, -torch.inf).max(1).values
    total = relevances.masked_fill(~mask, 0.0).sum(1)
    return total / mask.sum(1) if pooling == "AVG" else total


class Scan(FragmentMatcher):
    """Stacked cross attention in one direction.

    Args:
        config: what it is.
        vocabulary: the words; not needed where the text encoder brings its own.

    Example:
        >>> words = Vocabulary.build(["a dog runs"], min_count=1)
        >>> model = Scan(ScanConfig(region_width=8, size=4), words)
        >>> images = model.encode_images(torch.ones(2, 36, 8))
        >>> model.similarity(images, model.encode_texts(["a dog", "runs", "a"])).shape
        torch.Size([2, 3])
    """

    family = "scan"
    config: ScanConfig

    def __init__(self, config: ScanConfig, vocabulary: Vocabulary | int | None = None) -> None:
        super().__init__(config, vocabulary)

    def kernel(self) -> FragmentKernel:
        """Return the fast form of S(I, T)."""
        c = self.config
        how = Attend(c.feature_norm, c.lambda1, c.pooling, c.lambda2)
        return FragmentKernel({c.direction: how})

    def attention(self, images: Encoded, texts: Encoded) -> Attention:
        """Return alpha (i-t) or alpha' (t-i) of the pairs, (P, 1, words, regions).

        In t-i a word's row sums to 1, in i-t a region's column.
        """
        require_pairs(images, texts)
        (regions, k_mask), (words, n_mask) = map(clean_fragments, (images, texts))
        weights = self._attend(*self._sides(regions, words, k_mask, n_mask))
        if self.config.direction == "i-t":
            weights = weights.transpose(1, 2)  # (P, k, n) -> (P, n, k)
        return Attention(names=(self.config.direction,), weights=weights[:, None])

    def _sides(
        self, regions: Tensor, words: Tensor, k_mask: Tensor, n_mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return context, query and their masks: t-i is words looking at regions."""
        if self.config.direction == "t-i":
            return regions, words, k_mask, n_mask
        return words, regions, n_mask, k_mask

    def _attend(self, context: Tensor, query: Tensor, c_mask: Tensor, q_mask: Tensor) -> Tensor:
        """Return the attention over the context, (P, q, c)."""
        norm, lambda1 = self.config.feature_norm, self.config.lambda1
        return attend(context, query, c_mask, q_mask, norm=norm, sharpness=lambda1)

    def _pairs(self, regions: Tensor, words: Tensor, k_mask: Tensor, n_mask: Tensor) -> Tensor:
        """Return S(I, T) of P pairs, (P,)."""
        context, query, c_mask, q_mask = self._sides(regions, words, k_mask, n_mask)
        weights = self._attend(context, query, c_mask, q_mask)
        return self.aggregate(relevance(context, query, weights), q_mask)  # (P, q) -> (P,)

    def aggregate(self, relevances: Tensor, mask: Tensor) -> Tensor:
        """Pool (P, q) relevances as configured, (P,)."""
        return pool(relevances, mask, self.config.pooling, self.config.lambda2)
