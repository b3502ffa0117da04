"""VSRN: Visual Semantic Reasoning for Image-Text Matching.

Kunpeng Li, Yulun Zhang, Kai Li, Yuanyuan Li, Yun Fu. ICCV 2019. arXiv:1909.02701.

Regions look at each other through graph layers (eqs. 1-3), a GRU reads them one by one into one
vector (eqs. 4-7), and that vector is compared with the sentence's by inner product. The caption
generator of eq. 9 is `crossgaze.models.vsrn_captioner`.

| paper | code | shape |
| --- | --- | --- |
| f_i | `regions` | (N, k, d), d = region_width |
| W_f, b_f | `fc` | (D, d), (D,), D = size |
| V, v_i | `v` | (N, k, D) |
| W_varphi, W_phi, W_g, W_r | `Rs_GCN_n.theta`, `.phi`, `.g`, `.W.0` | (D, D, 1) each |
| R | `affinity` | (N, k, k) |
| V*, v*_i | `Encoded.features` | (N, k, D) |
| W_z, U_z, b_z, W_m, ... | `img_rnn` | (3 D, D), (3 D, D), 2 x (3 D,) |
| m_k, I | `Encoded.vectors` | (N, D) |
| C | `Encoded.vectors` of the texts | (M, D) |
| k, r_i, lambda of section 4.5 | `counts`, `rank`, `EMPHASIS` | (N,), (P, k), 50 |

What the paper leaves out follows its public code, whose parameter names are kept, so that its image
state loads as it is: `fc`, `Rs_GCN_1` ..., `img_rnn`, `bn`. There, W_r is followed by a batch norm
that begins at zero (a fresh layer changes nothing), R is divided by the number of regions, V* and
on COCO also V are l2-normalised *over the regions*, and on Flickr30K m_k goes through a batch norm.

Padding takes no part in anything, batch statistics included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from crossgaze.collectives import ranks
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.batch_norm import shared_batch_norm
from crossgaze.models.checks import require_switch, require_whole
from crossgaze.models.encoded import Attention, Encoded, real
from crossgaze.models.matcher import Matcher, require_pairs
from crossgaze.models.norms import l2norm
from crossgaze.models.text import TextConfig, build_text, last_word
from crossgaze.models.vsrn_captioner import Captioner, CaptionerConfig

EMPHASIS = 50.0  # lambda of section 4.5
PAPER_TEXT = TextConfig(kind="gru", word_size=300, bidirectional=False)
Variant = Literal["f30k", "coco"]
Reasoning = Literal["gru", "mean"]


@dataclass(frozen=True)
class VsrnConfig:
    """What a VSRN is.

    Args:
        region_width: width d of a region feature.
        size: width D of the joint space.
        text: how words are read; the paper's is a one-directional GRU.
        variant: "f30k" has a batch norm behind the GRU, "coco" an l2 norm over the regions behind
            the projection; the public code chooses by data set.
        layers: graph layers (RRR); 0 leaves them out.
        reasoning: "gru" (GSR) or "mean", the mean region instead (table 4's Mean-pool and RRR).
        normalize_images: whether an image's vector has length 1.
        normalize_texts: whether a sentence's vector has length 1.
        absolute: whether vectors are taken without their signs (the public code's `use_abs`).
    """

    region_width: int = 2048
    size: int = 2048
    text: TextConfig = PAPER_TEXT
    variant: Variant = "f30k"
    layers: int = 4
    reasoning: Reasoning = "gru"
    normalize_images: bool = True
    normalize_texts: bool = True
    absolute: bool = False

    def __post_init__(self) -> None:
        require_whole("region_width", self.region_width)
        require_whole("size", self.size)
        require_whole("layers", self.layers, least=0, most=64)
        for name in ("normalize_images", "normalize_texts", "absolute"):
            require_switch(name, getattr(self, name))
        for name, known in (("variant", get_args(Variant)), ("reasoning", get_args(Reasoning))):
            if getattr(self, name) not in known:
                wanted = ", ".join(known)
                raise InputError(f"{name}: got {getattr(self, name)!r}, wanted one of {wanted}")


class RelationLayer(nn.Module):
    """One layer of region relationship reasoning: section 3.2, eqs. 2 and 3.

    Args:
        size: width D of a region.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.g = nn.Conv1d(size, size, 1)
        self.theta = nn.Conv1d(size, size, 1)
        self.phi = nn.Conv1d(size, size, 1)
        self.W = nn.Sequential(nn.Conv1d(size, size, 1), nn.BatchNorm1d(size))
        nn.init.zeros_(cast(nn.BatchNorm1d, self.W[1]).weight)  # a fresh layer is the identity

    def affinity(self, v: Tensor, counts: Tensor) -> Tensor:
        """Eq. 2: R_ij = varphi(v_i)' phi(v_j), divided by the number of regions; no softmax.

        Args:
            v: (N, k, D) regions.
            counts: (N,) how many are real.

        Returns:
            (N, k, k), what region i takes from region j; rows and columns of padding mean nothing.
        """
        x = v.transpose(1, 2)  # (N, D, k), channels first for the convolutions
        theta, phi = self.theta(x).transpose(1, 2), self.phi(x)  # (N, k, D), (N, D, k)
        return cast(Tensor, theta @ phi / counts[:, None, None])

    def forward(self, v: Tensor, counts: Tensor) -> Tensor:
        """Eq. 3: V* = W_r (R V W_g) + V, with a batch norm behind W_r, (N, k, D) to the same."""
        mask = real(counts, v.shape[1])  # (N, k)
        messages = self.g(v.transpose(1, 2)).transpose(1, 2)  # (N, k, D)
        messages = messages.masked_fill(~mask[..., None], 0.0)  # padding tells nobody anything
        y = self.affinity(v, counts) @ messages  # (N, k, D)
        update = self.W[0](y.transpose(1, 2))  # (N, D, k)
        norm = cast(nn.BatchNorm1d, self.W[1])
        if mask.all():  # summed as the public code sums, so that training equals it to the bit
            return v + batch_norm(norm, update).transpose(1, 2)
        # Only real rows may shape the batch's mean and variance, so only they are normalised.
        rows = batch_norm(norm, update.transpose(1, 2)[mask])  # (real, D)
        return v + rows.new_zeros(v.shape).masked_scatter(mask[..., None], rows)


def batch_norm(layer: nn.BatchNorm1d, x: Tensor) -> Tensor:
    """Apply a batch norm to (N, D) or (N, D, k).

    One row of D has no variance, on which torch raises an error in training; there the running
    statistics stand in and are left as they are. Where processes train together, mean and variance
    are those of all their rows.
    """
    if layer.training and ranks() > 1:
        return shared_batch_norm(layer, x)
    if layer.training and x.numel() < 2 * layer.num_features:
        mean, variance = layer.running_mean, layer.running_var
        return F.batch_norm(x, mean, variance, layer.weight, layer.bias, eps=layer.eps)
    return cast(Tensor, layer(x))


class Vsrn(Matcher):
    """VSRN, scoring by the inner product of an image vector and a sentence vector.

    Regions are read in the order given; `order_regions` sorts them first.

    Args:
        config: its settings.
        vocabulary: the words, or only how many; not needed where the text encoder brings its own.

    Example:
        >>> vocabulary = Vocabulary.build(["a dog runs"], min_count=1)
        >>> model = Vsrn(VsrnConfig(region_width=6, size=8), vocabulary).eval()
        >>> images, texts = model.encode_images(torch.rand(2, 3, 6)), model.encode_texts(["a dog"])
        >>> model.similarity(images, texts).shape
        torch.Size([2, 1])
    """

    family = "vsrn"
    embeds = True
    companion_type = CaptionerConfig
    config: VsrnConfig

    def __init__(self, config: VsrnConfig, vocabulary: Vocabulary | int | None = None) -> None:
        super().__init__()
        self.config = config
        size = config.size
        self.fc = nn.Linear(config.region_width, size)
        nn.init.xavier_uniform_(self.fc.weight)  # as the public code begins
        nn.init.zeros_(self.fc.bias)
        for number in range(1, config.layers + 1):
            self.add_module(f"Rs_GCN_{number}", RelationLayer(size))
        if config.reasoning == "gru":
            self.img_rnn = nn.GRU(size, size, batch_first=True)
        if config.variant == "f30k":
            self.bn = nn.BatchNorm1d(size)
        self.text = build_text(config.text, size, vocabulary)

    @property
    def relation_layers(self) -> list[RelationLayer]:
        """The graph layers, first to last."""
        names = (f"Rs_GCN_{number}" for number in range(1, self.config.layers + 1))
        return [cast(RelationLayer, self.get_submodule(name)) for name in names]

    def _encode_regions(self, regions: Tensor, counts: Tensor) -> Encoded:
        """Return I of each image in `vectors` and V*, zero past the real regions, in `features`."""
        features = self._relate(regions, counts)
        vectors = self._reason(features, counts)
        if self.config.variant == "f30k":
            vectors = batch_norm(self.bn, vectors)
        if self.config.normalize_images:
            vectors = l2norm(vectors)
        if self.config.absolute:
            vectors = vectors.abs()
        return Encoded(vectors=vectors, fragments=None, counts=counts, features=features)

    def _relate(self, regions: Tensor, counts: Tensor) -> Tensor:
        """Eq. 1: v_i = W_f f_i + b_f; then the graph layers. (N, k, d) to V*, (N, k, D)."""
        padding = ~real(counts, regions.shape[1])[..., None]  # (N, k, 1)
        # Zero on both sides of the projection: garbage may be NaN, and the bias is not zero.
        v = self.fc(regions.masked_fill(padding, 0.0)).masked_fill(padding, 0.0)  # (N, k, D)
        if self.config.variant == "coco":
            v = l2norm(v, dim=1)  # over the regions, as the public code does
        for layer in self.relation_layers:
            v = layer(v, counts)
        return l2norm(v, dim=1)

    def _reason(self, features: Tensor, counts: Tensor) -> Tensor:
        """Eqs. 4-7: a GRU's state after the last real region; or the mean region.

        torch's GRU is the paper's up to three things: its gate is 1 - z_i of eqs. 4 and 7; it
        resets after the matrix, r_i o (U_m m_{i-1} + b), where eq. 5 resets before it (and prints
        U_z for U_m); and it has two biases where eqs. 4-6 have one.

        Args:
            features: (N, k, D) V*, zero past the real regions.
            counts: (N,) how many are real.

        Returns:
            (N, D).
        """
        if self.config.reasoning == "mean":
            return features.sum(1) / counts[:, None]
        # Padding comes last and is read after the state that is kept.
        return last_word(self.img_rnn(features)[0], counts)

    def _encode_words(self, ids: Tensor, lengths: Tensor) -> Encoded:
        """Return C of section 3.4: the text encoder's state at each last real word."""
        vectors = self.text.whole(self.text(ids, lengths), lengths)
        if self.config.normalize_texts:
            vectors = l2norm(vectors)
        if self.config.absolute:
            vectors = vectors.abs()
        return Encoded(vectors=vectors, fragments=None, counts=lengths)

    def make_companion(self, config: CaptionerConfig, vocabulary: Vocabulary) -> Captioner:
        """Return the caption generator of eq. 9, which reads this model's V*."""
        return Captioner(replace(config, size=self.config.size), vocabulary)

    def attention(self, images: Encoded, texts: Encoded) -> Attention:
        """Section 4.5: s_i = lambda (k - r_i)^2, how much each region agrees with its image.

        r_i is 1 for the region whose v*_i has the highest inner product with I and k for the
        lowest, so the lowest gets 0; equal ones rank in the order given. k counts the real regions,
        padding gets 0. The sentence plays no part.

        Returns:
            `regions` (P, 1, k) under the name "regions".
        """
        require_pairs(images, texts)
        if images.vectors is None or images.features is None:
            raise InputError("attention: got images without region features, wanted both")
        mask = images.mask  # (P, k)
        agreement = (images.features @ images.vectors[..., None]).squeeze(-1)  # (P, k)
        order = agreement.masked_fill(~mask, -torch.inf).argsort(
            dim=1, descending=True, stable=True
        )
        rank = order.argsort(1) + 1  # (P, k), the inverse permutation, from 1
        scores = EMPHASIS * (images.counts[:, None] - rank).square()
        scores = scores.to(agreement.dtype).masked_fill(~mask, 0.0)
        return Attention(names=("regions",), regions=scores[:, None])
