"""Attention precision, recall and F1: an example worked out by hand, and plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.errors import InputError
from crossgaze.evaluation.attention_quality import (
    MEASURES,
    AttentionConfig,
    AttentionQuality,
    phrase_quality,
    word_quality,
)
from crossgaze.evaluation.bootstrap import BootstrapConfig

# Four regions of a 100 x 100 image, and a phrase whose box is the left half.
REGIONS = np.array(
    [
        [0, 0, 50, 100],  # the box itself: IoU 1
        [0, 0, 50, 60],  # IoU 0.6
        [0, 0, 100, 100],  # IoU exactly 0.5, which is not larger than 0.5
        [50, 0, 100, 100],  # IoU 0
    ],
    np.float64,
)
BOX = np.array([[0, 0, 50, 100]], np.float64)


def test_an_example_by_hand():
    """R = {0, 1}; T_Att = 1/4.

    "red" attends to {0, 3}: AP 1/2, AR 1/2, F1 1/2.
    "dog" attends to {0, 1, 2}: AP 2/3, AR 1, F1 4/5.
    "the" attends to nothing above 1/4: all 0.
    "ball" attends to {1}: AP 1, AR 1/2, F1 2/3.
    The phrase takes the largest of each: AP 1, AR 1, F1 4/5.
    """
    weights = np.array(
        [[0.4, 0.2, 0.1, 0.3], [0.3, 0.3, 0.3, 0.1], [0.25] * 4, [0.2, 0.6, 0.1, 0.1]]
    )
    found = phrase_quality(weights, REGIONS, BOX, 0.25, AttentionConfig())
    assert found["precision"] == pytest.approx(1)
    assert found["recall"] == pytest.approx(1)
    assert found["f1"] == pytest.approx(4 / 5)
    assert (found["precision_all"], found["recall_all"]) == (found["precision"], found["recall"])
    assert found["covered"] == 1
    # All four: AP 1/2, AR 1, F1 2/3.
    assert found["f1_everything"] == pytest.approx(2 / 3)
    # Centres: (25, 50) in, (25, 30) in, (50, 50) on the edge, in, (75, 50) out.
    assert found["pointing_chance"] == pytest.approx(3 / 4)
    # The mean looks most at region 1 (0.3375 against 0.2875): a hit, and so is any word's.
    assert found["pointing"] == 1
    assert found["pointing_any_word"] == 1
    (precision, recall, f1) = word_quality(weights > 0.25, np.array([True, True, False, False]))
    assert precision == pytest.approx([1 / 2, 2 / 3, 0, 1])
    assert recall == pytest.approx([1 / 2, 1, 0, 1 / 2])
    assert f1 == pytest.approx([1 / 2, 4 / 5, 0, 2 / 3])


def test_bfan_counts_every_weight_above_zero():
    weights = np.array([[0.9, 0.0, 0.05, 0.05]])
    found = phrase_quality(weights, REGIONS, BOX, 0.0, AttentionConfig())
    assert found["precision"] == pytest.approx(1 / 3)
    assert found["recall"] == pytest.approx(1 / 2)
    assert found["f1"] == pytest.approx(2 / 5)


def test_the_papers_thresholds():
    assert AttentionConfig().limit(36, drops=False) == 1 / 36
    assert AttentionConfig().limit(20, drops=False) == 1 / 20
    assert AttentionConfig().limit(36, drops=True) == 0
    assert AttentionConfig(threshold=0.1).limit(36, drops=True) == 0.1


def test_a_phrase_that_no_region_fits_has_no_value_and_counts_as_0_in_all():
    small = np.array([[0, 0, 10, 10]])
    found = phrase_quality(
        np.array([[0.7, 0.1, 0.1, 0.1]]), REGIONS, small, 0.25, AttentionConfig()
    )
    assert np.isnan([found[name] for name in ("precision", "recall", "f1", "f1_everything")]).all()
    assert [found[f"{name}_all"] for name in ("precision", "recall", "f1")] == [0, 0, 0]
    assert (found["covered"], found["pointing"]) == (0, 0)


def test_several_boxes_are_any_or_their_union():
    halves = np.array([[0, 0, 50, 100], [50, 0, 100, 100]])
    weights = np.array([[0.1, 0.1, 0.7, 0.1]])  # looks at the whole image
    any_box = phrase_quality(weights, REGIONS, halves, 0.25, AttentionConfig())
    union = phrase_quality(weights, REGIONS, halves, 0.25, AttentionConfig(several="union"))
    assert any_box["precision"] == 0  # the halves are regions 0, 1 and 3
    assert union["precision"] == 1
    assert union["recall"] == pytest.approx(1)  # 0.5 and 0.3 of the union: none but region 2


def test_pointing_takes_the_mean_of_the_words_and_ties_count_against():
    weights = np.array([[0.0, 0.0, 0.1, 0.9], [0.6, 0.2, 0.1, 0.1]])
    found = phrase_quality(weights, REGIONS, BOX, 0.25, AttentionConfig())
    assert found["pointing"] == 0  # region 3: 0.5 against 0.3
    assert found["pointing_any_word"] == 1
    uniform = phrase_quality(np.full((2, 4), 0.25), REGIONS, BOX, 0.25, AttentionConfig())
    assert (uniform["pointing"], uniform["pointing_any_word"]) == (0, 0)


@pytest.mark.parametrize("count", [4, 10, 20, 24, 36, 37])
def test_uniform_attention_attends_to_nothing_however_it_is_rounded(count):
    regions = np.tile([0.0, 0, 10, 10], (count, 1))
    weights = np.full((1, count), 1 / count, np.float32)
    found = phrase_quality(weights, regions, [[0, 0, 10, 10]], 1 / count, AttentionConfig())
    assert (found["precision"], found["recall"]) == (0, 0)


def loops(weights, regions, boxes, threshold):
    """The words of section 3.4, one by one."""

    def overlap(a, b):
        wide = max(0, min(a[2], b[2]) - max(a[0], b[0]))
        high = max(0, min(a[3], b[3]) - max(a[1], b[1]))
        both = wide * high
        return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)

    right = {i for i, r in enumerate(regions) if any(overlap(r, b) > 0.5 for b in boxes)}
    best = [0.0, 0.0, 0.0]
    for row in weights:
        attended = {i for i, weight in enumerate(row) if weight > threshold}
        both = len(attended & right)
        precision = both / len(attended) if attended else 0.0
        recall = both / len(right) if right else 0.0
        f1 = 2 * precision * recall / (precision + recall) if both else 0.0
        best = [max(old, new) for old, new in zip(best, (precision, recall, f1), strict=True)]
    return best, bool(right)


boxes_of = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 6), st.integers(1, 6)).map(
        lambda b: [b[0], b[1], b[0] + b[2], b[1] + b[3]]
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=150)
@given(boxes_of, boxes_of, st.data(), st.sampled_from([0.0, None, 0.3]))
def test_measures_are_those_of_plain_loops(regions, boxes, data, threshold):
    row = st.lists(st.integers(0, 4), min_size=len(regions), max_size=len(regions))
    weights = np.array(data.draw(st.lists(row, min_size=1, max_size=4))) / 8
    limit = 1 / len(regions) if threshold is None else threshold
    found = phrase_quality(weights, np.array(regions), np.array(boxes), limit, AttentionConfig())
    best, covered = loops(weights.tolist(), regions, boxes, limit)
    assert tuple(found) == MEASURES
    assert [found[f"{n}_all"] for n in ("precision", "recall", "f1")] == pytest.approx(best)
    assert found["covered"] == covered
    if covered:
        assert [found[n] for n in ("precision", "recall", "f1")] == pytest.approx(best)


def test_the_printed_f1_cannot_have_made_the_papers_table():
    """AP AR / (AP + AR) <= AP / (AP + 1), which is concave: its mean is at most that at mean AP."""
    for precision, f1 in ((0.201, 0.305), (0.238, 0.352), (0.315, 0.419), (0.372, 0.466)):
        assert precision / (precision + 1) < f1
        assert 2 * precision / (precision + 1) > f1  # with the factor 2 it can


def test_phrases_are_averaged_and_images_drawn():
    values = {name: np.array([1.0, np.nan, 0.5, 0.0]) for name in MEASURES}
    quality = AttentionQuality(values, np.array([0, 0, 1, 2]), 4)
    assert quality.figures()["f1"] == pytest.approx(0.5)
    made = quality.estimates(BootstrapConfig(resamples=200))["f1"]
    assert made.value == pytest.approx(0.5)
    assert 0 <= made.low < 0.5 < made.high <= 1
    empty = AttentionQuality({"f1": np.array([np.nan])}, np.array([0]), 1)
    assert empty.figures() == {"f1": 0}
    assert len(quality) == 4


@pytest.mark.parametrize(
    "wrong", [{"overlap": 1.0}, {"overlap": -0.1}, {"threshold": 1.0}, {"several": "both"}]
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))}: got"):
        AttentionConfig(**wrong)
