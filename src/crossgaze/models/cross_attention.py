"""Cross attention of one pair: every fragment of one side looks at the fragments of the other.

Lee, Chen, Hua, Hu, He: Stacked Cross Attention for Image-Text Matching, ECCV 2018, section 3.1,
eqs. 1-4; BFAN attends the same way. The fragments that look are the *query*, those looked at the
*context*: words look at regions in t-i, regions at words in i-t. Everything works on P pairs at
once, padded on both sides, with masks.

| paper (i-t) | code | shape |
| --- | --- | --- |
| v_i, i = 1 .. k, the side that looks | `query` | (P, q, D) |
| e_j, j = 1 .. n, the side looked at | `context` | (P, c, D) |
| s_ij | `scores` | (P, c, q) |
| s-bar_ij | `normalize_scores(...)` | (P, c, q) |
| alpha_ij | `weights` | (P, q, c) |
| a_i^t | `attended` | (P, q, D) |
| R(v_i, a_i^t) | `relevance(...)` | (P, q) |
| lambda_1 | `sharpness` | |

In t-i (alpha'_ij, a_j^v, R') the two sides change places and nothing else.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor
from torch.nn import functional as F

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.models.norms import EPS, cosine, l1norm, l2norm, length, masked_softmax, root

Direction = Literal["t-i", "i-t"]
FeatureNorm = Literal[
    "softmax",
    "l2norm",
    "clipped_l2norm",
    "l1norm",
    "clipped_l1norm",
    "clipped",
    "no_norm",
    "paper",
]
Pooling = Literal["LSE", "AVG", "SUM", "MAX"]
Focal = Literal["equal", "prob"]
LEAK = 0.1  # slope below zero where the public code clips
UNIFORM = 1e-5  # attention is uniform if no weight exceeds BFAN's threshold by more than this part


def fragment_scores(context: Tensor, query: Tensor, norm: FeatureNorm) -> Tensor:
    """Compare every context fragment with every query fragment, (P, c, q).

    Eq. 1 of SCAN with norm "paper": the cosine. The public code takes the inner product, which is
    the cosine only where both sides have length 1.
    """
    scores = context @ query.transpose(1, 2)  # (P, c, q)
    if norm != "paper":
        return scores
    lengths = length(context, -1) * length(query, -1).transpose(1, 2)  # (P, c, q)
    return scores / lengths.clamp(min=EPS)


def normalize_scores(scores: Tensor, query_mask: Tensor, norm: FeatureNorm) -> Tensor:
    """Normalise, for each context fragment, its scores along the query: s-bar, (P, c, q).

    SCAN, below eq. 1: [s]_+ / sqrt(sum [s]_+^2), the sum over the side that looks ("paper"). The
    other names are the public code's `raw_feature_norm`; "clipped" is a leaky ReLU of slope 0.1.

    Args:
        scores: (P, c, q) of `fragment_scores`.
        query_mask: (P, q), which query fragments are real.
        norm: which one.
    """
    mask = query_mask[:, None]  # (P, 1, q)
    scores = scores.masked_fill(~mask, 0.0)  # no part in any sum
    if norm == "softmax":
        return masked_softmax(scores, mask, dim=2)
    if norm == "paper":
        scores = scores.relu()
        # 0 where nothing is positive; the paper's quotient is 0 / 0 there.
        return scores / length(scores, 2).clamp(min=EPS)
    if norm.startswith("clipped"):
        scores = F.leaky_relu(scores, LEAK)
    if norm.endswith("l2norm"):
        return l2norm(scores, dim=2)
    if norm.endswith("l1norm"):
        return l1norm(scores, dim=2)
    return scores  # "clipped", "no_norm"


def attend(
    context: Tensor,
    query: Tensor,
    context_mask: Tensor,
    query_mask: Tensor,
    *,
    norm: FeatureNorm = "clipped_l2norm",
    sharpness: float = 9.0,
) -> Tensor:
    """Return how much each query fragment looks at each context fragment, (P, q, c).

    Eq. 3 of SCAN: a softmax of lambda_1 s-bar over the context. A row sums to 1; padded rows and
    columns are 0.

    Args:
        context: (P, c, D) fragments looked at; finite past the mask.
        query: (P, q, D) fragments that look; finite past the mask.
        context_mask: (P, c), which are real, at least one a pair.
        query_mask: (P, q), likewise.
        norm: how scores are normalised, see `normalize_scores`.
        sharpness: lambda_1, the inverse temperature.
    """
    scores = normalize_scores(fragment_scores(context, query, norm), query_mask, norm)
    weights = masked_softmax(
        sharpness * scores.transpose(1, 2), context_mask[:, None], dim=2
    )  # (P, q, c)
    return weights.masked_fill(~query_mask[..., None], 0.0)


def relevance(context: Tensor, query: Tensor, weights: Tensor) -> Tensor:
    """Compare each query fragment with what it looked at, (P, q); 0 where all weights are 0.

    Args:
        context: (P, c, D).
        query: (P, q, D).
        weights: (P, q, c) of `attend`.
    """
    # Eq. 4 of SCAN: relevance is the cosine of fragment and attended vector.
    if query.shape[1] <= context.shape[1]:
        # Eq. 2 of SCAN: the attended vector is the weighted sum of the context.
        return cosine(query, weights @ context)  # (P, q, D) -> (P, q)
    # With more that look than there is to look at, the attended vectors a would be larger than
    # what they follow from: e . a = sum_i alpha_i s_i and |a|^2 = alpha' G alpha, G the Gram
    # matrix of the context.
    scores = query @ context.transpose(1, 2)  # (P, q, c)
    gram = context @ context.transpose(1, 2)  # (P, c, c)
    attended = root(((weights @ gram) * weights).sum(2))  # |a|, (P, q)
    lengths = length(query, -1).squeeze(-1) * attended
    return (weights * scores).sum(2) / lengths.clamp(min=EPS)


def clean_fragments(side: Encoded) -> tuple[Tensor, Tensor]:
    """Return the fragments (N, n, D), zero past the real ones, and their mask (N, n)."""
    mask = side.mask
    if side.fragments is None:
        raise InputError("got a side without fragments, wanted this model's own")
    if bool(mask.all()):
        return side.fragments, mask  # nothing to clean, and no copy
    return side.fragments.masked_fill(~mask[..., None], 0.0), mask
