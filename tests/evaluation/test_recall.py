"""Recalls and ranks against counting one by one."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.evaluation.recall import (
    FIGURES,
    Retrieval,
    fold_rows,
    mean_figures,
    median_rank,
    ranks_of,
    retrieve,
)
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.scoring.sinks import TruthRanks


def beats(other, right):
    """Whether another answer stands before the right one: unless it is surely below."""
    return not other < right


def brute(scores, image_of):
    """Count the wrong answers before the right one, a query at a time."""
    texts, images = [], []
    for i, row in enumerate(scores):
        own = [row[j] for j, owner in enumerate(image_of) if owner == i]
        best = math.nan if any(math.isnan(s) for s in own) else max(own)
        texts.append(sum(beats(row[j], best) for j, owner in enumerate(image_of) if owner != i))
    for j, owner in enumerate(image_of):
        others = [i for i in range(len(scores)) if i != owner]
        images.append(sum(beats(scores[i][j], scores[owner][j]) for i in others))
    return texts, images


@st.composite
def cases(draw, values):
    images = draw(st.integers(1, 6))
    owners = draw(st.permutations([*range(images), *draw(st.lists(st.integers(0, images - 1)))]))
    row = st.lists(values, min_size=len(owners), max_size=len(owners))
    return draw(st.lists(row, min_size=images, max_size=images)), owners


FEW = st.integers(-2, 2).map(float)  # so that ties are common


@settings(max_examples=150)
@given(cases(FEW | st.just(math.nan)), st.booleans())
def test_ranks_are_those_counted_one_by_one(case, as_array):
    scores, owners = case
    table = np.array(scores) if as_array else torch.tensor(scores)
    found = ranks_of(table, torch.tensor(owners))
    texts, images = brute(scores, owners)
    assert found.text_ranks.tolist() == texts
    assert found.image_ranks.tolist() == images


@settings(max_examples=100)
@given(cases(FEW), st.integers(1, 4))
def test_the_streaming_sink_counts_the_same(case, size):
    scores, owners = torch.tensor(case[0]), torch.tensor(case[1])
    sink = TruthRanks(owners, scores[owners, torch.arange(len(owners))])
    for start in range(0, len(scores), size):
        sink.take(start, scores[start : start + size])
    found = ranks_of(sink, owners)
    assert (found.text_ranks.tolist(), found.image_ranks.tolist()) == brute(*case)


@settings(max_examples=60)
@given(cases(FEW), st.randoms(use_true_random=False))
def test_figures_do_not_depend_on_the_order_of_files(case, random):
    scores, owners = np.array(case[0]), np.array(case[1])
    rows, columns = list(range(len(scores))), list(range(len(owners)))
    random.shuffle(rows)
    random.shuffle(columns)
    place = np.argsort(rows)  # where each image went
    shuffled = ranks_of(scores[rows][:, columns], place[owners[columns]])
    assert shuffled.figures() == ranks_of(scores, owners).figures()


def test_a_sink_counts_a_nan_against_the_query():
    scores = torch.tensor([[0.5, 0.1, math.nan], [math.nan, 0.9, 0.2], [0.1, 0.1, 0.8]])
    sink = TruthRanks(torch.arange(3), torch.tensor([0.5, 0.9, 0.8]))
    sink.take(0, scores)
    assert sink.images.tolist() == [2, 2, 1]
    assert sink.texts.tolist() == [2, 1, 2]
    wrong = TruthRanks(torch.arange(3), torch.tensor([0.5, 0.9, 0.8]))
    wrong.take(0, torch.where(torch.eye(3).bool(), math.nan, scores))
    assert wrong.images.tolist() == [3, 3, 3]


@pytest.mark.parametrize("value", [0.0, 1.0, math.nan])
def test_a_constant_scorer_gets_nothing(value):
    owners = np.repeat(np.arange(20), 5)
    found = ranks_of(np.full((20, 100), value, np.float32), owners)
    assert found.figures()["rsum"] == 0
    assert set(found.text_ranks.tolist()) == {95}
    assert set(found.image_ranks.tolist()) == {19}


def test_figures_by_hand():
    # Best own sentences at ranks 1, 3 and 12; sentences' images at 1, 6, 2, 11.
    found = Retrieval(np.array([0, 2, 11]), np.array([0, 5, 1, 10]), np.array([0, 0, 1, 2]))
    figures = found.figures()
    assert tuple(figures) == FIGURES
    third, quarter = 100 / 3, 25
    wanted = {
        **{"i2t_r1": third, "i2t_r5": 2 * third, "i2t_r10": 2 * third, "i2t_median": 3},
        **{"t2i_r1": quarter, "t2i_r5": 2 * quarter, "t2i_r10": 3 * quarter, "t2i_median": 4},
        "rsum": 5 * third + 6 * quarter,
    }
    assert figures == pytest.approx(wanted)


@given(st.lists(st.integers(0, 50), min_size=1))
def test_the_median_is_the_lower_one_of_whole_ranks(ranks):
    ordered = sorted(rank + 1 for rank in ranks)
    below, above = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    assert median_rank(np.array(ranks)) == (below + above) // 2


def test_five_folds_are_parts_in_order_and_their_mean():
    assert fold_rows(5000, 5) == [(k * 1000, k * 1000 + 1000) for k in range(5)]
    folds = [
        Retrieval(np.array([rank]), np.array([rank]), np.array([0])) for rank in (0, 0, 3, 7, 20)
    ]
    figures = mean_figures(folds)
    assert figures["i2t_r1"] == pytest.approx(40)
    assert figures["t2i_r10"] == pytest.approx(80)
    assert figures["i2t_median"] == pytest.approx((1 + 1 + 4 + 8 + 21) / 5)
    assert figures["rsum"] == pytest.approx(2 * (40 + 60 + 80))


@pytest.mark.parametrize(("images", "folds"), [(1000, 3), (4, 0), (0, 1), (3, 5)])
def test_unequal_folds_are_refused(images, folds):
    with pytest.raises(InputError, match="folds: got"):
        fold_rows(images, folds)


def test_no_folds_have_no_mean():
    with pytest.raises(InputError, match="folds: got none"):
        mean_figures([])


@pytest.mark.parametrize(
    ("shape", "owners", "says"),
    [
        ((2, 3), [0, 1], "wanted a whole number for each of 3 sentences"),
        ((2, 2), [0.0, 1.0], "got float64"),
        ((2, 2), [0, 2], "goes from 0 to 2, there are 2 images"),
        ((2, 2), [0, -1], "goes from -1"),
        ((2, 2), [1, 1], "image 0 has no sentence"),
        ((2, 0), [], "at least one"),
        ((2,), [0, 1], "scores: got shape"),
    ],
)
def test_owners_that_do_not_fit_are_refused(shape, owners, says):
    with pytest.raises(InputError, match=says):
        ranks_of(np.zeros(shape), np.array(owners))


def test_retrieve_scores_a_model_and_an_ensemble():
    torch.manual_seed(0)
    words = Vocabulary.build(["a dog runs on the snow"], min_count=1)
    one = Scan(ScanConfig(region_width=5, size=8), words).eval()
    two = Vse(VseConfig(region_width=5, size=8), words).eval()
    texts, owners = ["a dog", "the snow", "runs", "a snow dog"], [0, 2, 1, 2]
    regions = torch.rand(3, 4, 5)
    both = Ensemble([one, two])
    for model in (one, two, both):
        images, said = model.encode_images(regions), model.encode_texts(texts)
        found = retrieve(model, images, said, torch.tensor(owners))
        wanted = brute(model.similarity(images, said).tolist(), owners)
        assert (found.text_ranks.tolist(), found.image_ranks.tolist()) == wanted
