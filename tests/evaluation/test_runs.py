"""Means and differences of runs against `differences`, against plain loops, and by hand."""

import numpy as np
import pytest

from crossgaze.errors import InputError
from crossgaze.evaluation.bootstrap import (
    BootstrapConfig,
    differences,
    draw_counts,
    retrieval_estimates,
)
from crossgaze.evaluation.recall import FIGURES, Retrieval
from crossgaze.evaluation.runs import drawn_retrieval, mean_of_runs

CONFIG = BootstrapConfig(resamples=60, level=0.8, seed=3)


def retrieval(seed, images=8, each=3):
    random = np.random.default_rng(seed)
    owners = np.repeat(np.arange(images), each)
    return Retrieval(random.integers(0, 15, images), random.integers(0, 15, len(owners)), owners)


def test_one_run_is_what_the_evaluation_says():
    one, two = retrieval(1), retrieval(2)
    drawn = [drawn_retrieval(found, CONFIG) for found in (one, two)]
    assert drawn[0].estimates(CONFIG.level) == retrieval_estimates([one], CONFIG)
    assert mean_of_runs(drawn[:1]).estimates(CONFIG.level) == retrieval_estimates([one], CONFIG)
    assert (drawn[0] - drawn[1]).estimates(CONFIG.level) == differences([one], [two], CONFIG)


def test_several_runs_are_averaged_on_the_same_images():
    runs = [retrieval(seed) for seed in (1, 2, 3)]
    mean = mean_of_runs([drawn_retrieval(run, CONFIG) for run in runs])
    counts = np.concatenate(list(draw_counts(8, 60, 3)))
    hits = np.mean([run.text_ranks < 5 for run in runs], axis=0)  # (images,)
    wanted = [100 * np.repeat(hits, taken).mean() for taken in counts]
    assert mean.draws["i2t_r5"] == pytest.approx(np.array(wanted))
    found = mean.estimates(0.8)["i2t_r5"]
    assert found.value == pytest.approx(100 * hits.mean())
    assert [found.low, found.high] == pytest.approx(np.quantile(wanted, [0.1, 0.9]))


def test_two_images_by_hand():
    # The second image and its caption are found first by one run only. A draw takes it 0, 1 or 2
    # times of 2, so what it is worth lies at 0, 300 or 600.
    owners = np.arange(2)
    good = drawn_retrieval(Retrieval(np.zeros(2, int), np.zeros(2, int), owners), CONFIG)
    half = drawn_retrieval(Retrieval(np.array([0, 19]), np.array([0, 19]), owners), CONFIG)
    change = (good - half).estimates(0.95)
    assert (change["rsum"].value, change["rsum"].low, change["rsum"].high) == (300, 0, 600)
    both = (good - mean_of_runs([good, half])).estimates(0.95)["rsum"]
    assert (both.value, both.low, both.high) == (150, 0, 300)
    assert set(change) == set(FIGURES)


def test_runs_on_other_images_or_draws_are_refused():
    one = drawn_retrieval(retrieval(1), CONFIG)
    other = drawn_retrieval(retrieval(1, images=8, each=2), CONFIG)
    fewer = drawn_retrieval(retrieval(1), BootstrapConfig(resamples=10))
    with pytest.raises(InputError, match="not measured on the same images"):
        one - other
    with pytest.raises(InputError, match="not measured on the same images"):
        mean_of_runs([one, other])
    with pytest.raises(InputError, match="as many draws"):
        mean_of_runs([one, fewer])
    with pytest.raises(InputError, match="got none"):
        mean_of_runs([])
