"""Pruning finds what scoring everything finds, and its bounds hold."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.scoring.pruning import PrunedSearch, hull_margin
from scoring_parts import SIZE, bfan, mmca, scan, side, sum_max

FRAGMENT_MODELS = {
    "scan AVG": scan,
    "scan i-t LSE": lambda: scan(direction="i-t", pooling="LSE"),
    "scan SUM": lambda: scan(pooling="SUM"),
    "scan i-t MAX": lambda: scan(direction="i-t", pooling="MAX"),
    "bfan": bfan,
    "sum-max": sum_max,
    "sum-max i-t": lambda: sum_max(direction="i-t"),
}


def clustered(count, regions, seed):
    """Return images whose regions lie around a direction of their own, far from zero together."""
    generator = torch.Generator().manual_seed(seed)
    topic = torch.randn(count, 1, SIZE, generator=generator, dtype=torch.float64)
    x = topic + 0.3 * torch.randn(count, regions, SIZE, generator=generator, dtype=torch.float64)
    return Encoded(None, torch.nn.functional.normalize(x, dim=-1), torch.full((count,), regions))


@settings(max_examples=25)
@given(
    st.sampled_from(sorted(FRAGMENT_MODELS)),
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 12),
    st.integers(1, SIZE),
    st.integers(1, 9),
    st.booleans(),
    st.integers(0, 99),
)
def test_the_best_are_those_of_all_scores(
    name, count, regions, words, k, directions, block, close, seed
):
    model = FRAGMENT_MODELS[name]()
    images = (
        clustered(count, regions, seed) if close else side([regions] * count, seed=seed, more=0)
    )
    text = side([words], seed=seed + 1)
    scores = model.similarity(images, text)[:, 0]
    order = scores.sort(descending=True, stable=True)
    search = PrunedSearch(model, images, directions)
    assert (search.bounds(text) >= scores).all()
    found = search(text, k, block)
    assert found.rows.tolist() == order.indices[:k].tolist()
    torch.testing.assert_close(found.scores, order.values[:k], rtol=0, atol=1e-12)
    assert min(k, count) <= found.scored <= count


def test_far_images_are_never_scored():
    images = clustered(200, 4, seed=3)
    words = images.fragments[17:18, :2]
    text = Encoded(None, words, torch.tensor([2]))
    found = PrunedSearch(sum_max(), images, directions=SIZE)(text, k=1, block=4)
    assert found.rows.tolist() == [17]
    assert found.scored <= 20


def test_images_that_score_the_same_are_all_looked_at():
    one = clustered(1, 3, seed=0).fragments
    images = Encoded(None, one.repeat(9, 1, 1), torch.full((9,), 3))
    found = PrunedSearch(scan(), images, 2)(side([3], seed=5), k=4, block=2)
    assert found.scored == 9
    assert len(set(found.rows.tolist())) == 4
    assert (found.scores.max() - found.scores.min()).item() < 1e-12


@settings(max_examples=40)
@given(st.integers(1, 6), st.integers(0, 999))
def test_no_convex_combination_is_shorter_than_the_margin(regions, seed):
    x = clustered(5, regions, seed).fragments
    margin = hull_margin(x)
    generator = torch.Generator().manual_seed(seed)
    alpha = torch.rand(200, 5, regions, generator=generator, dtype=torch.float64) ** 4
    alpha /= alpha.sum(2, keepdim=True)
    lengths = torch.einsum("snk,nkd->snd", alpha, x).norm(dim=2)
    assert (lengths >= margin).all()


def test_margins_by_hand():
    unit = torch.eye(3)[None]  # the nearest point of their triangle is (1, 1, 1) / 3
    assert hull_margin(unit).item() == pytest.approx(3**-0.5, rel=1e-3)
    line = torch.tensor([[[2.0, 1.0], [2.0, -1.0], [3.0, 0.0]]])
    assert hull_margin(line).item() == pytest.approx(2, rel=1e-3)
    around = torch.tensor([[[1.0, 0.0], [-1.0, 0.1], [0.0, -1.0]]])  # zero lies among them
    assert hull_margin(around).item() == 0
    assert hull_margin(torch.zeros(1, 2, 3)).item() == 0


def test_what_cannot_be_pruned_is_refused():
    images = side([3, 3], more=0)
    with pytest.raises(InputError, match="SCAN, BFAN, Sum-Max"):
        PrunedSearch(mmca(), images)
    with pytest.raises(InputError, match="each with all its regions"):
        PrunedSearch(scan(), side([3, 2], padding=0.0))
    search = PrunedSearch(scan(), images)
    with pytest.raises(InputError, match="text: got 2 sentences, wanted one"):
        search(side([1, 1]), 1)
    with pytest.raises(InputError, match="k: got 0, wanted 1 or more"):
        search(side([1]), 0)


@pytest.mark.parametrize("near", [0.3, 1e-2, 1e-3, 1e-4])
def test_bounds_hold_in_single_precision_where_attended_vectors_are_short(near):
    """Regions nearly opposite to each other: a hull that comes close to zero."""
    generator = torch.Generator().manual_seed(1)
    a, w = torch.randn(2, 300, 1, SIZE, generator=generator, dtype=torch.float64)
    x = torch.cat([near * a + w, near * a - w, near * a + 0.9 * w], dim=1)
    x = torch.nn.functional.normalize(x, dim=-1)
    images = Encoded(None, x.float(), torch.full((300,), 3))
    text = side([4], seed=9, dtype=torch.float32, more=0)
    for make in (scan, bfan):
        model = make().float()
        bounds = PrunedSearch(model, images, SIZE).bounds(text)
        assert (bounds >= model.similarity(images, text)[:, 0]).all()
        exact = make().similarity(
            Encoded(None, x, images.counts), Encoded(None, text.fragments.double(), text.counts)
        )
        assert (bounds >= exact[:, 0]).all()
