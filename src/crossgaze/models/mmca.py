"""MMCA: self-attention within each side, cross-attention over regions and words stacked.

Wei, Zhang, Li, Zhang, Wu: Multi-Modality Cross Attention Network for Image and Sentence Matching,
CVPR 2020, section 3. The Transformer unit (eqs. 1-4) stands in `transformer_unit`, BERT in `bert`;
the loss (eq. 15) is with the other losses.

| paper | here | shape |
| --- | --- | --- |
| O, {o_1 ... o_k} | `regions` | (N, k, d) |
| R, {r_1 ... r_k} | `Encoded.fragments` of images | (N, k, D) |
| E, {e_1 ... e_n} | `Encoded.fragments` of texts | (M, n, D) |
| R_s | `attended` | (N, k, D) |
| i_0, c_0 | `Encoded.vectors` | (N, D), (M, D) |
| p_l, q_l; W_l, b_l | in `PhraseVector`; `windows[l - 1]` | (M, filters, n), (M, filters) |
| W_e, b_e | `PhraseVector.embed` | (D, 3 filters) |
| Y = (R; E) | `stack` | (B, k + n, D) |
| K_Y, Q_Y, V_Y | `Heads` of the stack | (B, h, k + n, D / h) |
| Y_c = (R_c; E_c) | `mixed` | (B, k + n, D) |
| i_1, c_1 | in `Mmca._cross` | (B, D) |
| S(I, T) | what `Mmca.similarity` returns | (N, M) |

D is `size`, the paper's d and d_x. What the paper leaves open is chosen so: BERT's 768 (or other)
numbers a token come to D by a linear layer, since R and E are stacked; i_1 and c_1 have unit
length as i_0 and c_0 ("the embeddings are scaled to have a unit norm"), and the convolution of
the cross-attention module has its own weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.checks import require_share, require_whole
from crossgaze.models.cross_attention import clean_fragments
from crossgaze.models.dan_attention import real_mean
from crossgaze.models.encoded import Attention, Encoded, real
from crossgaze.models.matcher import Matcher, require_pairs, vectors_of
from crossgaze.models.norms import l2norm
from crossgaze.models.text import TextConfig, build_text
from crossgaze.models.transformer_unit import Heads, TransformerUnit, stack_heads
from crossgaze.scoring.kernel import HALF, InnerProducts, Kernel
from crossgaze.scoring.stacks import StackKernel

WINDOWS = (1, 2, 3)  # uni-gram, bi-gram, tri-gram
BERT = TextConfig(kind="bert")  # frozen, as in section 4.2


@dataclass(frozen=True)
class MmcaConfig:
    """MMCA's configuration; the defaults are the paper's (section 4.2, best of tables 4 and 6).

    Args:
        region_width: d of a region feature.
        size: D, of fragments and vectors.
        text: how words are read.
        heads: of both Transformer units.
        filters: of each window of the 1d-CNN.
        alpha: how much the cross-attention module counts.
        modules: "both", or "self" for the self-attention module alone.
        dropout: ratio in the Transformer units, in training (the paper names none).
    """

    region_width: int = 2048
    size: int = 256
    text: TextConfig = BERT
    heads: int = 16
    filters: int = 256
    alpha: float = 0.2
    modules: Literal["both", "self"] = "both"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for name in ("region_width", "size", "heads", "filters"):
            require_whole(name, getattr(self, name))
        if self.size % self.heads:
            raise InputError(f"heads: is {self.heads}, wanted a divisor of the size, {self.size}")
        if not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise InputError(f"alpha: is {self.alpha}, wanted a number, 0 or more")
        if self.modules not in ("both", "self"):
            raise InputError(f"modules: is {self.modules!r}, wanted 'both' or 'self'")
        require_share("dropout", self.dropout)


class PhraseVector(nn.Module):
    """The 1d-CNN: windows of 1, 2 and 3 words, the strongest of each filter, one unit vector.

    A window lies wholly within the sentence: window l has n - l + 1 places. (The paper's maximum
    runs over n places and says not what stands behind the last word.) A sentence shorter than the
    window is filled with zeros on the right and has one place.

    Args:
        size: D, of a word and of the vector.
        filters: of each window.
    """

    def __init__(self, size: int, filters: int) -> None:
        super().__init__()
        self.windows = nn.ModuleList(nn.Conv1d(size, filters, window) for window in WINDOWS)
        self.embed = nn.Linear(len(WINDOWS) * filters, size)
        self.norm = nn.LayerNorm(size)

    def forward(self, words: Tensor, counts: Tensor) -> Tensor:
        """Map (B, n, D) words, `counts` (B,) of them real, to (B, D) of unit length."""
        mask = real(counts, words.shape[1])
        x = words.masked_fill(~mask[..., None], 0.0).transpose(1, 2)  # (B, n, D) -> (B, D, n)
        best = []
        for window, layer in zip(WINDOWS, self.windows, strict=True):
            # Eq. 6: p_{l,k} of the window that begins at word k.
            phrases = layer(F.pad(x, (0, window - 1))).relu()  # (B, filters, n)
            places = (counts - window + 1).clamp(min=1)
            inside = real(places, words.shape[1])
            best.append(phrases.masked_fill(~inside[:, None], -torch.inf).amax(-1))
        # Eq. 7: concatenated, a layer, layer normalisation; then l2 as the text around it says.
        return l2norm(self.norm(self.embed(torch.cat(best, dim=-1))))  # (B, 3 filters) -> (B, D)


class Mmca(Matcher):
    """MMCA.

    Args:
        config: sizes, modules and text encoder.
        vocabulary: the words, for a recurrent text encoder.
    """

    family = "mmca"
    embeds = False

    def __init__(self, config: MmcaConfig, vocabulary: Vocabulary | int | None = None) -> None:
        super().__init__()
        self.config = config
        size, heads = config.size, config.heads
        self.text = build_text(config.text, size, vocabulary)
        self.project = nn.Linear(config.region_width, size)  # o_i to r_i
        self.region_unit = TransformerUnit(size, heads, config.dropout)
        self.sentence = PhraseVector(size, config.filters)
        self.cross: TransformerUnit | None = None
        self.cross_sentence: PhraseVector | None = None
        if config.modules == "both":
            self.cross = TransformerUnit(size, heads, config.dropout)
            self.cross_sentence = PhraseVector(size, config.filters)

    # Self-attention module --------------------------------------------------------------------

    def _encode_regions(self, regions: Tensor, counts: Tensor) -> Encoded:
        mask = real(counts, regions.shape[1])
        regions = regions.masked_fill(~mask[..., None], 0.0)  # 0 * NaN would spoil weighted sums
        fragments = self.project(regions)  # (N, k, d) -> (N, k, D)
        attended, _ = self.region_unit(fragments, mask)
        return Encoded(image_vector(attended, mask), fragments, counts)

    def _encode_words(self, ids: Tensor, lengths: Tensor) -> Encoded:
        fragments = self.text(ids, lengths)  # (M, n, D)
        return Encoded(self.sentence(fragments, lengths), fragments, lengths)

    # Cross-attention module -------------------------------------------------------------------

    def similarity(self, images: Encoded, texts: Encoded) -> Tensor:
        """Return S = i_0 . c_0 + alpha i_1 . c_1 of section 3.5, (images, texts).

        With dropout in training, a pair computed twice is two different numbers, so that all pairs
        are computed with gradient, a sentence at a time, and again in the backward pass.
        """
        if self.cross is None:
            scores = InnerProducts().score(vectors_of(self, images), vectors_of(self, texts))
            return scores.float() if scores.dtype in HALF else scores
        if not (self.training and self.config.dropout and torch.is_grad_enabled()):
            return super().similarity(images, texts)
        columns = []
        for number in range(len(texts)):
            text = texts[[number] * len(images)]
            columns.append(checkpoint(self.pair_similarity, images, text, use_reentrant=False))
        empty = vectors_of(self, images).new_zeros(len(images), 0)
        return torch.stack(columns, dim=1) if columns else empty

    def kernel(self) -> Kernel:
        """Return the fast form of S."""
        if self.cross is None:
            return InnerProducts()
        dtype = next(self.cross.parameters()).dtype
        return StackKernel(self.cross.project, self._cross, self.config.alpha, dtype)

    def pair_similarity(self, images: Encoded, texts: Encoded) -> Tensor:
        """Return S of P pairs, image i with sentence i, (P,)."""
        scores = super().pair_similarity(images, texts)
        if self.cross is None:
            return scores
        (regions, _), (words, _) = map(clean_fragments, (images, texts))
        # Eqs. 8-10: keys, queries and values of a stack are those of its two sides, stacked; so
        # the kernel makes them once a side and not once a pair.
        heads = self.cross.project(regions), self.cross.project(words)
        masks = images.mask, texts.mask
        alpha: float = self.config.alpha
        return scores + alpha * self._cross(regions, heads[0], words, heads[1], masks)

    def _meeting(self) -> tuple[Tensor, ...]:
        """Return the weights of the cross-attention module."""
        parts = (self.cross, self.cross_sentence)
        return tuple(p for part in parts if part is not None for p in part.parameters())

    def _cross(
        self,
        regions: Tensor,
        region_heads: Heads,
        words: Tensor,
        word_heads: Heads,
        masks: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Return i_1 . c_1 of P pairs of (P, k, D) regions and (P, n, D) words, (P,).

        Args:
            regions: of each pair.
            region_heads: their queries, keys and values.
            words: of each pair.
            word_heads: theirs.
            masks: (P, k) and (P, n), which are real; None for all.
        """
        assert self.cross is not None
        assert self.cross_sentence is not None
        size, width, count = len(regions), regions.shape[1], words.shape[1]
        seen, said = masks or (
            torch.ones(size, width, dtype=torch.bool, device=words.device),
            torch.ones(size, count, dtype=torch.bool, device=words.device),
        )
        stack = torch.cat([regions, words], dim=1)  # (P, k + n, D)
        whole = None if masks is None else torch.cat([seen, said], dim=1)  # (P, k + n)
        # Eqs. 11-14: each fragment attends to both sides, R_up and E_up; then eq. 4: Y_c.
        mixed, _ = self.cross.mix(stack, stack_heads(region_heads, word_heads), whole)
        image = image_vector(mixed[:, :width], seen)  # i_1, (P, D)
        sentence = self.cross_sentence(mixed[:, width:], said.sum(1))  # c_1, (P, D)
        scores: Tensor = (image * sentence).sum(-1)
        return scores

    def attention(self, images: Encoded, texts: Encoded) -> Attention:
        """Return for each head how much each word looks at each region, image i and sentence i.

        The block Q_E K_R' of eq. 12 after the softmax: a word's weights for regions and for words
        together make 1. With `modules="self"` the sides never meet and there is no map.
        """
        require_pairs(images, texts)
        if self.cross is None:
            return Attention(names=())
        regions, words = _parts(images), _parts(texts)
        heads = stack_heads(self.cross.project(regions), self.cross.project(words))
        weights = self.cross.weigh(heads, torch.cat([images.mask, texts.mask], dim=1))
        width = regions.shape[1]
        block = weights[:, :, width:, :width]  # (P, h, k + n, k + n) -> (P, h, n, k)
        return Attention(
            names=tuple(f"head {head}" for head in range(1, self.cross.heads + 1)),
            weights=block.masked_fill(~texts.mask[:, None, :, None], 0.0),
        )


def image_vector(regions: Tensor, mask: Tensor) -> Tensor:
    """Eq. 5: the mean of the real regions, (B, k, D) to (B, D), with unit length."""
    return l2norm(real_mean(regions, mask))


def _parts(side: Encoded) -> Tensor:
    """Return a side's fragments, which MMCA always keeps."""
    if side.fragments is None:
        raise InputError("got a side without fragments, wanted this model's own")
    return side.fragments
