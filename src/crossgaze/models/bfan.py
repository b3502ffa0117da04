"""BFAN: cross attention in both directions that keeps only the fragments that matter.

Liu, Mao, Liu, Zhang, Wang, Zhang: Focus Your Attention: A Bidirectional Focal Attention Network
for Image-Text Matching, ACM Multimedia 2019. The attention is SCAN's (`clipped_l2norm`,
`crossgaze.models.cross_attention`) and so are the encoders (`crossgaze.models.regions`); the
behaviour is that of the public code:

1. weights a over the context, for each query fragment;
2. context fragment i is kept where F_i > 0, with
   "equal": F_i = sum_j (a_i - a_j) = c a_i - sum_j a_j,
   "prob":  F_i = sum_j (a_i - a_j) sqrt(a_j) = a_i sum_j sqrt(a_j) - sum_j a_j sqrt(a_j);
3. weights of those kept are divided by their sum;
4. cosine of each query fragment with its weighted sum, mean over the query fragments;
5. the score is the mean of t-i plus the mean of i-t.

| public code | code | shape |
| --- | --- | --- |
| a, attention of the first stage | `weights` | (P, q, c) |
| F | `gain` | (P, q, c) |
| re-assigned attention | `focus(...)` | (P, q, c) |
| `lambda_softmax`, `focal_type` | `BfanConfig.lambda1`, `.focal` | |

Uniform attention has no F_i > 0: the public code then keeps nothing and divides 0 by 0. Here **all
fragments are kept, with their attention**, wherever no weight exceeds the threshold by more than
1e-5 of it. That happens to a single fragment, to a zero vector, and to one query fragment alone,
whose normalised scores differ by rounding only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.models.checks import require_choice, require_positive
from crossgaze.models.cross_attention import (
    UNIFORM,
    Focal,
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
class BfanConfig(EncoderConfig):
    """What a BFAN is, beside what `EncoderConfig` says.

    Args:
        focal: how a fragment is weighed against the others, "equal" or "prob".
        lambda1: inverse temperature of the attention, in both directions.
    """

    focal: Focal = "equal"
    lambda1: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("focal", self.focal, get_args(Focal))
        require_positive("lambda1", self.lambda1)


def focus(weights: Tensor, context_mask: Tensor, focal: Focal) -> Tensor:
    """Keep the context fragments with F_i > 0 and let their weights sum to 1, (P, q, c).

    Where attention is uniform, all keep their weight (see above).

    Args:
        weights: (P, q, c), 0 at padding, a row of a real query fragment sums to 1.
        context_mask: (P, c), which context fragments are real.
        focal: "equal" or "prob".
    """
    a = weights.detach()  # what is kept is a decision, no gradient flows through it
    trust = context_mask[:, None].to(a.dtype) if focal == "equal" else a.sqrt()  # (P, 1 or q, c)
    base = (a * trust).sum(2, keepdim=True)  # (P, q, 1), sum_j a_j w_j
    gain = a * trust.sum(2, keepdim=True) - base  # (P, q, c), F
    uniform = gain.amax(2, keepdim=True) <= UNIFORM * base  # (P, q, 1)
    kept = weights.masked_fill(~((gain > 0) | uniform), 0.0)  # (P, q, c)
    total = kept.sum(2, keepdim=True)  # (P, q, 1), 0 only at padding
    return kept / torch.where(total > 0, total, 1.0)


class Bfan(FragmentMatcher):
    """Bidirectional focal attention.

    Args:
        config: what it is.
        vocabulary: the words; not needed where the text encoder brings its own.
    """

    family = "bfan"
    config: BfanConfig

    def __init__(self, config: BfanConfig, vocabulary: Vocabulary | int | None = None) -> None:
        super().__init__(config, vocabulary)

    def kernel(self) -> FragmentKernel:
        """Return the fast form of the t-i mean plus the i-t mean."""
        how = Attend(sharpness=self.config.lambda1, focal=self.config.focal)
        return FragmentKernel({"t-i": how, "i-t": how})

    def attention(self, images: Encoded, texts: Encoded) -> Attention:
        """Return the focal attention of the pairs, (P, 2, words, regions): "t-i" and "i-t".

        In the first a word's row sums to 1, in the second a region's column. `dense` is the same
        before fragments were dropped.
        """
        require_pairs(images, texts)
        (regions, k_mask), (words, n_mask) = map(clean_fragments, (images, texts))
        ahead = self._weights(regions, words, k_mask, n_mask)  # 2 x (P, n, k)
        back = self._weights(words, regions, n_mask, k_mask)  # 2 x (P, k, n)
        dense, focal = (
            torch.stack([one, other.transpose(1, 2)], dim=1)  # (P, 2, n, k)
            for one, other in zip(ahead, back, strict=True)
        )
        return Attention(names=("t-i", "i-t"), weights=focal, dense=dense)

    def _weights(
        self, context: Tensor, query: Tensor, c_mask: Tensor, q_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the attention of the query over the context, (P, q, c), and the focal one."""
        weights = attend(context, query, c_mask, q_mask, sharpness=self.config.lambda1)
        return weights, focus(weights, c_mask, self.config.focal)

    def _one_way(self, context: Tensor, query: Tensor, c_mask: Tensor, q_mask: Tensor) -> Tensor:
        """Return the mean relevance of the query fragments, (P,)."""
        _, weights = self._weights(context, query, c_mask, q_mask)
        return self.aggregate(relevance(context, query, weights), q_mask)  # (P, q) -> (P,)

    def _pairs(self, regions: Tensor, words: Tensor, k_mask: Tensor, n_mask: Tensor) -> Tensor:
        """Return the score of P pairs, (P,)."""
        ahead = self._one_way(regions, words, k_mask, n_mask)
        return ahead + self._one_way(words, regions, n_mask, k_mask)
