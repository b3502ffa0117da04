"""Tables that are mostly zero: smaller in a file, the same in a model."""

from pathlib import Path

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from crossgaze.errors import FileFormatError
from crossgaze.models.sparse_rows import MOST, pack, unpack

PATH = Path("model.safetensors")


@given(st.lists(st.booleans(), min_size=1, max_size=20), st.integers(1, 4), st.integers(0, 99))
def test_what_is_packed_comes_back_as_it_was(there, width, seed):
    torch.manual_seed(seed)
    table = torch.randn(len(there), width).half() * torch.tensor(there)[:, None]
    weights = {"own": table, "bias": torch.zeros(3), "count": torch.zeros(4, 2, dtype=torch.int64)}
    packed = pack(weights)
    assert ("own" in packed) == (sum(there) > MOST * len(there))
    assert {"bias", "count"} <= packed.keys()
    back = unpack(packed, weights, PATH)
    assert back.keys() == weights.keys()
    for name, tensor in weights.items():
        assert back[name].dtype == tensor.dtype
        assert torch.equal(back[name], tensor)


def test_three_of_four_rows_take_no_room():
    table = torch.zeros(400, 8)
    table[::4] = 1
    packed = pack({"own": table})
    assert sum(tensor.nbytes for tensor in packed.values()) == 100 * (8 * 4 + 4)


ROWS = torch.tensor([1, 3], dtype=torch.int32)
VALUES = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("rows", "values", "words"),
    [
        (torch.tensor([1, 9]), VALUES, "own: names rows that are not of 0 to 4"),
        (torch.tensor([-1, 3]), VALUES, "own: names rows that are not of 0 to 4"),
        (torch.tensor([3, 1]), VALUES, "own: names rows that are not of 0 to 4"),
        (torch.tensor([3, 3]), VALUES, "own: names rows that are not of 0 to 4"),
        (torch.tensor([0.0, 3.0]), VALUES, "do not fit together"),
        (ROWS, torch.ones(3, 3), "do not fit together"),
        (ROWS, torch.ones(2), "do not fit together"),
        (ROWS[None], VALUES, "do not fit together"),
        (ROWS, torch.ones(2, 4), r"own: has rows of 4 numbers, wanted the shape \(5, 3\)"),
        (ROWS, torch.ones(1, 1).expand(2, 1 << 40), "own: has rows of 1,099,511,627,776 numbers"),
    ],
)
def test_rows_that_cannot_be_are_refused(rows, values, words):
    wanted = {"own": torch.zeros(5, 3)}
    with pytest.raises(FileFormatError, match=words):
        unpack({"own.rows": rows, "own.values": values}, wanted, PATH)


@pytest.mark.parametrize(
    "weights",
    [
        {"own.rows": ROWS},
        {"other.rows": ROWS, "other.values": VALUES},
        {"own": torch.zeros(5, 3), "own.rows": ROWS, "own.values": VALUES},
    ],
)
def test_what_no_table_asks_for_stays_to_be_named(weights):
    assert unpack(weights, {"own": torch.zeros(5, 3)}, PATH).keys() == weights.keys()
