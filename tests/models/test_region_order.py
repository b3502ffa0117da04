"""The order of regions."""

import numpy as np
import pytest
import torch

from crossgaze.errors import InputError
from crossgaze.models.region_order import order_regions


def test_order_by_confidence_and_box_size():
    features = torch.arange(8.0).view(2, 4, 1)
    counts = torch.tensor([4, 2])
    confidence = torch.tensor([[0.1, 0.9, 0.5, 0.9], [0.2, 0.3, 99.0, torch.nan]])
    boxes = torch.tensor([[0.0, 0, 1, 1], [5, 5, 9, 9], [0, 0, 3, 2], [1, 1, 9, 1.1]]).repeat(
        2, 1, 1
    )
    found, order = order_regions(features, counts, confidence=confidence)
    assert order.tolist() == [[1, 3, 2, 0], [1, 0, 2, 3]]  # equal ones as given, padding stays last
    assert found.squeeze(-1).tolist() == [[1, 3, 2, 0], [5, 4, 6, 7]]
    _, order = order_regions(features, counts, boxes=boxes, how="box-size")
    assert order.tolist() == [[1, 2, 0, 3], [1, 0, 2, 3]]  # by area: 1, 16, 6, 0.8
    found, order = order_regions(features, counts, how="given")
    assert order.tolist() == [[0, 1, 2, 3]] * 2
    assert found.equal(features)


def test_random_order_is_a_shuffle_of_the_real_regions():
    features = torch.arange(5.0).view(1, 5, 1).repeat(400, 1, 1)
    counts = torch.full((400,), 3)

    def drawn(seed):
        generator = torch.Generator().manual_seed(seed)
        return order_regions(features, counts, how="random", generator=generator)[1]

    assert drawn(1).equal(drawn(1))
    assert not drawn(1).equal(drawn(2))
    assert drawn(1)[:, :3].sort(1).values.equal(torch.arange(3).repeat(400, 1))
    assert drawn(1)[:, 3:].equal(torch.tensor([3, 4]).repeat(400, 1))
    assert len({tuple(row) for row in drawn(1).tolist()}) == 6  # every order occurs


def test_order_reads_mapped_arrays_without_writing_to_them():
    features = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    confidence = np.array([[0.1, 0.2, 0.3]], dtype=np.float32)
    counts = np.array([3], dtype=np.int32)
    for array in (features, confidence, counts):
        array.flags.writeable = False
    found, order = order_regions(features, counts, confidence=confidence)
    assert order.tolist() == [[2, 1, 0]]
    np.testing.assert_array_equal(found, features[:, ::-1])


def test_orders_take_numbers_of_any_kind_and_refuse_counts_that_do_not_fit():
    features = torch.arange(6.0).reshape(1, 3, 2)
    sure = np.array([[1, 3, 2]], np.uint16)
    assert order_regions(features, np.array([3]), confidence=sure)[1].tolist() == [[1, 2, 0]]
    with pytest.raises(InputError, match="counts: go from 99 to 99, wanted 1 to 3"):
        order_regions(features, np.array([99]), confidence=sure)
