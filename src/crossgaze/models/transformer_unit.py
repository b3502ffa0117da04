"""The Transformer unit of MMCA: multi-head attention, then a layer over each fragment.

Wei, Zhang, Li, Zhang, Wu: Multi-Modality Cross Attention Network for Image and Sentence Matching,
CVPR 2020, section 3.3 (eqs. 1-4, figure 3), after Vaswani et al., Attention Is All You Need, 2017.

| paper | here | shape |
| --- | --- | --- |
| F, fragments | `x` | (B, m, D) |
| Q_F, K_F, V_F | `Heads.query`, `.key`, `.value` | (B, h, m, D / h) |
| W_i^Q, W_i^K, W_i^V of all heads | `query`, `key`, `value` | (D, D) |
| W^O | `out` | (D, D) |
| W_1, b_1, W_2, b_2 | `feed` | (D, D), (D,) |
| d_f = d_x, d_k = d_v | D, D / h | |
| softmax(Q K' / sqrt(d_k)) | `weights` | (B, h, m, m) |

As printed, the projections have no bias and the layers of eq. 4 have one and keep the width. The
paper prints W^O as (h d_v, d_k); the residual needs (h d_v, d_f), which this is. Around each
sub-layer: a residual, then layer normalisation (figure 3).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from crossgaze.errors import InputError
from crossgaze.models.norms import masked_softmax


class Heads(NamedTuple):
    """Queries, keys and values of fragments, split into heads: each (B, h, m, D / h)."""

    query: Tensor
    key: Tensor
    value: Tensor


class TransformerUnit(nn.Module):
    """One Transformer unit; permuting the fragments permutes its output.

    Args:
        size: D, width of a fragment.
        heads: h; it must divide `size`.
        dropout: ratio on the output of each sub-layer, in training (as Vaswani et al.).
    """

    def __init__(self, size: int, heads: int = 16, dropout: float = 0.0) -> None:
        super().__init__()
        if heads < 1 or size % heads:
            raise InputError(f"heads: is {heads}, wanted a divisor of the size, {size}")
        self.size, self.heads = size, heads
        self.query = nn.Linear(size, size, bias=False)
        self.key = nn.Linear(size, size, bias=False)
        self.value = nn.Linear(size, size, bias=False)
        self.out = nn.Linear(size, size, bias=False)
        self.feed = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size))
        self.attention_norm = nn.LayerNorm(size)
        self.feed_norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Map fragments to fragments that know of each other.

        Args:
            x: (B, m, D), finite also where not real.
            mask: (B, m) bool, which are real; the others are attended to by none.

        Returns:
            (B, m, D) fragments, rows off the mask mean nothing, and (B, h, m, m) weights, row
            attending to column.
        """
        return self.mix(x, self.project(x), mask)

    def project(self, x: Tensor) -> Heads:
        """Return the queries, keys and values of (B, m, D) fragments, the arguments of eq. 2."""
        # (B, m, D) -> (B, m, h, D / h) -> (B, h, m, D / h)
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        return Heads(q, k, v)

    def weigh(self, heads: Heads, mask: Tensor | None) -> Tensor:
        """Eq. 1, the softmax: how much each fragment looks at each, (B, h, m, m)."""
        scale = (self.size // self.heads) ** -0.5  # 1 / sqrt(d_k)
        scores = heads.query @ heads.key.transpose(-2, -1) * scale
        return scores.softmax(-1) if mask is None else masked_softmax(scores, mask[:, None, None])

    def mix(self, x: Tensor, heads: Heads, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Do what `forward` does, for fragments whose queries, keys and values are known.

        Without a mask all fragments are real.
        """
        weights = self.weigh(heads, mask)
        # Eq. 2: each head's weighted values, (B, h, m, m) @ (B, h, m, D / h).
        attended = weights @ heads.value
        # Eq. 3: heads side by side, (B, h, m, D / h) -> (B, m, h, D / h) -> (B, m, D).
        joined = self.out(attended.transpose(1, 2).flatten(-2))
        x = self.attention_norm(x + self.dropout(joined))
        # Eq. 4: two layers over each fragment.
        return self.feed_norm(x + self.dropout(self.feed(x))), weights


def stack_heads(first: Heads, second: Heads) -> Heads:
    """Stack the fragments of two sides, (B, h, k, .) over (B, h, n, .) to (B, h, k + n, .)."""
    q, k, v = (torch.cat(pair, dim=2) for pair in zip(first, second, strict=True))
    return Heads(q, k, v)
