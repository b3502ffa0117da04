"""Regions that are the cells of a grid, and the whole image."""

import numpy as np
import torch

from crossgaze.vision.backbones.base import Backbone
from crossgaze.vision.photos import Photo
from crossgaze.vision.sources.grid import GridSource


class Pixels(Backbone):
    """Gives the pixels themselves as a map."""

    def __init__(self):
        super().__init__("pixels", width=3, stride=1, mean=(0.0,) * 3, scale=(1.0,) * 3)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_cells_are_means_of_their_pixels_and_the_whole_is_the_mean_of_all():
    shown = np.random.default_rng(1).integers(0, 256, (4, 6, 3), np.uint8)
    photos = [Photo(shown, 60, 40), Photo(255 - shown, 60, 40)]
    source = GridSource(Pixels(), 2, 4, batch=2, whole=True)
    found = source(photos, ["a", "b"], lambda: None)
    assert source.regions == 5
    for photo, one in zip(photos, found, strict=True):
        parts = [(0, 2, 0, 3), (0, 2, 3, 6), (2, 4, 0, 3), (2, 4, 3, 6), (0, 4, 0, 6)]
        for (top, bottom, left, right), box, feature in zip(
            parts, one.boxes, one.features, strict=True
        ):
            np.testing.assert_allclose(box, [left / 6, top / 4, right / 6, bottom / 4], atol=1e-6)
            mean = photo.pixels[top:bottom, left:right].mean(axis=(0, 1))
            np.testing.assert_allclose(feature, mean, atol=1e-3)


def test_without_the_whole_there_are_the_cells_alone():
    photo = Photo(np.zeros((4, 4, 3), np.uint8), 4, 4)
    source = GridSource(Pixels(), 2, 4, batch=2)
    (found,) = source([photo], ["a"], lambda: None)
    assert found.boxes.shape == (4, 4)
    assert source.made_by["whole"] is False
