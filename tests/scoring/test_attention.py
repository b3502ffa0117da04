"""SCAN's and BFAN's attention over all pairs, against loops that build attended vectors."""

import itertools

import pytest
import torch

from crossgaze.models.encoded import Encoded
from crossgaze.scoring.attention import STEEPEST
from model_parts import draw
from scoring_parts import (
    DIRECTIONS,
    NORMS,
    POOLINGS,
    SHAPES,
    SIZE,
    bfan,
    cut,
    gap,
    loops,
    scan,
    score,
    side,
    sides,
)

FOCALS = ("equal", "prob")
EXTREMES = ("LSE", "MAX")  # poolings in which one fragment that goes wrong shows
TINY = {"regions": 5, "words": 4, "block": 2, "piece": 7, "small": 0}


def scans(lambda1=9.0, poolings=POOLINGS):
    return [
        scan(feature_norm=norm, pooling=pooling, direction=direction, lambda1=lambda1)
        for norm, pooling, direction in itertools.product(NORMS, poolings, DIRECTIONS)
    ]


def long(encoded, scale):
    """Fragments of other lengths than 1, each of its own."""
    stretch = 0.3 + torch.rand(encoded.fragments.shape[:2], dtype=torch.float64) * scale
    return Encoded(None, encoded.fragments * stretch[..., None], encoded.counts)


def in_float32(model, encoded):
    single = [Encoded(x.vectors.float(), x.fragments.float(), x.counts) for x in encoded]
    found = score(model.float(), *single, out=torch.float32)
    model.double()
    return found, single


# Against the loops ----------------------------------------------------------------------------


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("norm", NORMS)
def test_scan_equals_the_loops(norm, pooling, direction):
    model = scan(feature_norm=norm, pooling=pooling, direction=direction)
    for shape in SHAPES:
        encoded = sides(*shape)  # NaN in the padding
        wanted = loops(model, *encoded)
        assert gap(score(model, *encoded), wanted) < 1e-12
        with cut(**TINY):
            assert gap(score(model, *encoded, workers=2), wanted) < 1e-12
        found, single = in_float32(model, encoded)
        assert gap(found, loops(model, *single)) < 1e-5


@pytest.mark.parametrize("focal", FOCALS)
@pytest.mark.parametrize("shape", SHAPES)
def test_bfan_equals_the_loops(focal, shape):
    model = bfan(focal=focal)
    encoded = sides(*shape)
    wanted = loops(model, *encoded)
    assert gap(score(model, *encoded), wanted) < 1e-12
    with cut(**TINY):
        assert gap(score(model, *encoded, workers=2), wanted) < 1e-12
    found, single = in_float32(model, encoded)
    assert gap(found, loops(model, *single)) < 1e-5


def test_fragments_need_not_have_length_one():
    torch.manual_seed(0)
    encoded = [long(x, 3.0) for x in sides()]
    for model in [*scans(4.0), *(bfan(focal=focal) for focal in FOCALS)]:
        assert gap(score(model, *encoded), loops(model, *encoded)) < 1e-12


@pytest.mark.parametrize("lambda1", [STEEPEST, STEEPEST * 1.01, 200.0])
def test_steep_attention_equals_the_loops(lambda1):
    models = [*scans(lambda1), *(bfan(focal=focal, lambda1=lambda1) for focal in FOCALS)]
    for model in models:
        encoded = sides([3, 1, 4], [2, 5, 1, 5])
        wanted = loops(model, *encoded)
        assert gap(score(model, *encoded), wanted) < 1e-11
        # What BFAN drops for a fragment alone is decided by rounding, so steeply in float32.
        found, single = in_float32(model, sides([3, 2, 4], [2, 5, 3, 5]))
        assert gap(found, loops(model, *single)) < 1e-5 * max(1.0, lambda1 / STEEPEST)


@pytest.mark.parametrize("lambda1", [1e3, 1e5])
def test_the_steepest_attention_does_not_overflow(lambda1):
    encoded = sides(dtype=torch.float32, padding=0.0)
    for model in [*scans(lambda1), bfan(lambda1=lambda1)]:
        found = score(model.float(), *encoded, out=torch.float32)
        assert found.isfinite().all()


@pytest.mark.parametrize("lambda1", [0.5, STEEPEST])
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_short_and_long_fragments_in_single_precision(scale, lambda1):
    """Powers of e times lengths stay within float32 and away from the guard against zero."""
    encoded = [
        Encoded(None, (x.fragments * scale).float(), x.counts) for x in sides([3, 2], [4, 1, 2])
    ]
    bounded = [
        m for m in scans(lambda1, EXTREMES) if m.config.feature_norm not in ("clipped", "no_norm")
    ]
    for model in [*bounded, *(bfan(focal=focal, lambda1=lambda1) for focal in FOCALS)]:
        wanted = loops(model, *encoded)
        assert gap(score(model.float(), *encoded, out=torch.float32), wanted) < 2e-5


def test_every_option_is_heard():
    """No two of the 64 forms of SCAN agree, nor two sharpnesses, nor BFAN's two choices."""
    encoded = sides()
    models = [*scans(), scan(lambda1=3.0), scan(pooling="LSE", lambda2=1.0)]
    models += [bfan(focal=focal) for focal in FOCALS]
    for one, other in itertools.combinations([score(model, *encoded) for model in models], 2):
        assert gap(one, other) > 1e-4


# Zero vectors, uniform attention, cancellation ------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("lambda1", [9.0, 100.0])
def test_zero_vectors_give_the_loops_numbers(dtype, lambda1):
    some = sides([3, 2], [2, 1, 4], dtype=dtype)
    none = [Encoded(x.vectors, torch.zeros_like(x.fragments), x.counts) for x in some]
    half = [Encoded(x.vectors, x.fragments.clone(), x.counts) for x in some]
    for x in half:
        x.fragments[:, 0] = 0.0
    cases = [(none[0], some[1]), (some[0], none[1]), tuple(none), tuple(half)]
    models = [*scans(lambda1, EXTREMES), *(bfan(focal=focal, lambda1=lambda1) for focal in FOCALS)]
    for model, encoded in itertools.product(models, cases):
        wanted = loops(model, *encoded)
        found = score(model.to(dtype), *encoded, out=dtype)
        assert gap(found, wanted) < (1e-5 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_fragments_are_attended_to_alike(dtype):
    """All regions of an image the same, then all words of a sentence too: cosines, nothing else."""
    images, texts = sides([4, 3], [5, 1, 2], dtype=dtype, padding=0.0)
    same = [
        Encoded(None, x.fragments[:, :1].expand_as(x.fragments).clone(), x.counts)
        for x in (images, texts)
    ]
    models = [*scans(poolings=EXTREMES), *(bfan(focal=focal) for focal in FOCALS)]
    near = 2e-6 if dtype == torch.float32 else 1e-12
    for model in models:
        for encoded in ((same[0], texts), (images, same[1]), tuple(same)):
            wanted = loops(model, *encoded)
            assert gap(score(model.to(dtype), *encoded, out=dtype), wanted) < near
    alone = same[0].fragments[:, 0] @ same[1].fragments[:, 0].T
    average = score(scan().to(dtype), *same, out=dtype)
    assert gap(average, alone) < near
    assert gap(score(bfan().to(dtype), *same, out=dtype), 2 * alone) < 2 * near


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_fragments_that_cancel_stay_finite(direction):
    """Three that sum to zero, attended to alike: the square of nothing may come out below zero."""
    two = draw(200, 2, SIZE)
    three = torch.cat([two, -two.sum(1, keepdim=True)], dim=1).float()
    counts = torch.full((200,), 3)
    for model in (scan(direction=direction, lambda1=1e-9), bfan(lambda1=1e-9)):
        encoded = Encoded(None, three, counts), Encoded(None, three.flip(0), counts)
        found = score(model.float(), *encoded, out=torch.float32)
        assert found.isfinite().all()
        assert found.abs().max() <= 2


def test_relevances_are_cosines_and_never_past_one():
    images = side([1] * 100 + [3] * 20, dtype=torch.float32, padding=0.0)
    found = score(scan(pooling="MAX").float(), images, images, out=torch.float32)
    assert found.max() <= 1
    assert found.min() >= -1
    assert found[:100].diagonal().min() > 1 - 1e-6
