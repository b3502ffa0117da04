"""Regions that the region model finds, and the features it gives boxes from elsewhere."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.vision.objects.detector import ObjectDetector
from crossgaze.vision.photos import Photo
from crossgaze.vision.sources.base import Found, Stop, batches

REGIONS = 36
# The boxes of a photograph, (n, 4) shares, from its pixels, its size and its name.
Boxes = Callable[[Photo, str], npt.NDArray[np.float32]]


class ObjectSource:
    """Finds up to 36 regions a photograph, with nouns and attributes.

    Args:
        detector: the region model, on its device.
        batch: photographs a forward pass.
    """

    fields: tuple[str, ...] = (
        "confidence",
        "classes",
        "class_confidence",
        "attributes",
        "attribute_confidence",
    )

    def __init__(self, detector: ObjectDetector, batch: int) -> None:
        self.detector, self.batch = detector, batch
        self.regions, self.width = REGIONS, detector.width
        self.size = self.multiple = detector.size
        self.labels: Mapping[str, Sequence[str]] = {
            "classes": detector.nouns,
            "attributes": detector.attributes,
        }
        self.device = next(detector.parameters()).device
        self.made_by: Mapping[str, Any] = {"regions": "objects", **_made_by(detector)}

    def __call__(self, photos: Sequence[Photo], names: Sequence[str], go_on: Stop) -> list[Found]:
        """Find the regions of some photographs."""
        found: list[Found | None] = [None] * len(photos)
        for rows, pixels in batches(photos, self.batch):
            go_on()
            for row, regions in zip(rows, self.detector(pixels.to(self.device)), strict=True):
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

    Args:
        detector: the region model, on its device.
        boxes: the boxes of a photograph.
        regions: k, the most that a photograph has.
        made_by: where the boxes come from.
        batch: photographs a forward pass.
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
    ) -> None:
        self.detector, self.boxes, self.batch = detector, boxes, batch
        self.regions, self.width = regions, detector.width
        self.size = self.multiple = detector.size
        self.device = next(detector.parameters()).device
        self.made_by: Mapping[str, Any] = {**made_by, **_made_by(detector)}

    def __call__(self, photos: Sequence[Photo], names: Sequence[str], go_on: Stop) -> list[Found]:
        """Pool the features of some photographs' boxes."""
        found: list[Found | None] = [None] * len(photos)
        for rows, pixels in batches(photos, self.batch):
            go_on()
            boxes = [self.boxes(photos[row], names[row]) for row in rows]
            for row, mine, features in zip(
                rows, boxes, self.detector.pool(pixels.to(self.device), boxes), strict=True
            ):
                found[row] = Found(features, mine)
        return [one for one in found if one is not None]


def _made_by(detector: ObjectDetector) -> dict[str, Any]:
    """Return what decides the features: the region model's weights and those of its backbone."""
    crc = 0
    for tensor in detector.network.state_dict().values():
        crc = zlib.crc32(tensor.detach().cpu().contiguous().float().numpy().tobytes(), crc)
    backbone = detector.taps.backbone
    return {
        "backbone": backbone.name,
        "weights": backbone.fingerprint(),
        "detector": f"{crc:08x}",
        "size": detector.size,
    }
