"""Several models as one: their similarities averaged (SCAN table 1, VSRN section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from crossgaze.errors import InputError
from crossgaze.models.encoded import Attention, Encoded
from crossgaze.models.matcher import Matcher


@dataclass(frozen=True)
class EncodedByAll:
    """One side as each member of an ensemble encoded it."""

    parts: tuple[Encoded, ...]

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, rows: Sequence[int] | slice | Tensor) -> EncodedByAll:
        """Return some of the images or sentences, in the order of `rows`."""
        return EncodedByAll(tuple(part[rows] for part in self.parts))


class Ensemble(nn.Module):
    """A matcher whose similarity is the mean of its members' similarities.

    Members take the same regions; each reads sentences with its own vocabulary.

    Example:
        ```python
        both = Ensemble([load("scan-t-i"), load("scan-i-t")])
        both.similarity(both.encode_images(regions), both.encode_texts(["two dogs"]))
        ```
    """

    family = "ensemble"

    def __init__(self, members: Sequence[Matcher]) -> None:
        super().__init__()
        if not members:
            raise InputError("ensemble: got no model, wanted at least one")
        for number, member in enumerate(members):
            if not isinstance(member, Matcher):
                kind = type(member).__name__
                raise InputError(f"ensemble: member {number} is a {kind}, wanted a single model")
        widths = sorted({member.config.region_width for member in members})
        if len(widths) > 1:
            raise InputError(f"ensemble: its models take regions of widths {widths}, wanted one")
        self.members = nn.ModuleList(members)

    @property
    def embeds(self) -> bool:
        """Whether every member embeds each side alone."""
        return all(member.embeds for member in self.matchers)

    @property
    def matchers(self) -> list[Matcher]:
        """The members."""
        return [member for member in self.members if isinstance(member, Matcher)]

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.matchers[0].device

    def encode_images(
        self, regions: Tensor | npt.NDArray[Any], counts: Tensor | npt.NDArray[Any] | None = None
    ) -> EncodedByAll:
        """Encode (N, k, d) regions with every member."""
        return EncodedByAll(tuple(m.encode_images(regions, counts) for m in self.matchers))

    def encode_texts(self, texts: Sequence[str]) -> EncodedByAll:
        """Encode sentences with every member."""
        return EncodedByAll(tuple(m.encode_texts(texts) for m in self.matchers))

    def encode_tokens(
        self, ids: Tensor | npt.NDArray[Any], lengths: Tensor | npt.NDArray[Any] | Sequence[int]
    ) -> EncodedByAll:
        """Encode numbers of words, where all members have one vocabulary."""
        if len({_words(member) for member in self.matchers}) > 1:
            raise InputError("ensemble: its models have different vocabularies, give texts instead")
        return EncodedByAll(tuple(m.encode_tokens(ids, lengths) for m in self.matchers))

    def similarity(self, images: EncodedByAll, texts: EncodedByAll) -> Tensor:
        """Return the mean of the members' similarities, (images, texts)."""
        pairs = zip(self.matchers, images.parts, texts.parts, strict=True)
        return torch.stack([member.similarity(i, t) for member, i, t in pairs]).mean(0)

    def attention(self, images: EncodedByAll, texts: EncodedByAll) -> tuple[Attention, ...]:
        """Return each member's attention."""
        pairs = zip(self.matchers, images.parts, texts.parts, strict=True)
        return tuple(member.attention(i, t) for member, i, t in pairs)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write every member into a folder of its own, and a head that names them."""
        from crossgaze.models.pretrained import save_ensemble

        save_ensemble(self, folder)


def _words(member: Matcher) -> tuple[object, ...]:
    """Return what the numbers of a member's words mean."""
    if member.vocabulary is not None:
        return ("words", *member.vocabulary.words)
    bert = member.config.text.bert if member.config.text.kind == "bert" else ""
    return ("numbers", bert, member.text.words)
