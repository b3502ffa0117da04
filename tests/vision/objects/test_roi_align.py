"""RoI align against plain loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.vision.objects.roi_align import roi_align


def read_at(grid, x, y):
    """Bilinear value of a (H, W) grid whose values stand at cell centres; edges go on."""
    height, width = grid.shape
    x, y = min(max(x - 0.5, 0), width - 1), min(max(y - 0.5, 0), height - 1)
    left, top = math.floor(x), math.floor(y)
    right, low = min(left + 1, width - 1), min(top + 1, height - 1)
    a, b = x - left, y - top
    return (
        grid[top, left] * (1 - a) * (1 - b)
        + grid[top, right] * a * (1 - b)
        + grid[low, left] * (1 - a) * b
        + grid[low, right] * a * b
    )


def loop_align(features, boxes, bins, samples):
    batch, channels, height, width = features.shape
    out = np.zeros((batch, boxes.shape[1], bins * bins, channels))
    for n in range(batch):
        for i, (x1, y1, x2, y2) in enumerate(boxes[n] * [width, height, width, height]):
            for row in range(bins):
                for column in range(bins):
                    for c in range(channels):
                        total = 0.0
                        for u in range(samples):
                            for v in range(samples):
                                y = y1 + (y2 - y1) * (row + (u + 0.5) / samples) / bins
                                x = x1 + (x2 - x1) * (column + (v + 0.5) / samples) / bins
                                total += read_at(features[n, c], x, y)
                        out[n, i, row * bins + column, c] = total / samples**2
    return out


@given(
    seed=st.integers(0, 10_000),
    shape=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    bins=st.integers(1, 3),
    samples=st.integers(1, 3),
)
def test_it_is_the_loop(seed, shape, bins, samples):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(2, 3, *shape))
    corners = np.sort(rng.uniform(0, 1, (2, 4, 2, 2)), axis=2)  # low, high of (x, y)
    boxes = corners.reshape(2, 4, 4)
    found = roi_align(torch.from_numpy(features), torch.from_numpy(boxes), bins, samples)
    np.testing.assert_allclose(found, loop_align(features, boxes, bins, samples), atol=1e-9)


def test_memory_layout_does_not_matter():
    features = torch.randn(2, 5, 7, 6)
    boxes = torch.tensor([[[0.1, 0.2, 0.8, 0.9]]]).expand(2, 1, 4)
    other = features.contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(roi_align(features, boxes, 3), roi_align(other, boxes, 3))


@pytest.mark.parametrize("box", [[0.0, 0.0, 1e-3, 1e-3], [0.999, 0.999, 1.0, 1.0]])
def test_a_tiny_box_reads_one_place(box):
    features = torch.randn(1, 2, 4, 4, dtype=torch.float64)
    found = roi_align(features, torch.tensor([[box]], dtype=torch.float64), 2)
    corner = features[0, :, 0, 0] if box[0] == 0 else features[0, :, -1, -1]
    torch.testing.assert_close(found[0, 0], corner.expand(4, 2))


def test_gradients_are_those_of_the_sum():
    features = torch.randn(1, 2, 5, 5, dtype=torch.float64, requires_grad=True)
    boxes = torch.tensor([[[0.1, 0.1, 0.7, 0.9], [0.0, 0.0, 1.0, 1.0]]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: roi_align(x, boxes, 2), (features,))
