"""Chosen pairs, and the gradient of all pairs that only chosen pairs pay for."""

from typing import get_args

import pytest
import torch

from crossgaze.errors import InputError
from crossgaze.models.cross_attention import FeatureNorm
from crossgaze.models.encoded import Encoded
from crossgaze.scoring.pairs import score_every_pair, score_pairs
from model_parts import draw
from scoring_parts import MODELS, SIZE, bfan, cut, gap, loops, mmca, scan, side, sides, sum_max

EVERY = [name for name in MODELS if name != "mmca self"]  # which multiplies and needs no pairs


def leaves(counts, lengths, seed=0):
    """Sides whose vectors and fragments want gradients."""
    encoded = sides(counts, lengths, seed=seed, padding=0.0)
    parts = [part.requires_grad_() for x in encoded for part in (x.vectors, x.fragments)]
    return encoded, parts


def dense(model, images, texts):
    """All scores by autograd through every single pair, (images, texts)."""
    rows = [
        [model.pair_similarity(images[i], texts[t]).squeeze(0) for t in range(len(texts))]
        for i in range(len(images))
    ]
    return torch.stack([torch.stack(row) for row in rows])


def gradients(loss, inputs):
    found = torch.autograd.grad(loss, inputs, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


def violations(scores, margin=0.2):
    """max(0, margin - S(I, T) + S(I, T')) and the same over images, the right ones left out."""
    right = scores.diagonal()
    itself = torch.eye(len(scores), dtype=torch.bool)
    over_texts = (margin + scores - right[:, None]).clamp(min=0).masked_fill(itself, 0)
    over_images = (margin + scores - right).clamp(min=0).masked_fill(itself, 0)
    return over_texts, over_images


def sum_of_violations(scores):
    over_texts, over_images = violations(scores)
    return over_texts.sum() + over_images.sum()


def hardest_negatives(scores):
    over_texts, over_images = violations(scores)
    return over_texts.max(1).values.sum() + over_images.max(0).values.sum()


LOSSES = [sum_of_violations, hardest_negatives]


@pytest.fixture
def counted(monkeypatch):
    """Watch how many pairs a model computes one by one: a function from a model to a list."""

    def watch(model):
        seen, plain = [], model.pair_similarity

        def pair_similarity(images, texts):
            seen.append(len(images))
            return plain(images, texts)

        monkeypatch.setattr(model, "pair_similarity", pair_similarity)
        return seen

    return watch


# Chosen pairs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_pairs_score_what_the_loops_say_in_their_order(name):
    model = MODELS[name]()
    images, texts = sides(padding=0.0)
    wanted = loops(model, images, texts)
    pairs = torch.tensor([[4, 6], [0, 0], [2, 1], [0, 0], [1, 5], [4, 0], [2, 2], [3, 3]])
    for block in (None, 1, 3, 8, 100):
        found = score_pairs(model, images, texts, pairs, block=block)
        assert gap(found, wanted[pairs[:, 0], pairs[:, 1]]) < 1e-12


@pytest.mark.parametrize("name", EVERY)
def test_garbage_in_the_padding_reaches_no_pair_and_no_gradient(name):
    model = MODELS[name]()
    images, texts = sides([4, 1], [2, 5], padding=torch.nan)
    wanted = loops(model, images, texts)
    every = torch.cartesian_prod(torch.arange(2), torch.arange(2))
    found = score_pairs(model, images, texts, every)
    assert gap(found.view(2, 2), wanted) < 1e-12
    for x in (images, texts):
        x.fragments.requires_grad_()
    scores = model.similarity(images, texts)
    assert gap(scores, wanted) < 1e-12
    found = gradients(scores.sum(), [images.fragments, texts.fragments])
    for x, grad in zip((images, texts), found, strict=True):
        assert grad[x.mask].isfinite().all()
        assert not grad[~x.mask].any()


def test_blocks_of_pairs_follow_memory(counted):
    model = scan()
    seen = counted(model)
    images, texts = sides(padding=0.0)
    pairs = torch.cartesian_prod(torch.arange(5), torch.arange(7))
    with cut(pair=6 * 6 * SIZE):  # sentences have room for 6 words
        score_pairs(model, images, texts, pairs)
    assert seen == [6, 6, 6, 6, 6, 5]
    with cut(pair=1):
        score_pairs(model, images, texts, pairs[:2])
    assert seen[6:] == [1, 1]


def test_pairs_have_gradients():
    model = scan()
    (images, texts), parts = leaves([3, 2], [4, 1])
    pairs = torch.tensor([[0, 1], [1, 0], [0, 1]])
    loss = (score_pairs(model, images, texts, pairs, block=2) * torch.tensor([1.0, 2.0, 3.0])).sum()
    scores = dense(model, images, texts)
    wanted = gradients(4 * scores[0, 1] + 2 * scores[1, 0], parts)
    for one, other in zip(gradients(loss, parts), wanted, strict=True):
        assert gap(one, other) < 1e-12
    assert wanted[1].abs().max() > 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_no_pairs_have_no_scores(name):
    found = score_pairs(MODELS[name](), *sides(padding=0.0), torch.zeros(0, 2, dtype=torch.long))
    assert found.shape == (0,)


@pytest.mark.parametrize("shape", [(3,), (3, 3), (2, 1), (1, 2, 2)])
def test_pairs_of_another_shape_are_refused(shape):
    with pytest.raises(InputError, match=r"pairs: got shape \(.*\), wanted \(P, 2\)"):
        score_pairs(scan(), *sides(), torch.zeros(shape, dtype=torch.long))


# The gradient of all pairs --------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("shape", [([2], [1]), ([1, 3], [2, 1])])
def test_gradients_are_those_of_finite_differences(name, shape):
    model = MODELS[name]()
    (images, texts), parts = leaves(*shape)
    used = parts if name.startswith("mmca") else parts[1::2]

    def similarity(*inputs):
        given = iter(inputs)
        sides = [
            Encoded(next(given) if name.startswith("mmca") else None, next(given), x.counts)
            for x in (images, texts)
        ]
        return model.similarity(*sides)

    assert torch.autograd.gradcheck(similarity, used)


def test_gradients_of_mmcas_own_weights_are_those_of_finite_differences():
    model = mmca()
    images, texts = sides([2], [3, 1], padding=0.0)
    weights = [p for part in (model.cross, model.cross_sentence) for p in part.parameters()]
    assert len(weights) > 10
    assert torch.autograd.gradcheck(lambda *_: model.similarity(images, texts), weights)


def test_gradients_with_dropout_are_those_of_finite_differences():
    """Pairs are computed again in the backward pass, with the same numbers dropped."""
    model = mmca(dropout=0.3).train()
    (images, texts), parts = leaves([2, 1], [3, 1])

    def similarity(*_):
        torch.manual_seed(0)
        return model.similarity(images, texts)

    assert torch.autograd.gradcheck(similarity, parts)
    assert torch.autograd.gradcheck(similarity, [model.cross.out.weight, model.cross.feed[0].bias])
    one = similarity()
    assert not torch.equal(one, model.similarity(images, texts))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_of_losses_are_those_of_dense_autograd(name, loss):
    model = MODELS[name]()
    (images, texts), parts = leaves([4, 1, 3, 2], [2, 5, 1, 3])
    inputs = [*parts, *model.parameters()]
    wanted = gradients(loss(dense(model, images, texts)), inputs)
    assert wanted[1].abs().max() > 1e-3
    for pair in (None, 1, 3 * 6 * SIZE):
        with cut(pair=pair):
            found = gradients(loss(model.similarity(images, texts)), inputs)
        for one, other in zip(found, wanted, strict=True):
            assert gap(one, other) < 1e-11


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_backward_pass_computes_the_chosen_pairs_alone(name, loss, counted, monkeypatch):
    monkeypatch.setattr("crossgaze.scoring.pairs.DENSE", 0)  # never all pairs
    model = MODELS[name]()
    seen = counted(model)
    (images, texts), parts = leaves([2] * 6, [3] * 6)
    scores = model.similarity(images, texts)
    assert seen == []
    twin = scores.detach().requires_grad_()
    (wanted,) = torch.autograd.grad(loss(twin), twin)
    chosen = int((wanted != 0).sum())
    gradients(loss(scores), parts)
    assert sum(seen) == chosen
    assert 0 < chosen < 36
    if loss is hardest_negatives:
        assert chosen <= 3 * 6


@pytest.mark.parametrize("name", EVERY)
def test_a_loss_that_is_satisfied_has_zero_gradients(name, counted):
    model = MODELS[name]()
    seen = counted(model)
    (images, texts), parts = leaves([2, 3], [3, 1])
    scores = model.similarity(images, texts)
    found = gradients((scores - 99.0).clamp(min=0).sum(), parts)
    assert sum(seen) == 0
    assert not any(grad.any() for grad in found)


@pytest.mark.parametrize("name", EVERY)
def test_gradients_from_the_encoders_on(name):
    """Features and words to loss: every weight of the model, as by dense autograd."""
    model = MODELS[name]()
    regions, ids = draw(3, 4, 4), torch.tensor([[1, 2, 3], [4, 0, 0], [2, 3, 0]])

    def run(similarity):
        images = model.encode_images(regions, torch.tensor([4, 2, 1]))
        scores = similarity(images, model.encode_tokens(ids, torch.tensor([3, 1, 2])))
        return gradients(hardest_negatives(scores), list(model.parameters()))

    wanted = run(lambda *encoded: dense(model, *encoded))
    for one, other in zip(run(model.similarity), wanted, strict=True):
        assert gap(one, other) < 1e-11
    assert max(float(grad.abs().max()) for grad in wanted) > 1e-3


@pytest.mark.parametrize("make", [scan, bfan, sum_max])
@pytest.mark.parametrize("wide", [0, 1])
def test_only_what_wants_a_gradient_gets_one(make, wide):
    model = make()
    encoded = sides([2, 3], [3, 1], padding=0.0)
    encoded[wide].fragments.requires_grad_()
    scores = score_every_pair(model, *encoded)
    scores.sum().backward()
    assert encoded[wide].fragments.grad.abs().max() > 1e-3
    assert encoded[1 - wide].fragments.grad is None
    encoded[wide].fragments.requires_grad_(False)
    assert not score_every_pair(model, *encoded).requires_grad
    encoded[wide].fragments.requires_grad_()
    with torch.no_grad():
        assert not score_every_pair(model, *encoded).requires_grad


@pytest.mark.parametrize("name", EVERY)
def test_zero_vectors_have_finite_gradients(name):
    model = MODELS[name]().float()
    some = sides([2, 1], [3, 1], dtype=torch.float32, padding=0.0)
    encoded = [Encoded(x.vectors * 0, x.fragments * 0, x.counts) for x in some]
    parts = [part.requires_grad_() for x in encoded for part in (x.vectors, x.fragments)]
    scores = model.similarity(*encoded)
    assert scores.isfinite().all()
    assert all(grad.isfinite().all() for grad in gradients(scores.sum(), parts))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("train", [True, False])
def test_similarity_of_nothing_is_empty_numbers(name, train):
    model = MODELS[name]().train(train)
    if train and name == "mmca both":
        model = mmca(dropout=0.1).train()
    some = side([2, 1], padding=0.0)
    some.fragments.requires_grad_()
    none = side([])
    for images, texts in ((some, none), (none, some), (none, none)):
        found = model.similarity(images, texts)
        assert found.shape == (len(images), len(texts))
        assert found.dtype == torch.float64


@pytest.mark.parametrize("name", [name for name in EVERY if not name.startswith("mmca")])
def test_all_pairs_at_once_have_the_gradients_of_pairs_one_by_one(name, monkeypatch):
    model, found = MODELS[name](), []
    (images, texts), parts = leaves([2, 3, 1, 4], [3, 1, 5])
    weights = draw(4, 3, seed=3)
    weights[2, 1] = 0
    for dense in (0, 8):
        monkeypatch.setattr("crossgaze.scoring.pairs.DENSE", dense)
        found.append(gradients((model.similarity(images, texts) * weights).sum(), parts))
    assert all(gap(a, b) < 1e-12 for a, b in zip(*found, strict=True))
    assert any(grad.any() for grad in found[0])


@pytest.mark.parametrize("norm", get_args(FeatureNorm))
@pytest.mark.parametrize("pooling", ["AVG", "SUM", "MAX", "LSE"])
@pytest.mark.parametrize("direction", ["t-i", "i-t"])
def test_all_pairs_at_once_in_every_form_of_scan(norm, pooling, direction, monkeypatch):
    model, found = scan(feature_norm=norm, pooling=pooling, direction=direction), []
    (images, texts), parts = leaves([2, 3], [3, 1, 3])
    for dense in (0, 8):
        monkeypatch.setattr("crossgaze.scoring.pairs.DENSE", dense)
        found.append(gradients(model.similarity(images, texts).square().sum(), parts))
    assert all(gap(a, b) < 1e-11 for a, b in zip(*found, strict=True))


def test_all_pairs_at_once_are_finite_on_zero_vectors():
    for make in (scan, bfan, sum_max):
        zero = torch.zeros(3, 2, SIZE, requires_grad=True)
        images = Encoded(None, zero, torch.full((3,), 2))
        texts = Encoded(None, torch.zeros(2, 4, SIZE), torch.full((2,), 4))
        make().float().similarity(images, texts).sum().backward()
        assert zero.grad.isfinite().all()
