"""Boxes: overlap by hand, suppression against plain loops."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.vision.objects.boxes import (
    SMALLEST,
    area,
    decode,
    giou,
    greedy_keep,
    inside,
    iou,
    nms,
)


def loop_iou(a, b):
    """By the definition, in Python numbers."""
    wide = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    high = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - wide * high
    return wide * high / union


def loop_nms(boxes, scores, threshold):
    """The textbook loop: take the best, drop what overlaps it."""
    left = sorted(range(len(boxes)), key=lambda i: -scores[i])
    kept = []
    while left:
        best = left.pop(0)
        kept.append(best)
        left = [i for i in left if loop_iou(boxes[best], boxes[i]) <= threshold]
    return kept


def some_boxes(rng, count):
    middle, side = rng.uniform(0.1, 0.9, (count, 2)), rng.uniform(0.05, 0.6, (count, 2))
    return torch.from_numpy(np.concatenate([middle - side / 2, middle + side / 2], 1))


def test_iou_by_hand():
    a = torch.tensor([[0.0, 0, 2, 2], [0, 0, 1, 1]])
    b = torch.tensor([[1.0, 1, 3, 3], [0, 0, 2, 2], [5, 5, 6, 6]])
    expected = torch.tensor([[1 / 7, 1, 0], [0, 1 / 4, 0]])
    torch.testing.assert_close(iou(a, b), expected)


def test_giou_by_hand():
    """2x2 at the origin and 1x1 at (3, 0): no intersection, hull 4 x 2, union 5 of its 8."""
    a, b = torch.tensor([[0.0, 0, 2, 2]]), torch.tensor([[3.0, 0, 4, 1]])
    torch.testing.assert_close(giou(a, b), torch.tensor([-3 / 8]))
    torch.testing.assert_close(giou(a, a), torch.tensor([1.0]))
    inner = torch.tensor([[0.0, 0, 1, 2]])  # inside: the hull is the union, so GIoU is IoU
    torch.testing.assert_close(giou(a, inner), torch.tensor([0.5]))


@given(seed=st.integers(0, 10_000), count=st.integers(1, 12))
def test_giou_never_passes_iou(seed, count):
    rng = np.random.default_rng(seed)
    a, b = some_boxes(rng, count), some_boxes(rng, count)
    overlap = iou(a, b).diagonal()
    assert (giou(a, b) <= overlap + 1e-12).all()
    assert (giou(a, b) > -1).all()


def test_decode_by_hand():
    anchor = torch.tensor([[0.2, 0.2, 0.4, 0.6]])  # 0.2 wide, 0.4 high, middle (0.3, 0.4)
    shift = torch.tensor([[0.5, -0.25, float(np.log(2.0)), 0.0]])
    torch.testing.assert_close(decode(anchor, shift), torch.tensor([[0.2, 0.1, 0.6, 0.5]]))
    torch.testing.assert_close(decode(anchor, torch.zeros(1, 4)), anchor)


@given(seed=st.integers(0, 10_000), threshold=st.floats(0.05, 0.95))
def test_nms_is_the_loop(seed, threshold):
    rng = np.random.default_rng(seed)
    boxes, scores = some_boxes(rng, 40), torch.from_numpy(rng.permutation(40) / 40)
    expected = loop_nms(boxes.tolist(), scores.tolist(), threshold)
    assert nms(boxes, scores, threshold).tolist() == expected


@given(seed=st.integers(0, 10_000), threshold=st.floats(0.05, 0.95))
def test_kept_boxes_do_not_overlap_and_dropped_ones_do(seed, threshold):
    boxes = some_boxes(np.random.default_rng(seed), 30)
    keep = greedy_keep(boxes.unsqueeze(0), threshold)[0]
    overlap = iou(boxes, boxes)
    assert keep[0]
    for row in range(30):
        better = overlap[row, :row][keep[:row]]
        assert bool((better <= threshold).all()) == bool(keep[row])


def test_a_long_chain_of_suppression():
    """Each box overlaps only its neighbours: every second one stays, after as many rounds."""
    left = torch.arange(20) * 0.4
    boxes = torch.stack([left, torch.zeros(20), left + 1, torch.ones(20)], 1)
    assert nms(boxes, -torch.arange(20.0), 0.3).tolist() == list(range(0, 20, 2))


def test_suppression_of_a_batch_is_that_of_each():
    rng = np.random.default_rng(1)
    boxes = torch.stack([some_boxes(rng, 25) for _ in range(3)])
    together = greedy_keep(boxes, 0.4)
    for row in range(3):
        assert torch.equal(together[row], greedy_keep(boxes[row : row + 1], 0.4)[0])


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4))
def test_boxes_are_cut_to_the_photograph(numbers):
    found = inside(torch.tensor([numbers]))
    assert found.min() >= 0
    assert found.max() <= 1
    assert (found[:, 2:] - found[:, :2]).min() >= SMALLEST * 0.99
    assert area(found).min() > 0


@pytest.mark.parametrize("box", [[0.1, 0.2, 0.5, 0.9], [0.0, 0.0, 1.0, 1.0]])
def test_a_box_inside_stays(box):
    torch.testing.assert_close(inside(torch.tensor([box])), torch.tensor([box]))


@given(
    seed=st.integers(0, 999),
    count=st.integers(1, 60),
    wanted=st.integers(1, 20),
    block=st.integers(1, 9),
)
def test_blocks_and_an_early_end_keep_the_same_first_boxes(seed, count, wanted, block):
    low = torch.rand(2, count, 2, generator=torch.Generator().manual_seed(seed)) * 0.5
    boxes = torch.cat([low, low + 0.3], -1)
    found = greedy_keep(boxes, 0.4, wanted=wanted, block=block)
    for row, some in zip(boxes, found, strict=True):
        falling = -np.arange(count)
        best = loop_nms(row.tolist(), falling.tolist(), 0.4)[:wanted]
        assert some.nonzero().flatten()[:wanted].tolist() == sorted(best)
