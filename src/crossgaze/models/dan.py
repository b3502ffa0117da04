"""m-DAN: images and sentences embedded by K steps of visual and of textual attention.

Nam, Ha, Kim: Dual Attention Networks for Multimodal Reasoning and Matching, CVPR 2017,
section 3.4. The attention blocks (eqs. 3-10, 13-14) stand in `dan_attention`; the loss (eq. 20)
is with the other losses; eqs. 11, 12 and 15 are r-DAN's (`rdan`).

| paper | here | shape |
| --- | --- | --- |
| {v_1 ... v_N} | `regions` | (B, k, d) |
| {u_1 ... u_T} | `words` | (B, n, D) |
| m_v^(k), m_u^(k) | `memory` | (B, D) |
| v^(k), u^(k) | `contexts[k]` | (B, D) |
| alpha_v^(k), alpha_u^(k) | `Encoded.features[..., k - 1]` | (B, k or n, K) |
| z_v, z_u | `Encoded.vectors` | (B, (K + 1) D) |
| S | what `Dan.similarity` returns | (images, texts) |

Each side is embedded without the other, so the attention of an image is the same whatever the
sentence, and the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.checks import require_share, require_whole
from crossgaze.models.dan_attention import (
    TextualAttention,
    VisualAttention,
    VisualContext,
    textual_context,
)
from crossgaze.models.encoded import Attention, Encoded, real
from crossgaze.models.matcher import Matcher, require_pairs
from crossgaze.models.text import TextConfig, build_text

LSTM = TextConfig(kind="lstm", word_size=512, join="sum")  # section 3.1, sizes of 4.1


@dataclass(frozen=True)
class DanConfig:
    """m-DAN's configuration; the defaults are the paper's (section 4.1).

    Args:
        region_width: d, width of a region feature.
        size: D, of every hidden layer and of a context vector.
        text: how words are read. Eqs. 1-2 are a bidirectional LSTM whose directions are added.
        steps: K, how often each side is looked at.
        dropout: ratio, in training.
    """

    region_width: int = 2048
    size: int = 512
    text: TextConfig = LSTM
    steps: int = 2
    dropout: float = 0.5

    def __post_init__(self) -> None:
        require_whole("region_width", self.region_width)
        require_whole("size", self.size)
        require_whole("steps", self.steps, most=64)
        require_share("dropout", self.dropout)


class Dan(Matcher):
    """m-DAN.

    Args:
        config: sizes, steps and text encoder.
        vocabulary: the words, for a recurrent text encoder.
    """

    family = "m-dan"
    embeds = True

    def __init__(self, config: DanConfig, vocabulary: Vocabulary | int | None = None) -> None:
        super().__init__()
        self.config = config
        width, size, dropout = config.region_width, config.size, config.dropout
        # Eqs. 1-2: forward and backward LSTM, their states added, by the text encoder's defaults.
        self.text = build_text(config.text, size, vocabulary)
        self.image_context = VisualContext(width, size, dropout)
        self.image_steps = nn.ModuleList(
            VisualAttention(width, size, dropout) for _ in range(config.steps)
        )
        self.text_steps = nn.ModuleList(
            TextualAttention(size, dropout) for _ in range(config.steps)
        )

    def _encode_regions(self, regions: Tensor, counts: Tensor) -> Encoded:
        mask = real(counts, regions.shape[1])
        regions = regions.masked_fill(~mask[..., None], 0.0)  # 0 * NaN would spoil weighted sums
        return self._embed(regions, counts, self.image_context(regions, mask), self.image_steps)

    def _encode_words(self, ids: Tensor, lengths: Tensor) -> Encoded:
        words = self.text(ids, lengths)  # (B, n, D)
        mask = real(lengths, ids.shape[1])
        return self._embed(words, lengths, textual_context(words, mask), self.text_steps)

    def _embed(
        self, fragments: Tensor, counts: Tensor, context: Tensor, steps: nn.ModuleList
    ) -> Encoded:
        """Look K times at one side and put its contexts in a row.

        Args:
            fragments: (B, n, d) regions or words.
            counts: (B,) how many are real.
            context: (B, D) the global context, v^(0) or u^(0).
            steps: the K attentions.
        """
        mask = real(counts, fragments.shape[1])
        memory = context
        contexts, weights = [context], []
        for attend in steps:
            context, weight = attend(fragments, memory, mask)
            # Eq. 16 for images, Eq. 17 for sentences: each side has its own memory.
            memory = memory + context
            contexts.append(context)
            weights.append(weight)
        # Eq. 21 for images, Eq. 22 for sentences: z = [context 0; ...; context K].
        # Eqs. 18-19: S = sum of the steps' v^(k) . u^(k), the inner product of what is
        # concatenated here: z_v of images with z_u of sentences.
        vectors = torch.cat(contexts, dim=-1)  # (B, (K + 1) D)
        # The weights are kept and not the fragments: K numbers a region instead of d.
        return Encoded(vectors, None, counts, features=torch.stack(weights, dim=-1))

    def attention(self, images: Encoded, texts: Encoded) -> Attention:
        """Return for each step what regions and words were looked at, image i and sentence i.

        `weights`, word x region, is the product of the two, since neither side sees the other.
        """
        require_pairs(images, texts)
        if images.features is None or texts.features is None:
            raise InputError(f"{self.family}: got a side without its attention, wanted its own")
        regions = images.features.transpose(1, 2)  # (P, k, K) -> (P, K, k)
        words = texts.features.transpose(1, 2)  # (P, n, K) -> (P, K, n)
        return Attention(
            names=tuple(f"step {step}" for step in range(1, self.config.steps + 1)),
            weights=words[..., :, None] * regions[..., None, :],  # (P, K, n, k)
            regions=regions,
            words=words,
        )
