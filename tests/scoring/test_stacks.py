"""MMCA's cross attention over all pairs, against loops and pair by pair."""

import pytest
import torch

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from scoring_parts import SHAPES, cut, gap, loops, mmca, score, sides

MODULES = ("both", "self")


@pytest.mark.parametrize("modules", MODULES)
@pytest.mark.parametrize("shape", SHAPES)
def test_mmca_equals_the_loops(modules, shape):
    model = mmca(modules=modules)
    encoded = sides(*shape)  # NaN in the padding
    wanted = loops(model, *encoded)
    assert gap(score(model, *encoded), wanted) < 1e-12
    with cut(regions=5, words=4, block=2, small=0, stack=20):
        assert gap(score(model, *encoded, workers=2), wanted) < 1e-12
    single = [Encoded(x.vectors.float(), x.fragments.float(), x.counts) for x in encoded]
    found = score(model.float(), *single, out=torch.float32)
    assert gap(found, loops(model.double(), *single)) < 1e-5


@pytest.mark.parametrize("modules", MODULES)
def test_mmca_equals_its_pairs(modules):
    model = mmca(modules=modules)
    images, texts = sides(padding=0.0)
    found = score(model, images, texts)
    for i in range(len(images)):
        for t in range(len(texts)):
            with torch.no_grad():
                alone = model.pair_similarity(images[i], texts[t])
            assert float(found[i, t]) == pytest.approx(float(alone), abs=1e-12)


@pytest.mark.parametrize("stack", [1, 30, 31, 200, 10**6])
def test_the_size_of_a_group_of_stacks_changes_nothing(stack):
    model = mmca()
    encoded = sides()
    wanted = loops(model, *encoded)
    with cut(stack=stack):
        assert gap(score(model, *encoded), wanted) < 1e-12


def test_the_second_module_counts():
    encoded = sides()
    both, own, more = (
        score(mmca(**options), *encoded)
        for options in ({}, {"modules": "self"}, {"alpha": 1.4})
    )  # fmt: skip
    assert gap(both, own) > 1e-2
    torch.testing.assert_close(more - own, 2 * (both - own), atol=1e-12, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("zeros", [True, False])
def test_zero_and_equal_fragments_stay_finite(dtype, zeros):
    model = mmca()
    images, texts = (
        Encoded(x.vectors, (0 if zeros else 1) * x.fragments[:, :1].repeat(1, 6, 1), x.counts)
        for x in sides()
    )
    wanted = loops(model, images, texts)
    images, texts = (
        Encoded(x.vectors.to(dtype), x.fragments.to(dtype), x.counts) for x in (images, texts)
    )
    assert gap(score(model.to(dtype), images, texts, out=dtype), wanted) < 1e-5


@pytest.mark.parametrize("lost", ["vectors", "fragments"])
def test_a_side_of_another_model_is_refused(lost):
    images, texts = sides()
    parts = {"vectors": texts.vectors, "fragments": texts.fragments, lost: None}
    with pytest.raises(InputError, match="got a side without vectors or fragments"):
        score(mmca(), images, Encoded(counts=texts.counts, **parts))


def test_a_side_without_vectors_is_refused_by_products():
    images, texts = sides()
    with pytest.raises(InputError, match="got a side without vectors, wanted this model's own"):
        score(mmca(modules="self"), Encoded(None, images.fragments, images.counts), texts)
