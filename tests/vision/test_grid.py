"""Grid regions."""

import numpy as np
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.vision.grid import grid_boxes, pool_grid, pooling_matrix

SIZES = st.integers(1, 16)


@given(cells=SIZES, outputs=SIZES)
def test_every_output_is_a_mean_and_every_cell_counts_alike(cells, outputs):
    weights = pooling_matrix(cells, outputs).double()
    torch.testing.assert_close(weights.sum(1), torch.ones(outputs).double(), atol=1e-6, rtol=0)
    shares = torch.full((cells,), outputs / cells).double()
    torch.testing.assert_close(weights.sum(0), shares, atol=1e-5, rtol=0)


@settings(deadline=None)
@given(h=SIZES, w=SIZES, grid=st.integers(1, 9))
def test_pooling_is_the_integral_of_the_map_over_the_box(h, w, grid):
    """Oracle: each cell painted as grid x grid equal little squares, and those averaged."""
    features = torch.randn(2, 3, h, w, dtype=torch.float64)
    fine = features.repeat_interleave(grid, 2).repeat_interleave(grid, 3)
    expected = F.avg_pool2d(fine, (h, w)).flatten(2).transpose(1, 2)  # (2, g * g, 3)
    torch.testing.assert_close(pool_grid(features, grid), expected, atol=1e-5, rtol=1e-5)


def test_boxes_tile_the_image_in_the_order_of_the_features():
    boxes = grid_boxes(3, 90, 60)
    assert boxes[0].tolist() == [0, 0, 30, 20]
    assert boxes[5].tolist() == [60, 20, 90, 40]
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    assert areas.sum() == 90 * 60
    # A map that is bright in one cell lights the region whose box covers that cell.
    features = torch.zeros(1, 1, 6, 6)
    features[0, 0, 2, 5] = 1  # row 2, column 5: inside box 5
    assert pool_grid(features, 3)[0, :, 0].argmax() == 5


@given(grid=st.integers(1, 14), width=st.integers(1, 5000), height=st.integers(1, 5000))
def test_boxes_lie_inside_the_image(grid, width, height):
    boxes = grid_boxes(grid, width, height)
    assert boxes.shape == (grid * grid, 4)
    assert (boxes[:, 2:] > boxes[:, :2]).all()
    assert boxes.min() == 0
    np.testing.assert_allclose(boxes[:, 2:].max(0), [width, height], rtol=1e-6)
