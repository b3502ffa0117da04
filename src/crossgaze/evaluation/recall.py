"""Recall at K, median rank and their sum, both ways, with ties counted against the query.

R@K in this field is a hit rate: the share of queries for which at least one right answer is among
the first K. An image asks for sentences (i2t, "sentence retrieval"), and a hit is any of its own; a
sentence asks for images (t2i, "image retrieval"), and one image is right.

What scores the same as the right answer stands before it, so a model that gives every pair one
score gets 0, whatever the order of the files. A score that is not a number counts against the
query, too: it stands before any right answer, and as the right answer it stands last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crossgaze.errors import InputError
from crossgaze.scoring.sinks import TruthRanks

Ranks = npt.NDArray[np.int64]
CUTS = (1, 5, 10)  # the K of R@K
SIDES = ("i2t", "t2i")
RECALLS = tuple(f"{side}_r{k}" for side in SIDES for k in CUTS)
FIGURES = (
    *(f"i2t_{name}" for name in ("r1", "r5", "r10", "median")),
    *(f"t2i_{name}" for name in ("r1", "r5", "r10", "median")),
    "rsum",
)
BLOCK = 512  # images whose scores are looked at together


@dataclass(frozen=True, eq=False)
class Retrieval:
    """At which rank the right answer of each query stands; 0 is first.

    Args:
        text_ranks: (N,) for each image, how many wrong sentences stand before its best own one.
        image_ranks: (M,) for each sentence, how many other images stand before its own.
        image_of: (M,) the image of each sentence.

    Example:
        >>> found = Retrieval(np.array([0, 7]), np.array([0, 0, 12]), np.array([0, 0, 1]))
        >>> found.figures()["i2t_r1"], found.figures()["t2i_median"]
        (50.0, 1.0)
    """

    text_ranks: Ranks
    image_ranks: Ranks
    image_of: Ranks

    def figures(self) -> dict[str, float]:
        """Return every figure by name (`FIGURES`): recalls in percent, medians with 1 as first."""
        found: dict[str, float] = {}
        for side, ranks in zip(SIDES, (self.text_ranks, self.image_ranks), strict=True):
            for k in CUTS:
                found[f"{side}_r{k}"] = 100 * float(np.mean(ranks < k))
            found[f"{side}_median"] = median_rank(ranks)
        return found | {"rsum": sum(found[name] for name in RECALLS)}


def median_rank(ranks: Ranks) -> float:
    """Return the median rank, 1 for first; between two ranks the better one, as the papers do.

    Example:
        >>> median_rank(np.array([0, 1, 2, 9]))
        2.0
    """
    return float(np.floor(np.median(ranks)) + 1)


def mean_figures(folds: Sequence[Retrieval]) -> dict[str, float]:
    """Return the mean of several folds' figures, as the 1K figures of MS-COCO are made."""
    if not folds:
        raise InputError("folds: got none, wanted at least one")
    every = [fold.figures() for fold in folds]
    return {name: float(np.mean([figures[name] for figures in every])) for name in FIGURES}


def ranks_of(
    scores: Tensor | npt.NDArray[Any] | TruthRanks, image_of: Tensor | npt.NDArray[Any]
) -> Retrieval:
    """Return the ranks that scores give.

    Args:
        scores: (N, M), row i an image and column j a sentence, in memory or in a mapped file; or a
            sink that has counted them while they were made.
        image_of: (M,) the image of each sentence; every image has at least one.

    Example:
        >>> ranks_of(torch.eye(2), torch.tensor([0, 1])).figures()["rsum"]
        600.0
    """
    if isinstance(scores, TruthRanks):
        owners = _require_owners(image_of, len(scores.images), len(scores.texts))
        texts, images = scores.images - 1, scores.texts - 1
        return Retrieval(texts.numpy(force=True), images.numpy(force=True), owners)
    if scores.ndim != 2:
        raise InputError(f"scores: got shape {tuple(scores.shape)}, wanted (images, sentences)")
    owners = _require_owners(image_of, *scores.shape)
    device = scores.device if isinstance(scores, Tensor) else torch.device("cpu")
    truth = torch.from_numpy(owners).to(device)
    columns = np.arange(len(owners))
    # The score of each sentence with its own image, (M,).
    right = torch.as_tensor(
        scores[truth, torch.arange(len(truth), device=device)]
        if isinstance(scores, Tensor)
        else np.asarray(scores[owners, columns])
    )
    text_ranks: list[Tensor] = []
    image_ranks = torch.zeros_like(truth)
    for start in range(0, scores.shape[0], BLOCK):
        part = scores[start : start + BLOCK]
        block = part if isinstance(part, Tensor) else torch.from_numpy(np.array(part))  # (B, M)
        numbers = torch.arange(start, start + len(block), device=device)
        own = numbers[:, None] == truth  # (B, M)
        best = block.masked_fill(~own, -torch.inf).max(1).values  # (B,), NaN if one of them is
        # "Not below" and not "at least": a NaN is neither, and must not help the query.
        text_ranks.append((~(block < best[:, None]) & ~own).sum(1))
        image_ranks += (~(block < right) & ~own).sum(0)
    return Retrieval(torch.cat(text_ranks).numpy(force=True), image_ranks.numpy(force=True), owners)


class Scores(Protocol):
    """A model or an ensemble, as far as scoring encoded sides goes."""

    def similarity(self, images: Any, texts: Any) -> Tensor:  # noqa: ANN401 (an ensemble's own)
        """Return the similarity of every image with every sentence, (N, M)."""


def retrieve(
    model: Scores,
    images: Any,  # noqa: ANN401
    texts: Any,  # noqa: ANN401
    image_of: Tensor | npt.NDArray[Any],
) -> Retrieval:
    """Return the ranks of encoded images and sentences, without gradient.

    Args:
        model: a matcher or an ensemble.
        images: what its `encode_images` gave for N images.
        texts: what its `encode_texts` gave for M sentences.
        image_of: (M,) the image of each sentence.

    Example:
        ```python
        found = retrieve(model, model.encode_images(x), model.encode_texts(captions), image_of)
        found.figures()["rsum"]
        ```
    """
    with torch.no_grad():
        return ranks_of(model.similarity(images, texts), image_of)


def fold_rows(images: int, folds: int) -> list[tuple[int, int]]:
    """Return where each of so many folds of an equal number of images begins and ends.

    Folds are parts of the set in its order, as in the public code: MS-COCO's 5,000 test images give
    the images 0 to 999, 1,000 to 1,999 and so on.

    Example:
        >>> fold_rows(10, 5)[1]
        (2, 4)
    """
    if folds < 1 or images % folds or not images:
        raise InputError(
            f"folds: got {folds} for {images:,} images, wanted a number that divides them"
        )
    size = images // folds
    return [(start, start + size) for start in range(0, images, size)]


def rounded(figures: Mapping[str, float], digits: int = 2) -> dict[str, float]:
    """Return figures for people and for JSON."""
    return {name: round(value, digits) for name, value in figures.items()}


def _require_owners(image_of: Tensor | npt.NDArray[Any], images: int, texts: int) -> Ranks:
    """Return the image of each sentence as int64, every image with at least one sentence."""
    raw = image_of.numpy(force=True) if isinstance(image_of, Tensor) else np.asarray(image_of)
    if raw.shape != (texts,) or raw.dtype.kind not in "iu" or not texts:
        raise InputError(
            f"image_of: got {raw.dtype} of shape {raw.shape}, wanted a whole number for each of "
            f"{texts} sentences, at least one"
        )
    owners = raw.astype(np.int64)
    if owners.min() < 0 or owners.max() >= images:
        raise InputError(
            f"image_of: goes from {owners.min()} to {owners.max()}, there are {images} images"
        )
    silent = np.flatnonzero(np.bincount(owners, minlength=images) == 0)
    if silent.size:
        raise InputError(f"image_of: image {silent[0]} has no sentence, so it can have no rank")
    return owners
