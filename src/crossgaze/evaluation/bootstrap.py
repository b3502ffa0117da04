"""How far a figure could be off by the luck of the test set: intervals by resampling images.

The bootstrap draws as many images as there are, with replacement, and takes each with all of its
captions: the five captions of an image stand or fall together, so resampling captions one by one
would make intervals too narrow. A figure is computed on each draw, and the interval is what lies
between the quantiles (percentile bootstrap; B. Efron, R. Tibshirani, An Introduction to the
Bootstrap, 1993, chapter 13). Ranks stay those against the whole set: an interval says how well
these queries speak for others, not what a larger set to search in would do.

Draws are numbers of times that each image was taken, (draws, images), so a figure on all draws is a
few array operations. One seed gives the same draws to every model measured on the same images:
differences between two models are taken draw by draw (`differences`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.errors import InputError
from crossgaze.evaluation.recall import (
    CUTS,
    FIGURES,
    RECALLS,
    SIDES,
    Ranks,
    Retrieval,
    mean_figures,
)

Counts = npt.NDArray[np.int64]
Draws = npt.NDArray[np.float64]
CELLS = 1 << 22  # numbers of a table of draws that is held at once


@dataclass(frozen=True)
class BootstrapConfig:
    """How intervals are made.

    Args:
        resamples: how many draws; 0 gives no intervals.
        level: how much of the draws an interval holds.
        seed: of the draws.
    """

    resamples: int = 1000
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 0:
            raise InputError(f"resamples: got {self.resamples}, wanted 0 or more")
        if not 0 < self.level < 1:
            raise InputError(f"level: got {self.level}, wanted more than 0 and less than 1")
        if self.seed < 0:
            raise InputError(f"seed: got {self.seed}, wanted 0 or more")


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval; without draws the interval is None."""

    value: float
    low: float | None = None
    high: float | None = None

    def to_dict(self, digits: int = 2) -> dict[str, float | None]:
        """Return it for JSON."""

        def short(number: float | None) -> float | None:
            return None if number is None else round(number, digits)

        return {"value": short(self.value), "low": short(self.low), "high": short(self.high)}


def draw_counts(images: int, resamples: int, seed: int, width: int = 1) -> Iterator[Counts]:
    """Give how often each draw takes each image, (some draws, images) at a time.

    Args:
        images: N.
        resamples: draws in all.
        seed: the same seed gives the same draws, however they are cut into parts.
        width: how many numbers an image stands for in what is computed, to cut the parts by.
    """
    random = np.random.default_rng(seed)
    size = max(CELLS // max(images * width, 1), 1)
    for start in range(0, resamples, size):
        draws = min(size, resamples - start)
        taken = random.integers(0, images, (draws, images))
        flat = taken + np.arange(draws)[:, None] * images
        yield np.bincount(flat.ravel(), minlength=draws * images).reshape(draws, images)


def retrieval_draws(found: Retrieval, config: BootstrapConfig) -> dict[str, Draws]:
    """Return every figure of `Retrieval.figures` on every draw, {name: (resamples,)}."""
    images, texts = len(found.text_ranks), len(found.image_ranks)
    sides = {
        "i2t": _sorted(found.text_ranks, np.arange(images)),
        "t2i": _sorted(found.image_ranks, found.image_of),
    }
    parts: dict[str, list[Draws]] = {name: [] for name in FIGURES}
    width = -(-texts // max(images, 1))
    for counts in draw_counts(images, config.resamples, config.seed, width):
        for side in SIDES:
            for name, values in _side_draws(*sides[side], counts).items():
                parts[f"{side}_{name}"].append(values)
    drawn = {
        name: np.concatenate(parts[name]) if parts[name] else np.empty(0) for name in FIGURES[:-1]
    }
    return drawn | {"rsum": np.sum([drawn[name] for name in RECALLS], axis=0)}


def _sorted(ranks: Ranks, owners: Ranks) -> tuple[Ranks, Ranks]:
    """Return the ranks, best first, and the image of each."""
    order = np.argsort(ranks, kind="stable")
    return ranks[order], owners[order]


def _side_draws(ranks: Ranks, owners: Ranks, counts: Counts) -> dict[str, Draws]:
    """Return R@K and the median of sorted ranks on draws, {name: (draws,)}."""
    upto = counts[:, owners].cumsum(1)  # (draws, queries), how many queries up to each rank
    total = upto[:, -1]
    found: dict[str, Draws] = {}
    for k in CUTS:
        hits = int(np.searchsorted(ranks, k))  # ranks 0 to k - 1
        found[f"r{k}"] = 100 * upto[:, hits - 1] / total if hits else np.zeros(len(counts))
    # The two queries in the middle, which are one where their number is odd.
    middle = [(upto > place[:, None]).argmax(1) for place in ((total - 1) // 2, total // 2)]
    found["median"] = np.floor((ranks[middle[0]] + ranks[middle[1]]) / 2) + 1
    return found


def mean_draws(
    values: npt.NDArray[np.float64], owners: Ranks, images: int, config: BootstrapConfig
) -> Draws:
    """Return the mean of some values on every draw of their images, (resamples,).

    Args:
        values: (P,), NaN where a value is not to be counted.
        owners: (P,) the image of each.
        images: N; one without any value may be drawn, too.
        config: how to draw. A draw without any value gives NaN.
    """
    real = ~np.isnan(values)
    sums = np.bincount(owners[real], values[real], images)  # (N,)
    numbers = np.bincount(owners[real], minlength=images)  # (N,)
    return ratio_draws(sums, numbers, config)


def ratio_draws(
    sums: npt.NDArray[Any], numbers: npt.NDArray[Any], config: BootstrapConfig
) -> Draws:
    """Return a mean on every draw from what each image adds to it, (resamples,).

    Args:
        sums: (N,) the sum of each image's values.
        numbers: (N,) how many values each image has.
        config: how to draw. A draw without any value gives NaN.
    """
    images = len(sums)
    parts = []
    for counts in draw_counts(images, config.resamples, config.seed):
        with np.errstate(invalid="ignore"):
            parts.append((counts @ sums) / (counts @ numbers))
    return np.concatenate(parts) if parts else np.empty(0)


def estimate(value: float, draws: Draws, level: float) -> Estimate:
    """Return a figure with the interval that holds `level` of its draws.

    Example:
        >>> estimate(2.0, np.arange(5.0), 0.5)
        Estimate(value=2.0, low=1.0, high=3.0)
    """
    known = draws[~np.isnan(draws)]
    if not len(known):
        return Estimate(value)
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, float(low), float(high))


def retrieval_estimates(folds: Sequence[Retrieval], config: BootstrapConfig) -> dict[str, Estimate]:
    """Return the mean of the folds' figures, each with its interval.

    Images are drawn within each fold, with a seed of its own, and the folds' draws averaged as the
    folds' figures are.
    """
    value = mean_figures(folds)
    drawn = _fold_draws(folds, config)
    return {name: estimate(value[name], drawn[name], config.level) for name in FIGURES}


def differences(
    first: Sequence[Retrieval], second: Sequence[Retrieval], config: BootstrapConfig
) -> dict[str, Estimate]:
    """Return how much higher the first's figures are than the second's, with intervals.

    Both must have been measured on the same images and captions: each draw takes the same images
    for both, so what they find easy or hard alike drops out. An interval that does not hold 0 says
    that the difference is more than the luck of the test set.
    """
    if len(first) != len(second) or any(
        not np.array_equal(a.image_of, b.image_of) for a, b in zip(first, second, strict=False)
    ):
        raise InputError("differences: the two were not measured on the same images and captions")
    values = mean_figures(first), mean_figures(second)
    drawn = _fold_draws(first, config), _fold_draws(second, config)
    return {
        name: estimate(
            values[0][name] - values[1][name], drawn[0][name] - drawn[1][name], config.level
        )
        for name in FIGURES
    }


def _fold_draws(folds: Sequence[Retrieval], config: BootstrapConfig) -> Mapping[str, Draws]:
    every = [
        retrieval_draws(fold, BootstrapConfig(config.resamples, config.level, config.seed + number))
        for number, fold in enumerate(folds)
    ]
    return {name: np.mean([drawn[name] for drawn in every], axis=0) for name in FIGURES}
