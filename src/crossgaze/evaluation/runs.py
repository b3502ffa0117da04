"""Several runs measured on the same images: their mean, its interval, and what differs.

A run's figures are kept with the figures on every draw of `crossgaze.evaluation.bootstrap`. One
seed draws the same images for every run, so runs of one recipe are averaged draw by draw, and two
recipes are subtracted draw by draw. Folds are another matter: each is drawn by itself, because its
images are its own.

The interval speaks of the luck of the test images. What the luck of training does is the spread
between runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crossgaze.errors import InputError
from crossgaze.evaluation.bootstrap import (
    BootstrapConfig,
    Counts,
    Draws,
    Estimate,
    estimate,
    retrieval_draws,
)
from crossgaze.evaluation.recall import Retrieval


@dataclass(frozen=True, eq=False)
class Drawn:
    """Figures, and the same figures on every draw of images.

    Args:
        values: by name.
        draws: (resamples,) by name.
        queries: (N,) how many queries each image stands for; two that differ here were not
            measured on the same and are not put together.
    """

    values: Mapping[str, float]
    draws: Mapping[str, Draws]
    queries: Counts

    def __sub__(self, other: Drawn) -> Drawn:
        _require_same([self, other])
        return Drawn(
            {name: value - other.values[name] for name, value in self.values.items()},
            {name: draws - other.draws[name] for name, draws in self.draws.items()},
            self.queries,
        )

    def estimates(self, level: float) -> dict[str, Estimate]:
        """Return every figure with the interval that holds `level` of its draws."""
        return {
            name: estimate(value, self.draws[name], level) for name, value in self.values.items()
        }


def drawn_retrieval(found: Retrieval, config: BootstrapConfig) -> Drawn:
    """Return the figures of one run's ranks on every draw.

    Example:
        >>> ranks = Retrieval(np.array([0, 7]), np.array([0, 12]), np.array([0, 1]))
        >>> drawn_retrieval(ranks, BootstrapConfig(100)).estimates(0.95)["i2t_r1"]
        Estimate(value=50.0, low=0.0, high=100.0)
    """
    queries = np.bincount(found.image_of, minlength=len(found.text_ranks))
    return Drawn(found.figures(), retrieval_draws(found, config), queries)


def mean_of_runs(runs: Sequence[Drawn]) -> Drawn:
    """Return the mean of runs on the same images, on every draw, too."""
    if not runs:
        raise InputError("runs: got none, wanted one or more")
    _require_same(runs)
    first = runs[0]
    return Drawn(
        {name: float(np.mean([run.values[name] for run in runs])) for name in first.values},
        {name: np.mean([run.draws[name] for run in runs], axis=0) for name in first.draws},
        first.queries,
    )


def _require_same(runs: Sequence[Drawn]) -> None:
    first = runs[0]
    for run in runs[1:]:
        if not np.array_equal(run.queries, first.queries):
            raise InputError("runs: were not measured on the same images")
        sizes = [{name: len(draws) for name, draws in one.draws.items()} for one in (first, run)]
        if sizes[0] != sizes[1]:
            raise InputError("runs: do not have the same figures on as many draws")
