"""The norms against sums written out, and finite where the plain formulas are not."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.models.norms import cosine, l1norm, l2norm, length, masked_softmax

numbers = st.floats(-3, 3, allow_nan=False, width=32)
vectors = st.lists(numbers, min_size=1, max_size=5)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@given(vectors)
def test_length_and_norms_are_the_sums_written_out(x):
    two = math.sqrt(sum(v * v for v in x))
    one = sum(abs(v) for v in x)
    assert length(tensor(x), 0).tolist() == pytest.approx([two], abs=1e-12)
    assert l2norm(tensor(x)).tolist() == pytest.approx([v / (two + 1e-8) for v in x], abs=1e-12)
    assert l1norm(tensor(x)).tolist() == pytest.approx([v / (one + 1e-8) for v in x], abs=1e-12)


def test_norms_work_along_any_dimension():
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for norm, power in ((l1norm, 1), (l2norm, 2)):
        for dim in range(3):
            ones = norm(x, dim).abs().pow(power).sum(dim)
            torch.testing.assert_close(ones, torch.ones_like(ones), atol=1e-6, rtol=0)
    assert length(x, 1).shape == (2, 1, 4)


def test_l2norm_gradient_is_the_projection_off_the_vector():
    x = tensor([1.0, 2.0, -2.0])
    l2norm(x)[0].backward()
    u = [1 / 3, 2 / 3, -2 / 3]
    wanted = [((i == 0) - u[0] * u[i]) / 3 for i in range(3)]
    assert x.grad.tolist() == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("norm", [l1norm, l2norm, lambda x: length(x, -1)])
def test_zero_vectors_stay_zero_with_finite_gradients(norm, dtype):
    x = torch.zeros(2, 3, dtype=dtype, requires_grad=True)
    out = norm(x)
    assert out.dtype == dtype
    assert not out.any()
    out.sum().backward()
    assert x.grad.isfinite().all()


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=5))
def test_cosine_is_the_quotient_written_out(pairs):
    a, b = zip(*pairs, strict=True)
    dot = sum(x * y for x, y in pairs)
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b))
    assert cosine(tensor(a), tensor(b)).item() == pytest.approx(dot / max(lengths, 1e-8), abs=1e-9)


def test_cosine_broadcasts_and_is_zero_at_zero():
    a, b = tensor([[1.0, 0.0], [0.0, 0.0]]), tensor([1.0, 1.0])
    found = cosine(a, b)
    assert found.tolist() == pytest.approx([math.sqrt(0.5), 0.0])
    found.sum().backward()
    assert a.grad.isfinite().all()
    assert b.grad.isfinite().all()


@given(
    st.lists(
        st.tuples(st.floats(-50, 50, allow_nan=False), st.booleans()), min_size=1, max_size=6
    ).filter(lambda row: any(kept for _, kept in row))
)
def test_masked_softmax_is_the_softmax_of_what_is_left(row):
    x, mask = tensor([v for v, _ in row]), torch.tensor([kept for _, kept in row])
    top = max(v for v, kept in row if kept)
    total = sum(math.exp(v - top) for v, kept in row if kept)
    wanted = [math.exp(v - top) / total if kept else 0.0 for v, kept in row]
    found = masked_softmax(x, mask)
    assert found.tolist() == pytest.approx(wanted, abs=1e-12)
    found[0].backward()
    assert x.grad.isfinite().all()
    assert not x.grad[~mask].any()


def test_masked_softmax_takes_a_dimension_and_forgets_garbage():
    x = torch.tensor([[0.0, 1.0], [torch.nan, 1.0], [2.0, torch.inf]])
    mask = torch.tensor([[True, True], [False, True], [True, False]])
    found = masked_softmax(x, mask, dim=0)
    assert found.sum(0).tolist() == pytest.approx([1.0, 1.0])
    assert found[:, 1].tolist() == [0.5, 0.5, 0.0]
