import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.errors import InputError
from crossgaze.models.encoded import Attention, Encoded, real


def encoded():
    return Encoded(
        vectors=torch.arange(6.0).view(3, 2),
        fragments=torch.arange(24.0).view(3, 4, 2),
        counts=torch.tensor([4, 1, 2]),
        features=torch.arange(12.0).view(3, 4, 1),
    )


@given(st.lists(st.integers(0, 7), max_size=6), st.integers(0, 7))
def test_real_marks_the_first_of_each_row(counts, width):
    found = real(torch.tensor(counts, dtype=torch.long), width)
    assert found.dtype == torch.bool
    assert found.tolist() == [[place < count for place in range(width)] for count in counts]


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([2, 0], [2, 0]),
        ((2, 0), [2, 0]),
        (range(2), [0, 1]),
        (torch.tensor([2, 0]), [2, 0]),
        (torch.tensor([True, False, True]), [0, 2]),
        (slice(1, None), [1, 2]),
        ([], []),
        ([1, 1, 1], [1, 1, 1]),
    ],
)
def test_rows_are_picked_from_every_part(rows, kept):
    whole = encoded()
    some = whole[rows]
    assert len(some) == len(kept)
    for name in ("vectors", "fragments", "counts", "features"):
        wanted = [getattr(whole, name)[row].tolist() for row in kept]
        assert getattr(some, name).tolist() == wanted


def test_parts_that_are_missing_stay_missing():
    some = Encoded(vectors=torch.ones(2, 3), fragments=None, counts=torch.ones(2, dtype=int))[[1]]
    assert some.fragments is None
    assert some.features is None
    assert some.vectors.shape == (1, 3)


def test_mask_follows_fragments_or_else_features():
    whole = encoded()
    wanted = [[True] * 4, [True, False, False, False], [True, True, False, False]]
    assert whole.mask.tolist() == wanted
    features = Encoded(None, None, whole.counts, whole.features)
    assert features.mask.tolist() == wanted


def test_mask_is_refused_where_there_are_no_fragments():
    with pytest.raises(InputError, match="keeps no fragments, only one vector a side"):
        _ = Encoded(torch.ones(2, 3), None, torch.tensor([1, 1])).mask


def test_gradients_flow_through_picking():
    fragments = torch.ones(3, 2, 2, requires_grad=True)
    Encoded(None, fragments, torch.tensor([2, 2, 2]))[[1, 1]].fragments.sum().backward()
    assert fragments.grad.sum((1, 2)).tolist() == [0, 8, 0]


def test_attention_has_only_what_it_is_given():
    found = Attention(names=("t-i",), weights=torch.ones(1, 1, 2, 3))
    assert found.regions is None
    assert found.words is None
