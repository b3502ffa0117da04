"""DAN's attention blocks against loops over the paper's equations, in float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.models.dan_attention import (
    TextualAttention,
    VisualAttention,
    VisualContext,
    real_mean,
    textual_context,
)
from crossgaze.models.encoded import real

WIDTH, SIZE = 5, 4
COUNTS = (3, 1, 4)


def matvec(weight, bias, x):
    return [sum(weight[i][j] * x[j] for j in range(len(x))) + bias[i] for i in range(len(weight))]


def naive_weights(fragments, memory, p):
    """Eqs. 4-5 (8-9) with numbers: p maps layer names to (weight, bias) lists."""
    seen = [math.tanh(m) for m in matvec(*p["memory"], memory)]
    scores = []
    for fragment in fragments:
        hidden = [
            math.tanh(a) * b for a, b in zip(matvec(*p["fragment"], fragment), seen, strict=True)
        ]
        scores.append(matvec(*p["score"], hidden)[0])
    total = sum(math.exp(s) for s in scores)
    return [math.exp(s) / total for s in scores]


def naive_sum(weights, fragments):
    return [
        sum(w * fragment[j] for w, fragment in zip(weights, fragments, strict=True))
        for j in range(len(fragments[0]))
    ]


def layers(module):
    return {
        name.split(".")[-1]: (part.weight.tolist(), part.bias.tolist())
        for name, part in module.named_modules()
        if isinstance(part, torch.nn.Linear)
    }


def make(kind, *sizes):
    torch.manual_seed(1)
    block = kind(*sizes).double().eval()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return block


def side(width, seed=0):
    generator = torch.Generator().manual_seed(seed)
    draw = {"generator": generator, "dtype": torch.float64}
    fragments = torch.randn(len(COUNTS), max(COUNTS), width, **draw)
    memory = torch.randn(len(COUNTS), SIZE, **draw)
    return fragments, memory, real(torch.tensor(COUNTS), max(COUNTS))


def test_visual_attention_is_equations_3_to_6():
    block = make(VisualAttention, WIDTH, SIZE)
    regions, memory, mask = side(WIDTH)
    context, weights = block(regions, memory, mask)
    p = layers(block)
    for b, count in enumerate(COUNTS):
        real_regions = regions[b, :count].tolist()
        want = naive_weights(real_regions, memory[b].tolist(), p)
        mean = naive_sum(want, real_regions)
        np.testing.assert_allclose(weights[b, :count].tolist(), want, rtol=0, atol=1e-14)
        assert (weights[b, count:] == 0).all()
        right = [math.tanh(x) for x in matvec(*p["embed"], mean)]
        np.testing.assert_allclose(context[b].tolist(), right, rtol=0, atol=1e-14)


def test_textual_attention_is_equations_7_to_10():
    block = make(TextualAttention, SIZE)
    words, memory, mask = side(SIZE)
    context, weights = block(words, memory, mask)
    for b, count in enumerate(COUNTS):
        real_words = words[b, :count].tolist()
        want = naive_weights(real_words, memory[b].tolist(), layers(block))
        np.testing.assert_allclose(weights[b, :count].tolist(), want, rtol=0, atol=1e-14)
        right = naive_sum(want, real_words)
        np.testing.assert_allclose(context[b].tolist(), right, rtol=0, atol=1e-14)


def test_global_contexts_are_equations_13_and_14():
    block = make(VisualContext, WIDTH, SIZE)
    regions, _, mask = side(WIDTH)
    words, _, _ = side(SIZE)
    context, plain = block(regions, mask), textual_context(words, mask)
    for b, count in enumerate(COUNTS):
        mean = naive_sum([1 / count] * count, regions[b, :count].tolist())
        right = [math.tanh(x) for x in matvec(*layers(block)["embed"], mean)]
        np.testing.assert_allclose(context[b].tolist(), right, rtol=0, atol=1e-14)
        mean = naive_sum([1 / count] * count, words[b, :count].tolist())
        np.testing.assert_allclose(plain[b].tolist(), mean, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", ["visual", "textual", "context"])
def test_gradients_equal_finite_differences(kind):
    block = {
        "visual": lambda: make(VisualAttention, WIDTH, SIZE),
        "textual": lambda: make(TextualAttention, SIZE),
        "context": lambda: make(VisualContext, WIDTH, SIZE),
    }[kind]()
    fragments, memory, mask = side(SIZE if kind == "textual" else WIDTH)

    def run(fragments, memory, *parameters):
        names = [name for name, _ in block.named_parameters()]
        args = (fragments, mask) if kind == "context" else (fragments, memory, mask)
        return torch.func.functional_call(block, dict(zip(names, parameters, strict=True)), args)

    inputs = [fragments, memory, *(part.detach().clone() for part in block.parameters())]
    for part in inputs[2:] if kind == "context" else inputs:
        part.requires_grad_()
    assert torch.autograd.gradcheck(run, inputs)


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(1, 5),
    extra=st.integers(0, 3),
    seed=st.integers(0, 2**16),
    fill=st.sampled_from([0.0, -50.0, 1e6]),
)
def test_order_and_padding_of_fragments_change_nothing(count, extra, seed, fill):
    visual, textual = make(VisualAttention, SIZE, SIZE), make(TextualAttention, SIZE)
    start = make(VisualContext, SIZE, SIZE)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(1, count, SIZE, generator=generator, dtype=torch.float64)
    memory = torch.randn(1, SIZE, generator=generator, dtype=torch.float64)
    order = torch.randperm(count, generator=generator)
    mixed = torch.cat([x[:, order], torch.full((1, extra, SIZE), fill).double()], dim=1)
    whole = real(torch.tensor([count]), count)
    padded = real(torch.tensor([count]), count + extra)
    close = {"rtol": 0, "atol": 1e-12}
    for block in (visual, textual):
        context, weights = block(x, memory, whole)
        moved, shares = block(mixed, memory, padded)
        torch.testing.assert_close(moved, context, **close)
        torch.testing.assert_close(shares[:, :count], weights[:, order], **close)
        assert (shares[:, count:] == 0).all()
    torch.testing.assert_close(start(mixed, padded), start(x, whole), **close)
    torch.testing.assert_close(real_mean(mixed, padded), real_mean(x, whole), **close)


def test_zeros_stay_finite():
    x = torch.zeros(2, 3, SIZE, dtype=torch.float64, requires_grad=True)
    memory = torch.zeros(2, SIZE, dtype=torch.float64, requires_grad=True)
    mask = real(torch.tensor([3, 1]), 3)
    for block in (make(VisualAttention, SIZE, SIZE), make(TextualAttention, SIZE)):
        context, weights = block(x, memory, mask)
        (context.sum() + weights[:, 0].sum()).backward()
        assert context.isfinite().all()
        assert x.grad.isfinite().all()
        assert memory.grad.isfinite().all()


@pytest.mark.parametrize("kind", [VisualAttention, VisualContext, TextualAttention])
def test_dropout_works_in_training_only(kind):
    torch.manual_seed(0)
    sizes = (64,) if kind is TextualAttention else (64, 64)
    block = kind(*sizes, dropout=0.5)
    x, memory, mask = torch.randn(1, 4, 64), torch.randn(1, 64), torch.ones(1, 4).bool()
    args = (x, mask) if kind is VisualContext else (x, memory, mask)

    def run():
        out = block(*args)
        return out if kind is VisualContext else out[0]

    assert not torch.equal(run(), run())
    if kind is VisualAttention:  # one region has weight 1: only what P reads can differ
        x, mask = x[:, :1], mask[:, :1]
        args = (x, memory, mask)
        assert not torch.equal(run(), run())
    block.eval()
    assert torch.equal(run(), run())


def test_parameters_at_the_papers_sizes():
    def count(block):
        return sum(part.numel() for part in block.parameters())

    hidden = 512 * 512 + 512
    assert count(VisualContext(2048, 512)) == 2048 * 512 + 512 == 1_049_088
    assert count(VisualAttention(2048, 512)) == 2 * 1_049_088 + hidden + 513 == 2_361_345
    assert count(TextualAttention(512)) == 2 * hidden + 513 == 525_825
