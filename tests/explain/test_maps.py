"""Weights of regions over pixels, against a loop over the formula."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.errors import InputError
from crossgaze.explain.maps import EDGE, soft_map
from crossgaze.vision.grid import grid_boxes

corner = st.floats(0, 0.7, allow_subnormal=False)
side = st.floats(0.15, 0.9, allow_subnormal=False)
region = st.tuples(corner, corner, side, side, st.floats(0, 1, allow_subnormal=False))


def loop(boxes, weights, width, height, rule, edge):
    """The formula of the module, pixel by pixel and region by region."""

    def step(t):
        t = min(max(t, 0), 1)
        return t * t * (3 - 2 * t)

    def along(place, low, high):
        rise = 1 if low <= 1e-3 else step(0.5 + (place - low) / (edge * (high - low)))
        fall = 1 if high >= 1 - 1e-3 else step(0.5 + (high - place) / (edge * (high - low)))
        return rise * fall

    heat = np.zeros((height, width))
    for row in range(height):
        for column in range(width):
            x, y = (column + 0.5) / width, (row + 0.5) / height
            covers = [along(x, x1, x2) * along(y, y1, y2) for x1, y1, x2, y2 in boxes]
            if rule == "sum":
                heat[row, column] = sum(w * k for w, k in zip(weights, covers, strict=True))
                continue
            # By levels of weight: of what reaches a level, a pixel is full at most.
            levels = sorted({0.0, *map(float, weights)})
            for low, high in pairwise(levels):
                there = sum(k for w, k in zip(weights, covers, strict=True) if w >= high)
                heat[row, column] += (high - low) * min(1, there)
    return heat / heat.max() if heat.max() > 0 else heat


@given(st.lists(region, min_size=1, max_size=5), st.sampled_from(["strongest", "sum"]))
def test_it_is_the_formula(regions, rule):
    boxes = np.array([[x, y, min(x + w, 1), min(y + h, 1)] for x, y, w, h, _ in regions])
    weights = np.array([one[4] if one[4] > 0.05 else 0 for one in regions])
    found = soft_map(boxes, weights, 13, 9, rule=rule)
    np.testing.assert_allclose(found, loop(boxes, weights, 13, 9, rule, EDGE), atol=1e-6)


@given(st.integers(1, 7), st.integers(8, 60), st.integers(8, 60))
def test_a_grid_that_is_looked_at_alike_is_even_and_has_no_seams(cells, width, height):
    boxes = grid_boxes(cells, 1, 1)
    for rule in ("strongest", "sum"):
        flat = soft_map(boxes, np.full(len(boxes), 0.01), width, height, rule=rule)
        np.testing.assert_allclose(flat, 1, atol=1e-6)


def test_a_crowd_of_boxes_is_no_brighter_than_one_of_the_same_weight():
    crowd = np.array([[0, 0, 1, 1]] + [[0.3, 0.3, 0.7, 0.7]] * 20, np.float32)
    even = soft_map(crowd, np.full(21, 1 / 21), 30, 30)
    np.testing.assert_allclose(even, 1)
    added = soft_map(crowd, np.full(21, 1 / 21), 30, 30, rule="sum")
    assert added[15, 15] == 1
    assert added[0, 0] == pytest.approx(1 / 21)


def test_the_strongest_region_is_the_brightest_among_many_weak_ones():
    boxes = np.array([[0.0, 0, 0.3, 0.3]] + [[0.2, 0.2, 1, 1]] * 30, np.float32)
    weights = np.array([0.2] + [0.8 / 30] * 30)
    found = soft_map(boxes, weights, 40, 40)
    assert found[3, 3] == 1
    assert found[30, 30] == pytest.approx(0.8 / 30 / 0.2, abs=0.01)


def test_nothing_lights_outside_the_boxes_and_a_thin_one_is_not_lost():
    box = np.array([[0.25, 0.25, 0.75, 0.75]])
    found = soft_map(box, np.array([3.0]), 100, 100)
    assert found[50, 50] == 1
    spill = round(100 * (0.25 - EDGE * 0.5 / 2))
    assert found[: spill - 1].max() == 0
    assert 0 < found[25, 50] < 1
    thin = soft_map(np.array([[0.501, 0.2, 0.502, 0.8]]), np.array([1.0]), 10, 10)
    assert thin.max() == 1
    assert (thin.max(0) > 0).sum() <= 2


@pytest.mark.parametrize("below", [0, 1e-9, 1e-3, 0.2])
def test_an_edge_fades_whatever_little_weight_lies_below(below):
    boxes = np.array([[0, 0, 1, 1], [0.3, 0.3, 0.7, 0.7]])  # the whole image is a region, too
    light = soft_map(boxes, np.array([below, 1.0]), 2000, 11)[5]
    fade = 2000 * EDGE * 0.4  # pixels
    assert np.abs(np.diff(light)).max() <= 1.5 / fade  # the steepest of a smooth step
    outside = np.r_[light[:600], light[1400:]]  # up to the box's own edges
    assert outside.max() <= (1 + below) / 2
    assert light[600] == pytest.approx((1 + below) / 2, abs=1 / fade)
    far = np.r_[light[:560], light[1440:]]  # beyond half of where it fades
    np.testing.assert_allclose(far, below, atol=1e-12)
    assert (light[640:1360] == 1).all()


@given(st.lists(region, min_size=1, max_size=5), st.lists(region, min_size=1, max_size=5))
def test_regions_without_weight_change_nothing(regions, silent):
    boxes = np.array([[x, y, min(x + w, 1), min(y + h, 1)] for x, y, w, h, _ in regions + silent])
    weights = np.array([one[4] for one in regions] + [0.0] * len(silent))
    found, count = soft_map(boxes, weights, 13, 9), len(regions)
    np.testing.assert_array_equal(found, soft_map(boxes[:count], weights[:count], 13, 9))


@given(st.lists(region, min_size=1, max_size=5), st.floats(0, 1))
def test_more_weight_is_nowhere_darker(regions, more):
    boxes = [[x, y, min(x + w, 1), min(y + h, 1)] for x, y, w, h, _ in regions]
    boxes = np.array([[0, 0, 0.3, 0.3], *boxes])
    weights = np.array([2.0, *(one[4] for one in regions)])  # the first is what 1 is
    raised = weights.copy()
    raised[1] += more
    before, after = (soft_map(boxes, one, 13, 9) for one in (weights, raised))
    assert (after >= before - 1e-12).all()


def test_without_a_weight_it_is_dark_and_bad_input_is_refused():
    box = np.array([[0, 0, 1, 1]])
    assert soft_map(box, np.array([0.0]), 4, 4).max() == 0
    assert soft_map(np.empty((0, 4)), np.empty(0), 4, 4).shape == (4, 4)
    with pytest.raises(InputError, match=r"got shapes \(1, 4\) and \(2,\)"):
        soft_map(box, np.array([1.0, 1.0]), 4, 4)
    with pytest.raises(InputError, match="finite and not below 0"):
        soft_map(box, np.array([np.nan]), 4, 4)
