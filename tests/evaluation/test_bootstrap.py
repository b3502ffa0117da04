"""Intervals against resampling by plain loops, against theory, and against how often they hold."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.errors import InputError
from crossgaze.evaluation import bootstrap
from crossgaze.evaluation.bootstrap import (
    BootstrapConfig,
    Estimate,
    differences,
    draw_counts,
    estimate,
    mean_draws,
    retrieval_draws,
    retrieval_estimates,
)
from crossgaze.evaluation.recall import FIGURES, Retrieval


def random_retrieval(images, captions, most=15, seed=0):
    random = np.random.default_rng(seed)
    owners = np.concatenate([np.arange(images), random.integers(0, images, captions - images)])
    return Retrieval(random.integers(0, most, images), random.integers(0, most, captions), owners)


@settings(max_examples=40)
@given(st.integers(1, 9), st.integers(0, 12), st.integers(0, 1000), st.integers(1, 40))
def test_draws_are_figures_of_the_images_taken(images, more, seed, cells):
    found = random_retrieval(images, images + more, seed=seed)
    config = BootstrapConfig(resamples=12, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bootstrap, "CELLS", cells)  # parts of any size
        drawn = retrieval_draws(found, config)
    counts = np.concatenate(list(draw_counts(images, 12, seed)))
    for number, taken in enumerate(counts):
        text_ranks, image_ranks = [], []
        for image, times in enumerate(taken):
            for _ in range(times):
                text_ranks.append(found.text_ranks[image])
                own = [
                    r for r, o in zip(found.image_ranks, found.image_of, strict=True) if o == image
                ]
                image_ranks.extend(own)
        again = Retrieval(np.array(text_ranks), np.array(image_ranks), np.array([0]))
        for name, value in again.figures().items():
            assert drawn[name][number] == pytest.approx(value)


def test_draws_take_as_many_images_as_there_are_and_repeat():
    counts = np.concatenate(list(draw_counts(7, 500, 3)))
    assert counts.shape == (500, 7)
    assert set(counts.sum(1).tolist()) == {7}
    assert counts.mean(0) == pytest.approx(np.ones(7), abs=0.2)
    again = np.concatenate(list(draw_counts(7, 500, 3, width=100_000)))
    assert np.array_equal(counts, again)  # the cut into parts changes nothing
    assert not np.array_equal(counts, np.concatenate(list(draw_counts(7, 500, 4))))


def test_the_interval_of_a_share_is_the_binomial_one():
    """With one caption an image R@1 is a mean of independent 0s and 1s."""
    ranks = np.where(np.arange(1000) < 300, 0, 30)
    found = Retrieval(ranks, ranks, np.arange(1000))
    made = retrieval_estimates([found], BootstrapConfig(resamples=4000))
    half = 100 * 1.96 * math.sqrt(0.3 * 0.7 / 1000)
    assert made["i2t_r1"].value == pytest.approx(30)
    assert made["i2t_r1"].low == pytest.approx(30 - half, abs=0.25)
    assert made["i2t_r1"].high == pytest.approx(30 + half, abs=0.25)
    assert made["rsum"].high - made["rsum"].low == pytest.approx(12 * half, rel=0.08)


def test_captions_of_an_image_stand_or_fall_together():
    """Five equal captions an image make the interval of 200 queries, not of 1,000."""
    hits = np.arange(200) < 80
    owners = np.repeat(np.arange(200), 5)
    found = Retrieval(np.where(hits, 0, 30), np.where(hits, 0, 30)[owners], owners)
    made = retrieval_estimates([found], BootstrapConfig(resamples=4000))
    half = 100 * 1.96 * math.sqrt(0.4 * 0.6 / 200)
    assert made["t2i_r1"].high - made["t2i_r1"].low == pytest.approx(2 * half, rel=0.06)


def test_intervals_hold_the_truth_as_often_as_they_say():
    random = np.random.default_rng(0)
    held = 0
    for trial in range(300):
        ranks = np.where(random.random(120) < 0.35, 0, 30)
        found = Retrieval(ranks, ranks, np.arange(120))
        config = BootstrapConfig(resamples=200, level=0.9, seed=trial)
        made = retrieval_estimates([found], config)["i2t_r1"]
        held += made.low <= 35 <= made.high
    assert 0.85 < held / 300 < 0.94  # of 300 trials; one standard error is 0.017


def test_folds_are_drawn_by_themselves_and_averaged():
    folds = [random_retrieval(400, 400, seed=seed) for seed in range(5)]
    one = retrieval_estimates(folds[:1], BootstrapConfig())
    five = retrieval_estimates(folds, BootstrapConfig())
    ratio = (one["rsum"].high - one["rsum"].low) / (five["rsum"].high - five["rsum"].low)
    assert ratio == pytest.approx(math.sqrt(5), rel=0.15)
    # Even of equal folds: were they drawn alike, five would be no better than one.
    alike = retrieval_estimates(folds[:1] * 5, BootstrapConfig())
    ratio = (one["rsum"].high - one["rsum"].low) / (alike["rsum"].high - alike["rsum"].low)
    assert ratio == pytest.approx(math.sqrt(5), rel=0.15)
    values = [fold.figures()["t2i_r5"] for fold in folds]
    assert five["t2i_r5"].value == pytest.approx(sum(values) / 5)


def test_means_over_phrases_count_only_those_there_are():
    values = np.array([1.0, np.nan, 0.0, 0.5])
    owners = np.array([0, 0, 1, 3])
    drawn = mean_draws(values, owners, 4, BootstrapConfig(resamples=300, seed=1))
    counts = np.concatenate(list(draw_counts(4, 300, 1)))
    for taken, value in zip(counts, drawn, strict=True):
        numbers = [1.0] * taken[0] + [0.0] * taken[1] + [0.5] * taken[3]
        if numbers:
            assert value == pytest.approx(sum(numbers) / len(numbers))
        else:
            assert math.isnan(value)  # only image 2, which has no phrase
    assert np.isnan(drawn).any()
    made = estimate(0.5, drawn, 0.95)
    assert 0 <= made.low < made.high <= 1


def test_a_difference_of_equals_is_nothing_and_pairs_are_narrower():
    first, same = (random_retrieval(300, 900, seed=5) for _ in range(2))
    config = BootstrapConfig()
    assert set(differences([first], [same], config).values()) == {Estimate(0.0, 0.0, 0.0)}
    # A model that only finds three more images: the pair's interval is far narrower than each's.
    ranks = first.text_ranks.copy()
    ranks[np.flatnonzero(ranks > 0)[:3]] = 0
    better = Retrieval(ranks, first.image_ranks, first.image_of)
    change = differences([better], [first], config)["i2t_r1"]
    alone = retrieval_estimates([first], config)["i2t_r1"]
    assert change.value == pytest.approx(1.0)
    assert change.high - change.low < (alone.high - alone.low) / 2
    worse = differences([first], [better], config)["i2t_r1"]
    assert (worse.low, worse.high) == pytest.approx((-change.high, -change.low))


def test_other_captions_cannot_be_compared():
    one, two = random_retrieval(4, 8, seed=1), random_retrieval(4, 8, seed=2)
    for pair in (([one], [two]), ([one], [one, one])):
        with pytest.raises(InputError, match="not measured on the same images"):
            differences(*pair, BootstrapConfig())


def test_without_draws_there_is_no_interval():
    made = retrieval_estimates([random_retrieval(4, 8)], BootstrapConfig(resamples=0))
    assert set(made) == set(FIGURES)
    assert all(figure.low is None and figure.high is None for figure in made.values())
    assert made["rsum"].to_dict()["low"] is None


@pytest.mark.parametrize("wrong", [{"resamples": -1}, {"level": 0.0}, {"level": 1.0}, {"seed": -1}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))}: got"):
        BootstrapConfig(**wrong)
