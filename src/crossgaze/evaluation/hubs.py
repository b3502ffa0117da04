"""Hubs held back: what fits everything says little by fitting this query, too (CSLS).

Conneau, Lample, Ranzato, Denoyer, Jégou: Word Translation without Parallel Data, ICLR 2018, section
2.3; for images and sentences Liu, Ye: A Strong and Robust Baseline for Text-Image Matching, ACL
SRW 2019. None of the five papers does it, so it is never on by default.

In a space of many dimensions some points, hubs, are among the nearest of very many others: a
sentence such as "a man is outside", a crowded photograph. With s(i, c) the similarity of image i
and caption c,

    CSLS(i, c) = 2 s(i, c) - r(i) - r(c)
    r(i) = 1/K sum of s(i, c') over the K captions c' of the bank that are nearest to i
    r(c) = 1/K sum of s(i', c) over the K images i' of the bank that are nearest to c,

and K = 10 as there, or all where there are fewer. Here it is halved, so that scores keep their
scale, and the bank is not the set that is searched but *other* images and captions, such as the
training set's: a query in use does not know which others will be asked.

| paper | here | shape |
| --- | --- | --- |
| r_T, r_S | `Hubs.images`, `Hubs.captions` | (N,), (M,) |
| K | `NEIGHBOURS` | |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.errors import InputError
from crossgaze.evaluation.scores import score_captions
from crossgaze.evaluation.sources import RegionSource
from crossgaze.models.matcher import Matcher

NEIGHBOURS = 10  # K of the paper
Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Bank:
    """Other images and captions than those that are searched.

    Args:
        captioned: the images and captions.
        regions: of these images.
    """

    captioned: CaptionedImages
    regions: RegionSource

    @property
    def captions(self) -> int:
        """How many captions there are."""
        return len(self.captioned.captions)

    def require_others(self, captioned: CaptionedImages) -> None:
        """Refuse a bank that has images of those that are searched."""
        same = sorted(set(self.captioned.images) & set(captioned.images))
        if same:
            raise InputError(
                f"bank: has {len(same)} of the images that are tested, such as {same[0]}; "
                "wanted another split"
            )


@dataclass(frozen=True, eq=False)
class Hubs:
    """How near everything is to each image and each caption.

    Args:
        images: (N,) r(i).
        captions: (M,) r(c).
    """

    images: Floats
    captions: Floats

    def hold_back(self, scores: Floats, image: int = 0, caption: int = 0) -> Floats:
        """Return half of CSLS.

        Args:
            scores: (n, m) similarities of some of the images, in order, with some of the captions.
            image: which the first of these images is.
            caption: which the first of these captions is.
        """
        rows = self.images[image : image + scores.shape[0], None]
        columns = self.captions[None, caption : caption + scores.shape[1]]
        return (scores - (rows + columns) / 2).astype(scores.dtype)


def spread(captioned: CaptionedImages, images: int) -> CaptionedImages:
    """Return so many of the images, evenly spread over all of them, with their captions."""
    if images < 1:
        raise InputError(f"bank: got {images} images, wanted 1 or more")
    places = np.linspace(0, len(captioned) - 1, min(images, len(captioned))).round().astype(int)
    return captioned.select([captioned.images[place] for place in places])


def find_hubs(
    models: Sequence[Matcher],
    captioned: CaptionedImages,
    regions: RegionSource,
    bank: Bank,
    *,
    batch: int,
    budget: int,
    on_progress: Callable[[int], None] | None = None,
) -> Hubs:
    """Score images and captions with the bank's.

    Args:
        models: one or more whose scores are averaged.
        captioned: the N images and M captions that are searched.
        regions: of these images.
        bank: the others.
        batch: images encoded together.
        budget: bytes of working memory.
        on_progress: called with the number of images scored, those of all models counted, the
            bank's first.
    """
    options: dict[str, Any] = {"batch": batch, "budget": budget}
    before = len(models) * len(bank.captioned)
    seen = score_captions(
        models,
        captioned.captions,
        bank.regions,
        slice(0, len(bank.captioned)),
        on_progress=on_progress,
        **options,
    )  # (B, M)
    said = score_captions(
        models,
        bank.captioned.captions,
        regions,
        slice(0, len(captioned)),
        on_progress=None if on_progress is None else lambda done: on_progress(before + done),
        **options,
    )  # (N, b)
    return Hubs(_nearest(said), _nearest(seen.T))


def _nearest(scores: Floats) -> Floats:
    """Return the mean of each row's K largest, (N,)."""
    count = min(NEIGHBOURS, scores.shape[1])
    found: Floats = np.partition(scores, -count, axis=1)[:, -count:].mean(1, dtype=np.float64)
    return found
