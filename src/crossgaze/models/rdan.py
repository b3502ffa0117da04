"""r-DAN: a question about an image, answered by K joint steps of visual and textual attention.

Nam, Ha, Kim: Dual Attention Networks for Multimodal Reasoning and Matching, CVPR 2017,
section 3.3. The attention blocks (eqs. 3-10, 13-14) stand in `dan_attention`, which m-DAN shares.

| paper | here | shape |
| --- | --- | --- |
| {v_1 ... v_N} | `regions` | (B, k, d) |
| {u_1 ... u_T} | `words` | (B, n, D) |
| m^(k) | `memory` | (B, D) |
| v^(k), u^(k) | `seen`, `said` | (B, D) |
| alpha_v^(k) | `Attention.regions[:, k - 1]` | (B, k) |
| alpha_u^(k) | `Attention.words[:, k - 1]` | (B, n) |
| W_ans | `classify` | (C, D) |
| p_ans | softmax of `Answered.logits` | (B, C) |

One memory guides both attentions, so what is looked at in the image depends on the question, and
the other way round. The paper gives a dropout ratio of 0.5 and not its place: beside those of the
blocks it is here on m^(K), which W_ans reads.

How much the picture adds shows against the same network with one eye shut: `reads="question"` puts
1 for every v^(k), so that m^(k) = m^(k-1) + u^(k), and `reads="image"` puts 1 for every u^(k).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.answerer import Answered, Answerer, require_answers
from crossgaze.models.checks import require_choice, require_share, require_whole
from crossgaze.models.dan import LSTM
from crossgaze.models.dan_attention import (
    TextualAttention,
    VisualAttention,
    VisualContext,
    textual_context,
)
from crossgaze.models.encoded import Attention, real
from crossgaze.models.text import TextConfig, build_text

Reads = Literal["both", "question", "image"]


@dataclass(frozen=True)
class RDanConfig:
    """r-DAN's configuration; the defaults are the paper's (section 4.1).

    Args:
        region_width: d, width of a region feature.
        size: D, of every hidden layer, of the memory and of a context vector.
        text: how words are read. Eqs. 1-2 are a bidirectional LSTM whose directions are added.
        steps: K, how often image and question are looked at.
        dropout: ratio, in training.
        reads: "both", or only the "question" or the "image", for baselines.
        answers: the C answers, the most frequent first; training finds them.
    """

    region_width: int = 2048
    size: int = 512
    text: TextConfig = LSTM
    steps: int = 2
    dropout: float = 0.5
    reads: Reads = "both"
    answers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_whole("region_width", self.region_width)
        require_whole("size", self.size)
        require_whole("steps", self.steps, most=64)
        require_share("dropout", self.dropout)
        require_choice("reads", self.reads, get_args(Reads))
        require_answers(self.answers)


class RDan(Answerer):
    """r-DAN.

    Args:
        config: sizes, steps, text encoder and answers.
        vocabulary: the words, for a recurrent text encoder.
    """

    family = "r-dan"

    def __init__(self, config: RDanConfig, vocabulary: Vocabulary | int | None = None) -> None:
        super().__init__()
        if not config.answers:
            raise InputError("answers: got none, wanted the answers that the model chooses from")
        self.config = config
        width, size, dropout = config.region_width, config.size, config.dropout
        # Eqs. 1-2: forward and backward LSTM, their states added, by the text encoder's defaults.
        self.text = build_text(config.text, size, vocabulary)
        self.looks, self.listens = config.reads != "question", config.reads != "image"
        looks, listens = config.steps * self.looks, config.steps * self.listens
        self.image_context = VisualContext(width, size, dropout) if self.looks else None
        self.image_steps = nn.ModuleList(
            VisualAttention(width, size, dropout) for _ in range(looks)
        )
        self.text_steps = nn.ModuleList(TextualAttention(size, dropout) for _ in range(listens))
        if not self.listens:
            self.text.requires_grad_(False)  # a question is still split into words, but not read
        self.dropout = nn.Dropout(dropout)
        self.classify = nn.Linear(size, len(config.answers))

    def _answer(self, regions: Tensor, counts: Tensor, ids: Tensor, lengths: Tensor) -> Answered:
        here, known = real(counts, regions.shape[1]), real(lengths, ids.shape[1])
        regions = regions.masked_fill(~here[..., None], 0.0)  # 0 * NaN would spoil weighted sums
        seen = said = regions.new_ones(len(regions), self.config.size)  # what is not read is 1
        if self.image_context is not None:
            seen = self.image_context(regions, here)
        if self.listens:
            words = self.text(ids, lengths)  # (B, n, D)
            said = textual_context(words, known)
        memory = seen * said  # Eq. 12: m^(0) = v^(0) * u^(0)
        looked, heard = [], []
        for step in range(self.config.steps):
            if self.looks:
                seen, weights = self.image_steps[step](regions, memory, here)
                looked.append(weights)
            if self.listens:
                said, weights = self.text_steps[step](words, memory, known)
                heard.append(weights)
            memory = memory + seen * said  # Eq. 11: both attentions read and write one memory
        logits = self.classify(self.dropout(memory))  # Eq. 15: p_ans = softmax(W_ans m^(K))
        return Answered(logits, self._attention(looked, heard))

    def _attention(self, looked: list[Tensor], heard: list[Tensor]) -> Attention:
        """Return the weights of the steps: regions (B, K, k) and words (B, K, n), where read."""
        return Attention(
            names=tuple(f"step {step}" for step in range(1, self.config.steps + 1)),
            regions=torch.stack(looked, dim=1) if looked else None,
            words=torch.stack(heard, dim=1) if heard else None,
        )
