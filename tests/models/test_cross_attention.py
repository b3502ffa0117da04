"""Attention of pairs against loops over one unpadded pair."""

import math
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.errors import InputError
from crossgaze.models.cross_attention import (
    FeatureNorm,
    attend,
    clean_fragments,
    relevance,
)
from crossgaze.models.encoded import Encoded, real

NORMS = get_args(FeatureNorm)


def alpha(context, query, norm, lambda1):
    """One pair, lists of lists: weights[i][j] of query i over context j, number by number."""

    def dot(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    def size(a):
        return math.sqrt(dot(a, a))

    rows = []  # a row of normalised scores for each context fragment, along the query
    for e in context:
        row = [dot(e, v) for v in query]
        if norm == "paper":
            row = [
                max(s / max(size(e) * size(v), 1e-8), 0) for s, v in zip(row, query, strict=True)
            ]
            whole = size(row)
            row = [s / whole if whole else 0.0 for s in row]
        if norm.startswith("clipped"):
            row = [s if s > 0 else 0.1 * s for s in row]
        if norm == "softmax":
            row = [math.exp(s) for s in row]
            row = [s / sum(row) for s in row]
        if norm.endswith("l2norm"):
            row = [s / (size(row) + 1e-8) for s in row]
        if norm.endswith("l1norm"):
            row = [s / (sum(map(abs, row)) + 1e-8) for s in row]
        rows.append(row)
    weights = []
    for i in range(len(query)):
        column = [math.exp(lambda1 * row[i]) for row in rows]
        weights.append([x / sum(column) for x in column])
    return weights


def pairs(counts, lengths, extra=0, seed=0):
    torch.manual_seed(seed)
    context = torch.randn(len(counts), max(counts) + extra, 3, dtype=torch.float64)
    query = torch.randn(len(counts), max(lengths) + extra, 3, dtype=torch.float64)
    masks = [
        real(torch.tensor(n), side.shape[1])
        for n, side in ((counts, context), (lengths, query))
    ]  # fmt: skip
    return context, query, *masks


def test_the_eight_norms_are_the_papers_and_the_public_codes():
    public = "softmax l2norm clipped_l2norm l1norm clipped_l1norm clipped no_norm"
    assert sorted(NORMS) == sorted([*public.split(), "paper"])


@pytest.mark.parametrize("norm", NORMS)
def test_weights_are_the_loops_over_each_pair(norm):
    counts, lengths = [4, 1, 2, 3], [2, 3, 1, 5]
    context, query, c_mask, q_mask = pairs(counts, lengths)
    found = attend(context, query, c_mask, q_mask, norm=norm, sharpness=4.0)
    assert found.shape == (4, 5, 4)
    for p, (c, q) in enumerate(zip(counts, lengths, strict=True)):
        wanted = alpha(context[p, :c].tolist(), query[p, :q].tolist(), norm, 4.0)
        torch.testing.assert_close(
            found[p, :q, :c], torch.tensor(wanted, dtype=torch.float64), atol=1e-14, rtol=0
        )
        assert not found[p, q:].any()
        assert not found[p, :, c:].any()


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=3),
    st.integers(1, 3),
    st.sampled_from([-1e6, 7.0, 1e8]),
    st.sampled_from(NORMS),
)
def test_padding_and_company_change_nothing(sizes, extra, garbage, norm):
    counts, lengths = map(list, zip(*sizes, strict=True))
    context, query, c_mask, q_mask = pairs(counts, lengths, extra)
    context[~c_mask], query[~q_mask] = garbage, -garbage
    together = attend(context, query, c_mask, q_mask, norm=norm)
    compared = relevance(context, query, together)
    for p, (c, q) in enumerate(sizes):
        one = context[p : p + 1, :c], query[p : p + 1, :q]
        masks = [torch.ones(1, n, dtype=torch.bool) for n in (c, q)]
        alone = attend(*one, *masks, norm=norm)
        torch.testing.assert_close(together[p, :q, :c], alone[0], atol=1e-13, rtol=0)
        torch.testing.assert_close(
            compared[p, :q], relevance(*one, alone)[0], atol=1e-13, rtol=0
        )  # fmt: skip


@pytest.mark.parametrize("norm", NORMS)
def test_gradients_are_finite_differences_and_stop_at_the_padding(norm):
    context, query, c_mask, q_mask = pairs([3, 1], [2, 3])
    inputs = context.requires_grad_(), query.requires_grad_()

    def compared(context, query):
        weights = attend(context, query, c_mask, q_mask, norm=norm, sharpness=3.0)
        return relevance(context, query, weights) * q_mask

    assert torch.autograd.gradcheck(compared, inputs)
    compared(*inputs).sum().backward()
    assert not context.grad[~c_mask].any()
    assert not query.grad[~q_mask].any()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zero_vectors_look_everywhere_with_finite_gradients(norm, dtype):
    context = torch.zeros(1, 3, 2, dtype=dtype, requires_grad=True)
    query = torch.zeros(1, 2, 2, dtype=dtype, requires_grad=True)
    masks = torch.ones(1, 3, dtype=torch.bool), torch.ones(1, 2, dtype=torch.bool)
    weights = attend(context, query, *masks, norm=norm)
    torch.testing.assert_close(weights, torch.full_like(weights, 1 / 3))
    compared = relevance(context, query, weights)
    assert not compared.any()
    compared.sum().backward()
    assert context.grad.isfinite().all()
    assert query.grad.isfinite().all()


def test_the_papers_norm_sees_directions_only():
    context, query, c_mask, q_mask = pairs([4], [3])
    one = attend(context, query, c_mask, q_mask, norm="paper")
    other = attend(3 * context, query / 5, c_mask, q_mask, norm="paper")
    torch.testing.assert_close(one, other)


def test_clean_fragments_zeroes_what_lies_past_the_real_ones():
    side = Encoded(None, torch.full((2, 2, 3), torch.nan), torch.tensor([2, 1]))
    found, mask = clean_fragments(side)
    assert found.isnan().any(-1).tolist() == [[True, True], [True, False]]
    assert mask.tolist() == [[True, True], [True, False]]
    with pytest.raises(InputError, match="keeps no fragments"):
        clean_fragments(Encoded(torch.ones(1, 3), None, torch.tensor([1])))
