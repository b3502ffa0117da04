"""How words that no model learned are measured, against loops over the definitions."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

tool = pytest.importorskip("measure_unseen_words", reason="needs tools/")


def precision_of(order, right):
    """Return the average precision of one order, by its definition."""
    found, total = 0, 0.0
    for place, item in enumerate(order, 1):
        if item in right:
            found += 1
            total += found / place
    return total / len(right)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=6), st.data())
def test_average_precision_is_that_of_the_worst_order_of_equals(scores, data):
    items = range(len(scores))
    right = data.draw(st.sets(st.sampled_from(items), min_size=1, max_size=len(scores) - 1))
    orders = [
        order
        for order in itertools.permutations(items)
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    worst = min(precision_of(order, right) for order in orders)
    found, _ = tool.average_precision(np.array(scores, float), sorted(right))
    assert found == pytest.approx(worst)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=12), st.data())
def test_auc_is_the_share_of_pairs_in_order(scores, data):
    items = range(len(scores))
    right = data.draw(st.sets(st.sampled_from(items), min_size=1, max_size=len(scores) - 1))
    wrong = set(items) - right
    pairs = [
        1.0 if scores[a] > scores[b] else 0.5 if scores[a] == scores[b] else 0.0
        for a in right
        for b in wrong
    ]
    _, found = tool.average_precision(np.array(scores, float), sorted(right))
    assert found == pytest.approx(sum(pairs) / len(pairs))


def test_both_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics", reason="needs crossgaze[demo]")
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores, is_right = rng.normal(size=50), rng.random(50) < 0.2
        is_right[:2] = True, False
        precision, auc = tool.average_precision(scores, np.flatnonzero(is_right))
        assert precision == pytest.approx(metrics.average_precision_score(is_right, scores))
        assert auc == pytest.approx(metrics.roc_auc_score(is_right, scores))


def test_a_case_worked_by_hand():
    # In order: wrong, right, wrong, right. AP = (1/2 + 2/4) / 2; of 4 pairs one is in order.
    assert tool.average_precision(np.array([4.0, 3.0, 2.0, 1.0]), [1, 3]) == (0.5, 0.25)
    assert tool.average_precision(np.array([4.0, 3.0, 2.0, 1.0]), [0, 1]) == (1.0, 1.0)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 1000))
def test_ranks_count_what_is_not_below(images, captions, seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, (images, captions)).astype(float)
    image_of = rng.integers(0, images, captions)
    wanted = [
        sum(
            scores[other, caption] >= scores[own, caption]
            for other in range(images)
            if other != own
        )
        for caption, own in enumerate(image_of)
    ]
    assert tool.ranks(scores, image_of).tolist() == wanted


def test_an_interval_draws_groups_and_not_their_members():
    # Of two groups, one with a 0 and one with three 1, both, the first twice or the second twice.
    found = tool.interval([0, 1, 1, 1], [7, 3, 3, 3])
    assert found == {"value": 0.75, "low": 0.0, "high": 1.0}
    # Of forty values by themselves no draw is so far off.
    found = tool.interval([0, 1, 1, 1] * 10)
    assert found["value"] == 0.75
    assert 0.5 < found["low"] < 0.75 < found["high"] < 1
    assert tool.interval([2.0, 2.0]) == {"value": 2.0, "low": 2.0, "high": 2.0}


def test_words_are_offered_not_learned_and_of_two_images():
    learned = ["A dog runs."]
    offered = ["A zebra eats grass by an ox, 42 of them.", "the dog sleeps", "a walrus"]
    captions = ["a zebra", "Zebra and dog eat grass", "grass", "an ox, 42", "an ox, 42", "zebra"]
    image_of = [0, 0, 1, 2, 3, 4]
    found = tool.unseen_words(learned, offered, captions, image_of)
    # "dog" was learned, "walrus" is on no image, "ox" is short and "42" no word.
    assert found == {"grass": [0, 1], "zebra": [0, 4]}
    assert list(found) == ["grass", "zebra"]
    assert "zebra" not in tool.unseen_words(learned, offered, captions, image_of, least=3)
