"""Anchors, by hand."""

import torch

from crossgaze.vision.objects.anchors import level_anchors


def test_two_cells_two_sides_two_ratios():
    found = level_anchors(2, [0.2, 0.4], [1.0, 4.0])
    assert found.shape == (2 * 2 * 4, 4)
    # First cell, middle (0.25, 0.25): a square of 0.2, then one 4 times as high as wide.
    torch.testing.assert_close(found[0], torch.tensor([0.15, 0.15, 0.35, 0.35]))
    torch.testing.assert_close(found[1], torch.tensor([0.2, 0.05, 0.3, 0.45]))
    torch.testing.assert_close(found[2], torch.tensor([0.05, 0.05, 0.45, 0.45]))
    # The second cell is the one to the right, the third the one below the first.
    torch.testing.assert_close(found[4] - found[0], torch.tensor([0.5, 0.0, 0.5, 0.0]))
    torch.testing.assert_close(found[8] - found[0], torch.tensor([0.0, 0.5, 0.0, 0.5]))


def test_proportions_keep_the_area():
    found = level_anchors(3, [0.3], [0.5, 1.0, 2.0])
    areas = (found[:, 2] - found[:, 0]) * (found[:, 3] - found[:, 1])
    torch.testing.assert_close(areas, torch.full((27,), 0.09))
