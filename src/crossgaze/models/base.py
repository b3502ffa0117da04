"""What every model is, whether it matches sentences or answers questions."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy.typing as npt
import torch
from torch import Tensor, nn

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.data.textfiles import MAX_SENTENCE_CHARS
from crossgaze.errors import InputError
from crossgaze.models.checks import numbers, require_counts, whole_numbers
from crossgaze.models.text import TextEncoder


class Model(nn.Module, ABC):
    """A model that reads region features and words.

    Attributes:
        family: the model's name in `config.json`.
    """

    family: ClassVar[str]
    config: Any
    text: TextEncoder

    def __init__(self) -> None:
        super().__init__()
        # Where the weights came from, kept in config.json: an imported checkpoint, a training run.
        self.origin: dict[str, Any] = {}

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The words the model knows; None where it reads word pieces."""
        return self.text.vocabulary

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model to a folder that `crossgaze.load` reads, without any pickle."""
        from crossgaze.models.pretrained import save_pretrained

        save_pretrained(self, folder)

    # What is given, checked -------------------------------------------------------------------

    def _regions(
        self, regions: Tensor | npt.NDArray[Any], counts: Tensor | npt.NDArray[Any] | None
    ) -> tuple[Tensor, Tensor]:
        """Return region features (N, k, d) and counts (N,) as the model computes with them."""
        # A copy of an array: a mapped store is read-only, and torch would warn.
        x = regions if isinstance(regions, Tensor) else numbers("regions", regions)
        x = x.to(self.device, next(self.parameters()).dtype)
        x = x[:, None] if x.ndim == 2 else x
        width = self.config.region_width
        if x.ndim != 3 or x.shape[1] == 0 or x.shape[2] != width:
            raise InputError(f"regions: got shape {tuple(x.shape)}, wanted (N, k, {width})")
        return x, require_counts("counts", counts, len(x), x.shape[1]).to(self.device)

    def _read_texts(self, name: str, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return texts as padded numbers of words, (N, n), and their lengths, (N,)."""
        if isinstance(texts, str):
            raise InputError(f"{name}: got one text {texts[:40]!r}, wanted a list of texts")
        texts = list(texts)
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                kind = type(text).__name__
                raise InputError(f"{name}[{number}]: got a {kind}, wanted a text")
            if len(text) > MAX_SENTENCE_CHARS:
                raise InputError(
                    f"{name}[{number}]: has {len(text):,} characters, {MAX_SENTENCE_CHARS:,} are "
                    "the most"
                )
        rows = [self.text.tokenize(text) for text in texts]
        for number, (row, text) in enumerate(zip(rows, texts, strict=True)):
            if not row:
                raise InputError(f"{name}[{number}]: {text!r} has no word in it")
        lengths = torch.tensor([len(row) for row in rows], dtype=torch.long)
        ids = torch.zeros(len(rows), int(lengths.max()) if rows else 1, dtype=torch.long)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = torch.tensor(row)
        return ids, lengths

    def _tokens(
        self, ids: Tensor | npt.NDArray[Any], lengths: Tensor | npt.NDArray[Any] | Sequence[int]
    ) -> tuple[Tensor, Tensor]:
        """Return numbers of words (N, n) and lengths (N,) that the text encoder takes."""
        tokens = whole_numbers("ids", ids).to(self.device)
        if tokens.ndim != 2:
            raise InputError(f"ids: got shape {tuple(tokens.shape)}, wanted (N, n)")
        real = require_counts("lengths", lengths, len(tokens), tokens.shape[1]).to(self.device)
        self.text.require_known(tokens, real)
        return tokens, real
