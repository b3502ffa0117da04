"""Regions that are the cells of a grid, with a backbone's features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from crossgaze.errors import InputError
from crossgaze.vision.backbones import Backbone
from crossgaze.vision.grid import grid_boxes, pool_grid
from crossgaze.vision.photos import Photo
from crossgaze.vision.sources.base import WHOLE, Found, Stop, batches


class GridSource:
    """Cuts every photograph into g x g cells.

    Args:
        model: the backbone, on its device.
        grid: g.
        size: input pixels; None takes one map cell a region, and an 8 x 8 map for g below 7.
        batch: photographs a forward pass.
        whole: whether the whole image is one more region, the last.
    """

    fields: tuple[str, ...] = ()
    labels: Mapping[str, Sequence[str]] = MappingProxyType({})

    def __init__(
        self, model: Backbone, grid: int, size: int | None, batch: int, *, whole: bool = False
    ) -> None:
        self.model, self.grid, self.batch, self.whole = model, grid, batch, whole
        self.size = size or model.stride * (grid if grid >= 7 else 8)
        if self.size % model.stride:
            # Else the last cells of the map would lie half outside, and boxes would not fit.
            raise InputError(
                f"size: got {self.size}, wanted a multiple of {model.stride} for {model.name}"
            )
        self.regions, self.width, self.multiple = grid**2 + whole, model.width, model.stride
        self.device = model.mean.device
        self.made_by: Mapping[str, Any] = {
            "regions": "grid",
            "grid": grid,
            "whole": whole,
            "backbone": model.name,
            "weights": model.fingerprint(),
            "size": self.size,
        }

    def __call__(self, photos: Sequence[Photo], names: Sequence[str], go_on: Stop) -> list[Found]:
        """Run the network over photographs, in batches of one shape."""
        features = torch.empty(len(photos), self.regions, self.width, device=self.device)
        with torch.inference_mode():
            for rows, pixels in batches(photos, self.batch):
                go_on()
                maps = self.model(pixels.to(self.device))  # (b, d, h, w)
                if maps.shape[:2] != (len(rows), self.width):
                    raise InputError(
                        f"backbone {self.model.name!r}: gave features of shape "
                        f"{tuple(maps.shape)}, wanted ({len(rows)}, {self.width}, h, w)"
                    )
                features[rows, : self.grid**2] = pool_grid(maps, self.grid)
                if self.whole:
                    features[rows, -1:] = pool_grid(maps, 1)
        cells = grid_boxes(self.grid, 1, 1)
        cells = np.concatenate([cells, WHOLE]) if self.whole else cells
        return [Found(row, cells) for row in features.cpu().numpy().astype(np.float32, copy=False)]
