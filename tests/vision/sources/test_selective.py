"""Selective search, where OpenCV has it."""

import sys
import types

import numpy as np
import pytest

from crossgaze.errors import MissingExtraError
from crossgaze.vision.photos import Photo
from crossgaze.vision.sources.selective import SelectiveSearch


def search():
    cv2 = pytest.importorskip("cv2", reason="needs opencv-contrib-python-headless")
    if not hasattr(cv2, "ximgproc"):
        pytest.skip("this OpenCV is without its extra modules, and so without selective search")
    return SelectiveSearch()


def test_a_square_on_a_plain_ground_is_found():
    shown = np.full((320, 320, 3), 230, np.uint8)
    shown[80:240, 160:288] = (200, 20, 20)
    boxes = search()(Photo(shown, 1000, 500), "a.jpg")
    assert 1 <= len(boxes) <= 36
    assert boxes.min() >= 0
    assert boxes.max() <= 1
    wanted = [0.5, 0.25, 0.9, 0.75]
    assert np.abs(boxes - wanted).max(axis=1).min() < 0.02


def test_a_photograph_with_nothing_in_it_has_a_region():
    boxes = search()(Photo(np.zeros((320, 320, 3), np.uint8), 5, 3), "a.jpg")
    assert 1 <= len(boxes) <= 36
    assert (boxes[:, 2:] > boxes[:, :2]).all()


@pytest.mark.parametrize("module", [None, types.ModuleType("cv2")], ids=["none", "plain"])
def test_an_opencv_without_it_is_said_at_once(monkeypatch, module):
    monkeypatch.setitem(sys.modules, "cv2", module)
    with pytest.raises(MissingExtraError, match=r"opencv-contrib.*crossgaze\[selective-search\]"):
        SelectiveSearch()
