"""The two models of an index: one vector an image, and cross attention over regions.

What the re-ranker makes of an image is kept, so that a query costs no projection:

    features (rows, columns): one row a region, one column group a model (an ensemble has several);
    where a model compares whole images too (MMCA), row 0 holds the images' vectors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crossgaze.config import to_dict
from crossgaze.errors import InputError
from crossgaze.models import finding
from crossgaze.models.encoded import Encoded
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.matcher import Matcher
from crossgaze.models.pieces import join_pieces, mean_of_pieces, sum_of_pieces
from crossgaze.models.pretrained import load
from crossgaze.models.reading import read_words
from crossgaze.scoring.rerank import rerank
from crossgaze.search.engine import Vectors

Floats = npt.NDArray[np.floating[Any]]
TEXTS = 256  # sentences encoded at once
# Keys that came after indexes were made count only where they say something: these stay good.
LATER = {"text": {"tuned": 0}}
REMEMBERED = 256  # sentences whose words a model in use keeps: queries come again, and are many


@dataclass(frozen=True)
class Stamp:
    """Which model it was: by its name here, its kind, and a digest of all its numbers.

    Args:
        source: what `crossgaze.load` takes: a folder's absolute path, or the name of a model that
            ships, wherever crossgaze is installed.
        family: the model's.
        digest: of configuration, words and weights, those of a frozen BERT among them.
    """

    source: str
    family: str
    digest: str


def load_model(source: str | Path | Matcher | Ensemble) -> tuple[Matcher | Ensemble, Stamp]:
    """Load a model, or take a loaded one, and stamp it.

    One that is loaded here remembers few sentences, so that a service's memory stays flat; what a
    loaded one remembers is its owner's to say, who may be training it.
    """
    if isinstance(source, Matcher | Ensemble):
        model = source
    else:
        model = load(source)
        for member in matchers(model):
            member.text.keep_few(REMEMBERED)
    name = "" if isinstance(source, Matcher | Ensemble) else str(source)
    if name and Path(name).is_dir():
        folder = Path(name).resolve()
        name = folder.name if folder.parent == finding.ZOO.resolve() else str(folder)
    return model.eval(), Stamp(name, model.family, _digest(model))


def _digest(model: Matcher | Ensemble) -> str:
    found = hashlib.sha256()
    for member in matchers(model):
        found.update(json.dumps([member.family, _settings(member)], sort_keys=True).encode())
        words = () if member.vocabulary is None else member.vocabulary.words
        found.update("\n".join(words).encode())
        # A frozen BERT is found by its name, which another one may have by now.
        frozen = {f"frozen {name}": part for name, part in member.text.frozen_state().items()}
        for name, tensor in sorted((member.state_dict() | frozen).items()):
            found.update(name.encode())
            # As 32-bit numbers: the same model kept in half precision is the same model.
            found.update(tensor.detach().cpu().float().contiguous().numpy().tobytes())
    return found.hexdigest()[:24]


def _settings(member: Matcher) -> dict[str, Any]:
    """Return a configuration without the keys of LATER that say nothing."""
    found = to_dict(member.config)
    for part, keys in LATER.items():
        for key, silent in keys.items():
            if part in found and found[part].get(key) == silent:
                del found[part][key]
    return found


def share_berts(models: Sequence[Matcher | Ensemble]) -> None:
    """Let models read by one copy of each frozen BERT, so that a sentence costs it once."""
    texts = [member.text for model in models for member in matchers(model)]
    for place, text in enumerate(texts):
        any(text.share_frozen(before) for before in texts[:place])


def matchers(model: Matcher | Ensemble) -> list[Matcher]:
    """Return a model's members; a single model is its own."""
    return model.matchers if isinstance(model, Ensemble) else [model]


class Embedder:
    """One vector an image and one a sentence, whose inner product is the similarity.

    Args:
        model: an embedding model, or an ensemble of such.
    """

    def __init__(self, model: Matcher | Ensemble) -> None:
        if not model.embeds:
            raise InputError(
                f"embedder: {model.family} compares pairs, wanted a model that gives each side one "
                "vector (vse++, vsrn, m-dan)"
            )
        self.members = matchers(model)
        self.region_width: int = self.members[0].config.region_width
        self.width = self.texts(["a"]).shape[1]

    @torch.inference_mode()
    def images(self, regions: Floats, counts: npt.NDArray[np.int64]) -> Vectors:
        """Return (N, D) of (N, k, d) regions."""
        return self._join([member.encode_images(regions, counts) for member in self.members])

    @torch.inference_mode()
    def texts(self, texts: Sequence[str]) -> Vectors:
        """Return (N, D) of sentences."""
        parts = []
        for start in range(0, len(texts), TEXTS):
            part = texts[start : start + TEXTS]
            parts.append(self._join([member.encode_texts(part) for member in self.members]))
        return np.concatenate(parts) if parts else np.empty((0, self.width), np.float32)

    def _join(self, sides: Sequence[Encoded]) -> Vectors:
        """Put members side by side: the product of the joined is the mean of their products."""
        vectors = [side.vectors for side in sides if side.vectors is not None]
        joined = torch.cat(vectors, 1) / len(vectors) ** 0.5
        found: Vectors = joined.float().cpu().numpy()
        return found


class Reranker:
    """Cross attention over kept features.

    Args:
        model: a model that compares regions with words, or an ensemble of such.
    """

    def __init__(self, model: Matcher | Ensemble) -> None:
        self.members = matchers(model)
        for member in self.members:
            if member.embeds:
                raise InputError(
                    f"reranker: {member.family} gives one vector a side, wanted a model that "
                    "compares regions with words (scan, bfan, mmca, sum-max)"
                )
        self.region_width: int = self.members[0].config.region_width
        sides = [self._probe(member) for member in self.members]
        widths = [side.fragments.shape[2] for side in sides if side.fragments is not None]
        ends = np.cumsum([0, *widths]).tolist()
        self.columns = [slice(*pair) for pair in pairwise(ends)]
        self.width = int(ends[-1])
        # One row in front of the regions', where a model also compares vectors of whole images.
        self.extra = int(any(side.vectors is not None for side in sides))

    @torch.inference_mode()
    def _probe(self, member: Matcher) -> Encoded:
        return member.encode_images(torch.zeros(1, 1, self.region_width))

    @torch.inference_mode()
    def images(self, regions: Floats, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float16]:
        """Return what is kept of (N, k, d) regions, (N, extra + k, width)."""
        count, k = regions.shape[:2]
        kept = np.zeros((count, self.extra + k, self.width), np.float16)
        for member, columns in zip(self.members, self.columns, strict=True):
            side = member.encode_images(regions, counts)
            assert side.fragments is not None
            kept[:, self.extra :, columns] = side.fragments.cpu().numpy()
            if side.vectors is not None:
                kept[:, 0, columns] = side.vectors.cpu().numpy()
        return kept

    @torch.inference_mode()
    def score(
        self,
        texts: Sequence[str],
        features: npt.NDArray[Any],
        rows: npt.NDArray[np.int64],
        counts: npt.NDArray[np.int64],
    ) -> Vectors:
        """Return the similarities of chosen images with sentences, (rows, texts).

        Args:
            texts: usually one query.
            features: (N, extra + k, width), mapped; only the chosen rows are read.
            rows: the chosen images.
            counts: (N,) real regions of each image.
        """
        return self.score_texts(self.texts(texts), features, rows, counts)

    @torch.inference_mode()
    def texts(self, texts: Sequence[str]) -> list[Encoded]:
        """Return sentences as each member encodes them, for `score_texts`."""
        return [member.encode_texts(texts) for member in self.members]

    @torch.inference_mode()
    def score_texts(
        self,
        sides: Sequence[Encoded],
        features: npt.NDArray[Any],
        rows: npt.NDArray[np.int64],
        counts: npt.NDArray[np.int64],
    ) -> Vectors:
        """Return what `score` does, of sentences that are encoded already."""
        total: Tensor | None = None
        for member, columns, side in zip(self.members, self.columns, sides, strict=True):
            part = rerank(
                member,
                side,
                features[:, self.extra :, columns],
                rows,
                counts,
                features[:, 0, columns] if side.vectors is not None else None,
            )
            total = part if total is None else total + part
        assert total is not None
        return (total / len(self.members)).float().cpu().numpy()

    @property
    def looks_as(self) -> str | None:
        """Whose `attention` it is, where several models score together."""
        count = len(self.members)
        return f"{self.members[0].family}, the first of {count} models" if count > 1 else None

    @torch.inference_mode()
    def attention(
        self, text: str, kept: npt.NDArray[Any], count: int
    ) -> tuple[tuple[str, ...], Vectors]:
        """Return a sentence's words and how much each looked at each region, (words, count).

        Words that look at regions ("t-i") where a model has both directions, the mean of a model's
        heads, and regions that look at words where it has nothing else. Of an ensemble the first
        model's, whose words they are. Words are whole, also where the model reads pieces of them.

        Args:
            text: the sentence.
            kept: (extra + k, width) of one image.
            count: its real regions.
        """
        member, columns = self.members[0], self.columns[0]
        full = torch.from_numpy(np.array(kept, np.float32))
        fragments = full[None, self.extra :, columns]
        vectors = full[None, 0, columns] if self.extra else None
        image = Encoded(vectors, fragments, torch.tensor([count]))
        found = member.attention(image, member.encode_texts([text]))
        words, starts = join_pieces(read_words(member, "query", text)[0])
        if found.weights is None:
            return words, np.zeros((len(words), count), np.float32)
        # A mean of both directions would be neither's: one sums to 1 by words, one by regions.
        chosen = [found.names.index("t-i")] if "t-i" in found.names else [*range(len(found.names))]
        weights = found.weights[0, chosen].mean(0)[:, :count].float().cpu().numpy()
        if found.names == ("i-t",):
            return words, sum_of_pieces(weights, starts, axis=0)
        return words, mean_of_pieces(weights, starts)


def unknown_words(members: Sequence[Matcher], text: str) -> tuple[tuple[str, ...], bool]:
    """Return the words that some member does not know, and whether one of them knows none.

    Signs that are no words do not count. A model that reads word pieces and has no `words.txt`
    knows every word.
    """
    from crossgaze.data.text.words import caption_words

    words = [word for word in caption_words(text) if any(sign.isalnum() for sign in word)]
    unknown: dict[str, None] = {}
    lost = False
    for member in members:
        mine = [word for word in words if not member.text.knows(word)]
        unknown |= dict.fromkeys(mine)
        lost = lost or (bool(mine) and len(mine) == len(words))
    return tuple(unknown), lost
