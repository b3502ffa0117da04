"""Fixed boxes and selective search."""

import numpy as np
import pytest

from crossgaze.errors import InputError
from crossgaze.evaluation.baselines import fixed_boxes, lattice_boxes, selective_search
from crossgaze.evaluation.coverage import box_iou


def test_a_lattice_of_two():
    found = {tuple(box) for box in lattice_boxes(2).tolist()}
    assert len(found) == 9
    assert (0.0, 0.0, 1.0, 1.0) in found
    assert (0.5, 0.5, 1.0, 1.0) in found


def test_the_most_frequent_place_comes_first_and_nothing_twice():
    often, seldom = [[0, 0, 0.5, 0.5]], [[0.5, 0.5, 1, 1]]
    found = fixed_boxes([np.array(b, np.float32) for b in [often, often, seldom]], 3, steps=4)
    assert box_iou(found[:1], often)[0, 0] >= 0.5
    assert box_iou(found[1:2], seldom)[0, 0] >= 0.5
    assert len(np.unique(found, axis=0)) == 3


def test_nothing_to_cover():
    with pytest.raises(InputError, match="no box"):
        fixed_boxes([np.empty((0, 4), np.float32)])


def test_selective_search_finds_a_square():
    pytest.importorskip("cv2", reason="needs opencv-contrib-python-headless")
    pixels = np.full((100, 100, 3), 255, np.uint8)
    pixels[30:70, 20:60] = 0
    found = selective_search(pixels)
    assert 1 <= len(found) <= 36
    assert found.min() >= 0
    assert found.max() <= 1
    assert box_iou(found, [[0.2, 0.3, 0.6, 0.7]]).max() > 0.8
