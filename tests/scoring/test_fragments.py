"""The kernel over inner products of fragments: Sum-Max against loops, slices, both directions."""

import pytest
import torch

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.scoring.fragments import BestFragments, FragmentKernel
from model_parts import draw
from scoring_parts import DIRECTIONS, SHAPES, bfan, cut, gap, loops, scan, score, sides, sum_max


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_sum_max_equals_the_loops(direction, shape):
    model = sum_max(direction=direction)
    encoded = sides(*shape)  # NaN in the padding
    wanted = loops(model, *encoded)
    assert gap(score(model, *encoded), wanted) < 1e-12
    with cut(regions=5, words=4, block=2, piece=7, small=0):
        assert gap(score(model, *encoded, workers=2), wanted) < 1e-12
    single = [Encoded(None, x.fragments.float(), x.counts) for x in encoded]
    found = score(model.float(), *single, out=torch.float32)
    assert gap(found, loops(model, *single)) < 1e-5


def test_the_directions_of_sum_max_differ():
    one, other = (score(sum_max(direction=way), *sides()) for way in DIRECTIONS)
    assert gap(one, other) > 1e-2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_sum_max_of_zero_vectors_is_zero(direction, dtype):
    images, texts = sides([3, 1], [2, 4], dtype=dtype)
    images = Encoded(None, torch.zeros_like(images.fragments), images.counts)
    assert not score(sum_max(direction=direction).to(dtype), images, texts, out=dtype).any()


def test_both_directions_are_summed():
    kernel = FragmentKernel(dict.fromkeys(DIRECTIONS, BestFragments()))
    v, e = draw(3, 4, 5), draw(2, 6, 5, seed=1)
    counts = torch.full((3,), 4), torch.full((2,), 6)
    found = kernel.score(
        kernel.images(Encoded(None, v, counts[0])), kernel.texts(Encoded(None, e, counts[1]))
    )
    for i in range(3):
        for t in range(2):
            s = v[i] @ e[t].T
            wanted = s.max(0).values.sum() + s.max(1).values.sum()
            assert float(found[i, t]) == pytest.approx(float(wanted), abs=1e-12)


@pytest.mark.parametrize(("images", "k", "n", "texts"), [(1, 1, 1, 1), (1, 3, 1, 1), (2, 1, 4, 1)])
def test_a_reduction_that_overwrites_spoils_nothing(images, k, n, texts):
    """Where sizes are 1 the turned scores could be the same memory."""

    def spoil(scores, *_):
        found = scores.sum((1, 2))
        scores.fill_(torch.nan)
        return found

    kernel = FragmentKernel(dict.fromkeys(DIRECTIONS, spoil))
    v, e = draw(images, k, 5), draw(texts, n, 5, seed=1)
    found = kernel.score(
        kernel.images(Encoded(None, v, torch.full((images,), k))),
        kernel.texts(Encoded(None, e, torch.full((texts,), n))),
    )
    wanted = 2 * v.sum(1) @ e.sum(1).T
    torch.testing.assert_close(found, wanted, atol=1e-12, rtol=0)


@pytest.mark.parametrize("make", [scan, bfan, sum_max])
def test_what_was_encoded_is_not_overwritten(make):
    encoded = sides(padding=0.0)
    before = [x.fragments.clone() for x in encoded]
    first = score(make(), *encoded)
    assert torch.equal(first, score(make(), *encoded))
    assert all(torch.equal(x.fragments, y) for x, y in zip(encoded, before, strict=True))


@pytest.mark.parametrize("piece", [1, 2, 19, 20, 21, 1000])
@pytest.mark.parametrize("make", [scan, bfan, sum_max])
def test_the_size_of_a_slice_changes_nothing(make, piece):
    encoded = sides([4, 4, 4, 2], [5, 5, 3])
    wanted = loops(make(), *encoded)
    with cut(piece=piece):
        assert gap(score(make(), *encoded), wanted) < 1e-12


def test_half_precision_is_reduced_in_single():
    encoded = [
        Encoded(None, x.fragments.bfloat16(), x.counts) for x in sides([3, 2], [4, 1], padding=0.0)
    ]
    model = scan()
    kernel = model.kernel()
    tile = Encoded(None, encoded[0].fragments[:1, :3], encoded[0].counts[:1])
    prepared = kernel.images(tile)
    assert prepared.gram.dtype == torch.float32
    found = score(model, *encoded, out=torch.float32)
    assert gap(found, loops(model, *encoded)) < 0.05


@pytest.mark.parametrize("make", [scan, bfan, sum_max])
def test_a_side_of_another_model_is_refused(make):
    images, texts = sides()
    bare = Encoded(texts.vectors, None, texts.counts)
    with pytest.raises(InputError, match="got a side without fragments, wanted this model's own"):
        score(make(), images, bare)
    with pytest.raises(InputError, match="got a side without fragments, wanted this model's own"):
        score(make(), Encoded(images.vectors, None, images.counts), texts)
