"""Scores of a whole split: images and sentences encoded in batches, several models averaged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.text.vocabulary import UNKNOWN
from crossgaze.errors import InputError
from crossgaze.evaluation.sources import RegionSource
from crossgaze.evaluation.twins import Places, Twins, twin_captions, twin_images
from crossgaze.models.encoded import Encoded
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.matcher import Matcher
from crossgaze.models.text import RecurrentText
from crossgaze.scoring.every_pair import GIGABYTE, score_into

IN_MEMORY = 2 * GIGABYTE  # bytes of scores that are held; more go to a file that is mapped


class MeanScores:
    """Adds a model's part to the mean of several; refuses what is not a number.

    Args:
        out: (N, M), zero before the first model.
        models: how many there are.
        images: which of the N images are twins; rows come of each once, in the order found there.
        texts: which of the M captions are, to this model.
    """

    def __init__(self, out: npt.NDArray[Any], models: int, images: Twins, texts: Twins) -> None:
        self.out, self.models, self.images, self.texts = out, models, images, texts

    def take(self, start: int, scores: Tensor) -> None:
        """Add the rows of some different images, to all their twins."""
        wrong = (~torch.isfinite(scores)).nonzero()
        if len(wrong):
            image, text = (int(place) for place in wrong[0])
            raise InputError(
                f"model: scores image {self.images.first[start + image]} with caption "
                f"{self.texts.first[text]} as {float(scores[image, text])}, wanted finite scores"
            )
        part = (scores / self.models).numpy(force=True)
        # Row by row: an image may have any number of twins, and the block may just fit in memory.
        for place, number in self.images.places(start, start + len(part)):
            self.out[place] += part[number - start].take(self.texts.number)


def matchers_of(models: Sequence[Matcher | Ensemble]) -> list[Matcher]:
    """Return the single models of models and ensembles, checked to take the same regions."""
    single = [one for m in models for one in (m.matchers if isinstance(m, Ensemble) else [m])]
    return Ensemble(single).matchers


def score_split(
    models: Sequence[Matcher],
    captioned: CaptionedImages,
    regions: RegionSource,
    *,
    start: int = 0,
    batch: int = 128,
    budget: int = GIGABYTE,
    on_progress: Callable[[int], None] | None = None,
) -> npt.NDArray[Any]:
    """Return the mean of the models' scores of every image with every caption, (N, M).

    Neither side is held padded: sentences are packed as they are encoded, images come and go.
    What is the same to a model has the same scores, bit for bit, and the order of images and
    captions changes no bit of any (`crossgaze.evaluation.twins`).

    Args:
        models: one or more that take the same regions.
        captioned: N images and M captions.
        regions: of these images and perhaps of others before them.
        start: where the first of the N images stands in `regions`.
        batch: images encoded together.
        budget: bytes of working memory, see `crossgaze.scoring.every_pair.score_into`.
        on_progress: called with the number of images scored, those of all models counted.
    """
    return score_captions(
        models,
        captioned.captions,
        regions,
        slice(start, start + len(captioned)),
        batch=batch,
        budget=budget,
        on_progress=on_progress,
    )


def score_captions(
    models: Sequence[Matcher],
    captions: Sequence[str],
    regions: RegionSource,
    images: slice,
    *,
    batch: int = 128,
    budget: int = GIGABYTE,
    on_progress: Callable[[int], None] | None = None,
) -> npt.NDArray[Any]:
    """Return the mean of the models' scores of images with captions of any others, (N, M).

    Args:
        models: one or more that take the same regions.
        captions: M captions.
        regions: of the images and perhaps of others.
        images: which of them, from the slice's start to its stop.
        batch: images encoded together.
        budget: bytes of working memory, see `crossgaze.scoring.every_pair.score_into`.
        on_progress: called with the number of images scored, those of all models counted.
    """
    start, count = images.start, images.stop - images.start
    out = _room((count, len(captions)), np.dtype(np.float64 if _double(models) else np.float32))
    seen = twin_images(regions, start, start + count, batch)
    with torch.no_grad():
        for number, model in enumerate(models):
            said = twin_captions(model.text, captions)
            before = number * count
            score_into(
                model,
                _images(model, regions, start + seen.first, batch),
                _texts(model, [captions[place] for place in said.first], batch),
                [MeanScores(out, len(models), seen, said)],
                budget=budget,
                on_progress=_counted(on_progress, before + seen.ends),
            )
    return out


def check_captions(models: Sequence[Matcher], captioned: CaptionedImages) -> tuple[int, int] | None:
    """Refuse captions without a word, and count words that the models do not know.

    Returns:
        Words that no model knows and words in all; None where a model reads word pieces.
    """
    unknown = words = 0
    for j, caption in enumerate(captioned.captions):
        rows = [model.text.tokenize(caption) for model in models]
        if not all(rows):
            image = captioned.images[captioned.image_of[j]]
            raise InputError(f"{captioned.name}: the caption {caption!r} of {image} has no word")
        words += len(rows[0]) - 2  # <start> and <end>
        unknown += sum(all(n == UNKNOWN for n in same) for same in zip(*rows, strict=False))
    plain = all(isinstance(model.text, RecurrentText) for model in models)
    return (unknown, words) if plain else None


def _images(model: Matcher, regions: RegionSource, places: Places, batch: int) -> Iterator[Encoded]:
    for first in range(0, len(places), batch):
        yield model.encode_images(*regions.read(places[first : first + batch].tolist()))


def _texts(model: Matcher, captions: Sequence[str], batch: int) -> Iterator[Encoded]:
    for first in range(0, len(captions), batch):
        yield model.encode_texts(captions[first : first + batch])


def _room(shape: tuple[int, int], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return zeros, in memory or in a file without a name, which is gone with the last user."""
    if shape[0] * shape[1] * dtype.itemsize <= IN_MEMORY:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype, "w+", shape=shape)


def _double(models: Sequence[Matcher]) -> bool:
    return any(next(model.parameters()).dtype == torch.float64 for model in models)


def _counted(
    on_progress: Callable[[int], None] | None, counts: Places
) -> Callable[[int], None] | None:
    """Return what tells, for so many different images, how many that are with their twins."""
    if on_progress is None:
        return None
    return lambda done: on_progress(int(counts[done]))
