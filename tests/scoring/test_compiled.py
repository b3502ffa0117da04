"""The compiled pass of cross attention, against loops that build attended vectors."""

import importlib
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.models.encoded import Encoded
from crossgaze.scoring import compiled
from crossgaze.scoring.attention import Attend
from crossgaze.scoring.fragments import Fragments
from scoring_parts import bfan, cut, gap, relevances, scan, score, sides

pytest.importorskip("numba", reason="numba is not installed (extra `fast`)")


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Take tiles of any size, and count how often."""
    monkeypatch.setattr(compiled, "WORTH", 1)
    monkeypatch.setattr(compiled, "NARROWEST", 1)
    monkeypatch.delenv("CROSSGAZE_COMPILED", raising=False)
    run, calls = compiled.relevances, []

    def counted(*args, **options):
        calls.append(options)
        return run(*args, **options)

    monkeypatch.setattr(compiled, "relevances", counted)
    return calls


def tile(shape, size=6, seed=0):
    """Context (C, c, D) and query (q, I, D) of one tile."""
    items, c, q, others = shape
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(items, c, size, generator=draw), torch.randn(q, others, size, generator=draw)


def attend(how, context, query):
    items, c, _ = context.shape
    q, others, _ = query.shape
    left = Fragments(context.flatten(0, 1), items, c, True)
    right = Fragments(query.flatten(0, 1), others, q, False)
    scores = (left.rows @ right.rows.T).view(items, c, q, others)
    return how.relevances(scores, left, right)


def loops(how, context, query):
    """The same, pair by pair, in double precision."""
    out = torch.empty(len(context), *query.shape[:2], dtype=torch.float64)
    for i, v in enumerate(context.double().numpy()):
        for j in range(query.shape[1]):
            found = relevances(v, query[:, j].double().numpy(), how.norm, how.sharpness, how.focal)
            out[i, :, j] = torch.as_tensor(found, dtype=torch.float64)
    return out


@pytest.mark.parametrize("focal", [None, "equal", "prob"])
@pytest.mark.parametrize("norm", ["clipped_l2norm", "l2norm"])
@pytest.mark.parametrize("sharpness", [4.0, 9.0, 20.0])
def test_it_equals_the_loops(norm, focal, sharpness, always):
    how = Attend(norm=norm, focal=focal, sharpness=sharpness)
    for shape in ((2, 5, 3, 4), (1, 36, 12, 33), (3, 9, 7, 32), (2, 1, 2, 65)):
        context, query = tile(shape)
        found = attend(how, context, query)
        assert found.dtype == torch.float32
        assert (found - loops(how, context, query)).abs().max() < 2e-6
    assert len(always) == 4


@settings(max_examples=40, deadline=None)
@given(
    shape=st.tuples(*(st.integers(1, high) for high in (3, 12, 8, 70))),
    seed=st.integers(0, 1000),
)
def test_it_equals_torch_for_any_shape(shape, seed):
    context, query = tile(shape, seed=seed)
    how = Attend()
    found = attend(how, context, query)
    wanted = attend(how, context.double(), query.double())  # double precision goes through torch
    assert (found - wanted).abs().max() < 3e-6


def test_scores_are_left_as_they_are():
    context, query = tile((2, 5, 3, 20))
    scores = torch.randn(2, 5, 3, 20)
    before = scores.clone()
    left = Fragments(context.flatten(0, 1), 2, 5, True)
    right = Fragments(query.flatten(0, 1), 20, 3, False)
    Attend().relevances(scores, left, right)
    assert torch.equal(scores, before)


@pytest.mark.parametrize("model", [scan(), scan(direction="i-t", pooling="LSE"), bfan()])
def test_models_use_it(model, always):
    draw = torch.Generator().manual_seed(3)
    sides = [
        Encoded(None, torch.randn(n, k, model.config.size, generator=draw), torch.full((n,), k))
        for n, k in ((5, 6), (20, 4))
    ]
    model = model.float()
    with torch.no_grad():
        found = model.similarity(*sides)
        assert always
        model.double()
        double = [Encoded(None, side.fragments.double(), side.counts) for side in sides]
        wanted = model.similarity(*double)
    assert (found - wanted).abs().max() < 3e-6


@pytest.mark.parametrize("direction", ["t-i", "i-t"])
def test_tiles_blocks_and_threads_do_not_matter(direction, always):
    model = scan(direction=direction).float()
    images, texts = sides(dtype=torch.float32)
    whole = score(model, images, texts, out=torch.float32)
    for regions, words, block, workers in ((4, 5, 2, 1), (8, 3, 1, 2), (100, 4, 3, 3)):
        with cut(regions=regions, words=words, block=block, small=0):
            found = score(model, images, texts, out=torch.float32, workers=workers)
        assert gap(found, whole) < 1e-6
    assert len(always) > 10


def test_not_a_number_stays_one():
    context, query = tile((2, 5, 3, 20))
    context[1, 2, 0] = torch.nan
    found = attend(Attend(), context, query)
    assert found[1].isnan().all()
    assert found[0].isfinite().all()


def test_fragments_of_zeros_have_a_cosine_of_zero():
    context, query = tile((2, 5, 3, 20))
    context[0], query[1] = 0, 0
    found = attend(Attend(), context, query)
    assert (found[0] == 0).all()
    assert (found[:, 1] == 0).all()


def test_small_tiles_and_other_types_and_norms_go_through_torch(monkeypatch, always):
    context, query = tile((2, 5, 3, 20))
    attend(Attend(norm="softmax"), context, query)
    attend(Attend(sharpness=31.0), context, query)
    attend(Attend(), context.double(), query.double())
    monkeypatch.setattr(compiled, "WORTH", 10**6)
    attend(Attend(), context, query)
    assert not always


def test_it_can_be_turned_off(monkeypatch, always):
    monkeypatch.setenv("CROSSGAZE_COMPILED", "0")
    attend(Attend(), *tile((2, 5, 3, 20)))
    assert not always


def test_without_numba_torch_does_it(monkeypatch, always):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "crossgaze.scoring.one_pass", raising=False)
    compiled._one_pass.cache_clear()
    try:
        context, query = tile((2, 5, 3, 20))
        found = attend(Attend(), context, query)
        assert not always
        assert (found - loops(Attend(), context, query)).abs().max() < 2e-6
    finally:
        monkeypatch.undo()
        compiled._one_pass.cache_clear()
        importlib.import_module("crossgaze.scoring.one_pass")
