"""Regions that the region model finds, and the features it gives boxes from elsewhere."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.config import to_dict
from crossgaze.vision.objects.detector import ObjectDetector
from crossgaze.vision.photos import Photo
from crossgaze.vision.sources.base import WHOLE, Found, Stop, batches

# The boxes of a photograph, (n, 4) shares, from its pixels, its size and its name; perhaps none.
Boxes = Callable[[Photo, str], npt.NDArray[np.float32]]


class ObjectSource:
    """Finds up to 36 regions a photograph (the model says how many), with nouns and attributes.

    Args:
        detector: the region model, on its device.
        batch: photographs a forward pass.
        whole: whether the whole image is one more region, the last.
    """

    fields: tuple[str, ...] = (
        "confidence",
        "classes",
        "class_confidence",
        "attributes",
        "attribute_confidence",
    )

    def __init__(self, detector: ObjectDetector, batch: int, *, whole: bool = False) -> None:
        self.detector, self.batch, self.whole = detector, batch, whole
        self.regions, self.width = detector.selection.count + whole, detector.width
        self.size = self.multiple = detector.size
        self.labels: Mapping[str, Sequence[str]] = {
            "classes": detector.nouns,
            "attributes": detector.attributes,
        }
        self.device = next(detector.parameters()).device
        self.made_by: Mapping[str, Any] = {
            "regions": "objects",
            "whole": whole,
            **model_stamp(detector),
        }

    def __call__(self, photos: Sequence[Photo], names: Sequence[str], go_on: Stop) -> list[Found]:
        """Find the regions of some photographs."""
        found: list[Found | None] = [None] * len(photos)
        for rows, pixels in batches(photos, self.batch):
            go_on()
            regions_of = self.detector(pixels.to(self.device), whole=self.whole)
            for row, regions in zip(rows, regions_of, strict=True):
                found[row] = Found(
                    regions.features,
                    regions.boxes,
                    {
                        "confidence": regions.confidence,
                        "classes": regions.nouns,
                        "class_confidence": regions.noun_probability,
                        "attributes": regions.attributes,
                        "attribute_confidence": regions.attribute_probability,
                    },
                )
        return [one for one in found if one is not None]


class BoxSource:
    """Gives boxes that come from elsewhere the region model's features.

    A photograph for which there is no box is one region, the whole image.

    Args:
        detector: the region model, on its device.
        boxes: the boxes of a photograph.
        regions: the most boxes that a photograph has.
        made_by: where the boxes come from.
        batch: photographs a forward pass.
        whole: whether the whole image is one more region, the last.
    """

    fields: tuple[str, ...] = ()
    labels: Mapping[str, Sequence[str]] = MappingProxyType({})

    def __init__(
        self,
        detector: ObjectDetector,
        boxes: Boxes,
        regions: int,
        made_by: dict[str, Any],
        batch: int,
        *,
        whole: bool = False,
    ) -> None:
        self.detector, self.boxes, self.batch, self.whole = detector, boxes, batch, whole
        self.regions, self.width = regions + whole, detector.width
        self.size = self.multiple = detector.size
        self.device = next(detector.parameters()).device
        self.made_by: Mapping[str, Any] = {**made_by, "whole": whole, **model_stamp(detector)}

    def __call__(self, photos: Sequence[Photo], names: Sequence[str], go_on: Stop) -> list[Found]:
        """Pool the features of some photographs' boxes."""
        found: list[Found | None] = [None] * len(photos)
        for rows, pixels in batches(photos, self.batch):
            go_on()
            boxes = [self._boxes(photos[row], names[row]) for row in rows]
            for row, mine, features in zip(
                rows, boxes, self.detector.pool(pixels.to(self.device), boxes), strict=True
            ):
                found[row] = Found(features, mine)
        return [one for one in found if one is not None]

    def _boxes(self, photo: Photo, name: str) -> npt.NDArray[np.float32]:
        boxes = self.boxes(photo, name)
        return np.concatenate([boxes, WHOLE]) if self.whole or not len(boxes) else boxes


def model_stamp(detector: ObjectDetector) -> dict[str, Any]:
    """Return what decides the regions: the region model with its settings, and its backbone."""
    settings = {"network": to_dict(detector.network.config), "choice": to_dict(detector.selection)}
    crc = zlib.crc32(json.dumps(settings, sort_keys=True).encode())
    for tensor in detector.network.state_dict().values():
        crc = zlib.crc32(tensor.detach().cpu().contiguous().float().numpy().tobytes(), crc)
    backbone = detector.taps.backbone
    return {
        "backbone": backbone.name,
        "weights": backbone.fingerprint(),
        "detector": f"{crc:08x}",
        "size": detector.size,
    }
