"""MMCA's Transformer unit against loops over the paper's equations, in float64."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.errors import InputError
from crossgaze.models.encoded import real
from crossgaze.models.transformer_unit import TransformerUnit, stack_heads
from model_parts import draw

SIZE, HEADS = 6, 2
COUNTS = (4, 1, 3)


def make(dropout=0.0):
    torch.manual_seed(2)
    unit = TransformerUnit(SIZE, HEADS, dropout).double()
    for parameter in unit.parameters():
        torch.nn.init.normal_(parameter, std=0.6)
    return unit


def layer_norm(p, name, x):
    mean = sum(x) / len(x)
    variance = sum((number - mean) ** 2 for number in x) / len(x)
    return (x - mean) / torch.sqrt(variance + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def naive(p, fragments):
    """Eqs. 1-4 over a list of vectors, and the weights (h, m, m)."""
    wide = SIZE // HEADS
    heads, every = [], []
    for head in range(HEADS):
        rows = slice(head * wide, (head + 1) * wide)
        q, k, v = (
            [p[f"{name}.weight"][rows] @ f for f in fragments] for name in ("query", "key", "value")
        )
        out, table = [], []
        for i in range(len(fragments)):
            scores = [torch.exp(q[i] @ k[j] / math.sqrt(wide)) for j in range(len(fragments))]
            weights = [score / sum(scores) for score in scores]
            table.append(torch.stack(weights))
            out.append(sum(w * v[j] for j, w in enumerate(weights)))
        heads.append(out)
        every.append(torch.stack(table))
    result = []
    for i, fragment in enumerate(fragments):
        joined = p["out.weight"] @ torch.cat([head[i] for head in heads])
        x = layer_norm(p, "attention_norm", fragment + joined)
        inner = torch.clamp(p["feed.0.weight"] @ x + p["feed.0.bias"], min=0)
        fed = p["feed.2.weight"] @ inner + p["feed.2.bias"]
        result.append(layer_norm(p, "feed_norm", x + fed))
    return torch.stack(result), torch.stack(every)


def test_values_and_gradients_equal_the_papers_loops():
    unit = make()
    x = draw(3, 4, SIZE).requires_grad_()
    mask = real(torch.tensor(COUNTS), 4)
    out, weights = unit(x, mask)
    p = {name: part.detach().clone().requires_grad_() for name, part in unit.named_parameters()}
    twin = x.detach().clone().requires_grad_()
    mix, loss, want = draw(3, 4, SIZE, seed=5), 0, 0
    for b, count in enumerate(COUNTS):
        right, shares = naive(p, list(twin[b, :count]))
        torch.testing.assert_close(out[b, :count], right, rtol=0, atol=1e-13)
        torch.testing.assert_close(weights[b, :, :count, :count], shares, rtol=0, atol=1e-14)
        assert (weights[b, :, :, count:] == 0).all()
        loss = loss + (out[b, :count] * mix[b, :count]).sum()
        want = want + (right * mix[b, :count]).sum()
    loss.backward()
    want.backward()
    torch.testing.assert_close(x.grad, twin.grad, rtol=0, atol=1e-12)
    for name, part in unit.named_parameters():
        torch.testing.assert_close(part.grad, p[name].grad, rtol=0, atol=1e-12, msg=name)
        assert part.grad.abs().max() > 1e-6, name


def test_known_heads_give_the_same_as_the_whole():
    unit = make()
    x, mask = draw(2, 5, SIZE), real(torch.tensor([5, 4]), 5)
    heads = stack_heads(unit.project(x[:, :2]), unit.project(x[:, 2:]))
    out, weights = unit.mix(x, heads, mask)
    want, shares = unit(x, mask)
    torch.testing.assert_close(out, want, rtol=0, atol=1e-13)
    torch.testing.assert_close(weights, shares, rtol=0, atol=1e-14)
    torch.testing.assert_close(unit.weigh(heads, mask), shares, rtol=0, atol=1e-14)


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(1, 5),
    extra=st.integers(0, 3),
    seed=st.integers(0, 2**16),
    fill=st.sampled_from([0.0, -50.0, 1e6]),
)
def test_order_permutes_and_padding_changes_nothing(count, extra, seed, fill):
    unit = make()
    x = draw(1, count, SIZE, seed=seed)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    padding = torch.full((1, extra, SIZE), fill, dtype=torch.float64)
    out, weights = unit(x, real(torch.tensor([count]), count))
    moved, shares = unit(
        torch.cat([x[:, order], padding], dim=1), real(torch.tensor([count]), count + extra)
    )
    close = {"rtol": 0, "atol": 1e-11}
    torch.testing.assert_close(moved[:, :count], out[:, order], **close)
    torch.testing.assert_close(
        shares[..., :count, :count], weights[:, :, order][..., order], **close
    )


def test_zeros_stay_finite():
    unit = make()
    x = torch.zeros(1, 3, SIZE, dtype=torch.float64, requires_grad=True)
    out, _ = unit(x, real(torch.tensor([2]), 3))
    out[:, :2].sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()


def test_dropout_works_in_training_only():
    unit, x, mask = make(dropout=0.5), draw(1, 3, SIZE), torch.ones(1, 3).bool()
    for silent in (unit.out, unit.feed[2]):  # each sub-layer has its own
        kept = {name: part.clone() for name, part in silent.state_dict().items()}
        for part in silent.parameters():
            torch.nn.init.zeros_(part)
        assert not torch.equal(unit(x, mask)[0], unit(x, mask)[0])
        silent.load_state_dict(kept)
    unit.eval()
    assert torch.equal(unit(x, mask)[0], unit(x, mask)[0])
    plain = make()  # none by default
    assert torch.equal(plain(x, mask)[0], plain(x, mask)[0])


def test_parameters_at_the_papers_sizes():
    # Four projections without bias, two layers with one, two normalisations.
    want = 4 * 256 * 256 + 2 * (256 * 256 + 256) + 2 * 2 * 256
    assert want == 394_752
    assert sum(part.numel() for part in TransformerUnit(256, 16).parameters()) == want


@pytest.mark.parametrize("heads", [0, -2, 4, 7])
def test_heads_must_divide_the_size(heads):
    with pytest.raises(InputError, match=f"heads: is {heads}, wanted a divisor of the size, 6"):
        TransformerUnit(SIZE, heads)
