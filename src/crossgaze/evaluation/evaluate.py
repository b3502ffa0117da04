"""A whole evaluation: recalls on one or more protocols, attention, intervals, each query's rank.

`crossgaze evaluate MODEL DATA` is this from the command line. A model may be tested on any data,
whatever it was trained on: words that it does not know are read as <unk> and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.entities.annotations import EntityImage
from crossgaze.errors import InputError
from crossgaze.evaluation.attention_on_entities import NoMapError, measure_attention
from crossgaze.evaluation.attention_quality import AttentionConfig, AttentionQuality
from crossgaze.evaluation.bootstrap import BootstrapConfig, Estimate, retrieval_estimates
from crossgaze.evaluation.hubs import Bank, Hubs, find_hubs
from crossgaze.evaluation.recall import Retrieval, fold_rows, ranks_of
from crossgaze.evaluation.scores import check_captions, matchers_of, score_split
from crossgaze.evaluation.sources import RegionSource
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.matcher import Matcher
from crossgaze.scoring.every_pair import GIGABYTE
from crossgaze.scoring.sinks import BestImages, BestTexts

Step = Callable[[int, int], None]


@dataclass(frozen=True)
class EvaluateConfig:
    """How a model is evaluated.

    Args:
        folds: in how many folds the images are searched, one protocol for each number: 1 is all
            at once, 5 the mean of five folds (MS-COCO's 1K).
        top: how many of the best answers of each query are kept.
        batch: images encoded together.
        budget: bytes of working memory.
        bootstrap: how intervals are made.
        attention: what counts as attended and relevant.
        kept_words: folder where what a frozen BERT gives for the captions is kept for other
            evaluations, as `data.kept_words` of a recipe.
    """

    folds: tuple[int, ...] = (1,)
    top: int = 10
    batch: int = 128
    budget: int = GIGABYTE
    bootstrap: BootstrapConfig = field(default_factory=BootstrapConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    kept_words: Path | None = None

    def __post_init__(self) -> None:
        if not self.folds or len(set(self.folds)) < len(self.folds) or min(self.folds) < 1:
            raise InputError(f"folds: got {self.folds}, wanted whole numbers, each once")
        if self.top < 0:
            raise InputError(f"top: got {self.top}, wanted 0 or more")
        if self.batch < 1:
            raise InputError(f"batch: got {self.batch}, wanted 1 or more")


@dataclass(frozen=True, eq=False)
class Fold:
    """What one fold gave.

    Args:
        ranks: of its images and captions.
        best_texts: (n, K) scores and caption numbers within the fold, or None; of equal scores the
            wrong answers come first, then each in its order.
        best_images: (m, K) scores and image numbers within the fold, likewise, or None.
    """

    ranks: Retrieval
    best_texts: tuple[npt.NDArray[Any], npt.NDArray[np.int64]] | None = None
    best_images: tuple[npt.NDArray[Any], npt.NDArray[np.int64]] | None = None


@dataclass(frozen=True, eq=False)
class Protocol:
    """The images searched in so many folds: the figures are the mean of the folds'."""

    folds: tuple[Fold, ...]
    figures: Mapping[str, Estimate]

    @property
    def retrievals(self) -> list[Retrieval]:
        """The ranks of each fold."""
        return [fold.ranks for fold in self.folds]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Everything that was measured.

    Args:
        captioned: the images and captions, captions in the order of their images.
        protocols: one for each number of folds.
        attention: of each model that has the map, its family and what was measured.
        unknown: words that no model knows and words in all, or None.
        notes: what could not be measured, and why.
        models: how many models' scores were averaged.
        bank: how many images and captions hubs were held back by, or None.
    """

    captioned: CaptionedImages
    protocols: tuple[Protocol, ...]
    attention: tuple[tuple[str, AttentionQuality], ...] = ()
    unknown: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()
    models: int = 1
    bank: tuple[int, int] | None = None


def evaluate(
    models: Matcher | Ensemble | Sequence[Matcher | Ensemble],
    captioned: CaptionedImages,
    regions: RegionSource,
    config: EvaluateConfig | None = None,
    *,
    entities: Mapping[str, EntityImage] | None = None,
    bank: Bank | None = None,
    on_progress: Step | None = None,
    on_attention: Step | None = None,
) -> Evaluation:
    """Evaluate a model, or several whose scores are averaged.

    Args:
        models: in evaluation mode.
        captioned: the images and captions to test on.
        regions: of these images, see `crossgaze.evaluation.sources.open_regions`.
        config: what is measured and how.
        entities: Flickr30k Entities, to measure attention against.
        bank: other images and captions, to hold back what fits everything
            (`crossgaze.evaluation.hubs`).
        on_progress: called with (images scored, images in all), an image once for each model.
        on_attention: called with (captions done, captions in all), for each model.

    Example:
        ```python
        captioned = read_split("flickr8k/", "test")
        regions = open_regions(captioned, "flickr8k/", "regions/")
        found = evaluate(crossgaze.load("my-scan"), captioned, regions)
        found.protocols[0].figures["rsum"]
        ```
    """
    config = config or EvaluateConfig()
    matchers = matchers_of([models] if isinstance(models, Matcher | Ensemble) else models)
    width = matchers[0].config.region_width
    if regions.width != width:
        raise InputError(
            f"{regions.name}: has regions of width {regions.width}, the model takes {width}"
        )
    # Folds are parts of the images, and so of the captions once these are in the images' order.
    captioned = captioned.select(captioned.images)
    for folds in config.folds:
        fold_rows(len(captioned), folds)
    unknown = check_captions(matchers, captioned)
    if bank is not None:
        bank.require_others(captioned)
        check_captions(matchers, bank.captioned)
    if config.kept_words is not None:
        for model in matchers:
            for part in (captioned, *(() if bank is None else (bank.captioned,))):
                rows = [model.text.tokenize(caption) for caption in part.captions]
                model.text.remember(rows, config.kept_words)
    attention, notes = [], []
    if entities is not None:  # first, because it is quick and may refuse
        for model in matchers:
            try:
                quality = measure_attention(
                    model,
                    regions,
                    captioned,
                    entities,
                    config.attention,
                    on_progress=on_attention,
                )
            except NoMapError as error:
                if len(matchers) == 1:
                    raise
                notes.append(str(error))  # one of an ensemble may have nothing to measure
                continue
            attention.append((model.family, quality))
    protocols = _protocols(matchers, captioned, regions, config, bank, on_progress)
    held = None if bank is None else (len(bank.captioned), bank.captions)
    return Evaluation(
        captioned, protocols, tuple(attention), unknown, tuple(notes), len(matchers), held
    )


def _protocols(
    models: Sequence[Matcher],
    captioned: CaptionedImages,
    regions: RegionSource,
    config: EvaluateConfig,
    bank: Bank | None,
    on_progress: Step | None,
) -> tuple[Protocol, ...]:
    """Score what the protocols need: all pairs once if one of them does, else only within folds."""
    whole = 1 in config.folds
    once = len(models) * len(captioned)
    more = 0 if bank is None else len(models) * len(bank.captioned) + once
    total = once * (1 if whole else len(config.folds)) + more
    done = 0

    def step(images: int) -> None:
        if on_progress:
            on_progress(done + images, total)

    options: dict[str, Any] = {
        "batch": config.batch,
        "budget": config.budget,
        "on_progress": step,
    }
    hubs: Hubs | None = None
    if bank is not None:
        hubs = find_hubs(models, captioned, regions, bank, **options)
        done = more
    scores = score_split(models, captioned, regions, **options) if whole else None
    protocols = []
    for folds in config.folds:
        found = []
        for start, stop in fold_rows(len(captioned), folds):
            part = captioned.select(captioned.images[start:stop])
            left, right = np.searchsorted(captioned.image_of, [start, stop])
            if scores is None:
                made = score_split(models, part, regions, start=start, **options)
                done += len(models) * len(part)
            else:
                made = scores[start:stop, left:right]
            if hubs is not None:
                made = hubs.hold_back(made, int(start), int(left))
            found.append(_fold(made, part.image_of, config.top))
        estimates = retrieval_estimates([fold.ranks for fold in found], config.bootstrap)
        protocols.append(Protocol(tuple(found), estimates))
    return tuple(protocols)


def _fold(scores: npt.NDArray[Any], image_of: npt.NDArray[np.int64], top: int) -> Fold:
    ranks = ranks_of(scores, image_of)
    if not top:
        return Fold(ranks)
    texts, images = BestTexts(top), BestImages(top)
    for start in range(0, len(scores), 512):
        block = np.array(scores[start : start + 512], np.float64)
        # Right answers stand behind the wrong ones that score the same, as ranks count them:
        # between two numbers of single precision there is room for that.
        columns = np.flatnonzero((image_of >= start) & (image_of < start + len(block)))
        own = (image_of[columns] - start, columns)
        block[own] = np.nextafter(block[own], -np.inf)
        texts.take(start, torch.from_numpy(block))
        images.take(start, torch.from_numpy(block))
    said, seen = texts.rows.numpy(), images.rows.numpy()  # (n, K), (m, K)
    return Fold(
        ranks,
        (scores[np.arange(len(said))[:, None], said], said),
        (scores[seen, np.arange(len(seen))[:, None]], seen),
    )
