"""What importers of boxes and features share: one image, and appending many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import InputError

Progress = Callable[[int, int], None]
BATCH = 64


@dataclass(frozen=True)
class ImageRegions:
    """One image as an importer read it: features (n, d), and boxes (n, 4) with the image's size."""

    id: str
    features: npt.NDArray[np.float32]
    boxes: npt.NDArray[np.float32] | None
    size: tuple[int, int] | None

    @property
    def fields(self) -> list[str]:
        """The store's fields that this image fills."""
        return ["counts", *(["boxes", "sizes"] if self.boxes is not None else [])]


def import_images(
    images: Iterator[tuple[ImageRegions, int]],
    total: int,
    out: Path,
    regions: int,
    dtype: str,
    made_by: dict[str, Any],
    on_progress: Progress | None,
) -> RegionStore:
    """Append what the iterator gives, in batches, leaving out what is in the store already.

    The ids met are remembered, so that an id that comes twice is an error in the second run too.
    """
    batch: list[ImageRegions] = []
    seen: set[str] = set()
    writer: RegionWriter | None = None
    try:
        for image, done in images:
            if writer is None:
                width, fields = image.features.shape[1], image.fields
                writer = RegionWriter(
                    out, regions, width, dtype=dtype, fields=fields, made_by=made_by
                )
            if image.id in seen:
                raise InputError(f"{made_by['from']}: image id {image.id!r} occurs twice")
            if image.features.shape[1] != writer.head.width:
                raise InputError(
                    f"image {image.id!r}: features are {image.features.shape[1]} wide, "
                    f"those before it {writer.head.width}"
                )
            if image.fields != fields:
                raise InputError(f"image {image.id!r}: boxes must be in every file or in none")
            seen.add(image.id)
            if image.id not in writer:
                batch.append(image)
            if len(batch) == BATCH:
                _append(writer, batch)
                batch = []
            if on_progress:
                on_progress(done, total)
        if writer is not None:
            _append(writer, batch)
    finally:
        if writer is not None:
            writer.close()
    return RegionStore(out)


def _append(writer: RegionWriter, images: Sequence[ImageRegions]) -> None:
    """Append images of unequal region counts as one padded batch."""
    if not images:
        return
    k = writer.head.regions
    counts = np.array([min(len(image.features), k) for image in images])
    features = np.zeros((len(images), k, writer.head.width), np.float32)
    boxes = np.zeros((len(images), k, 4), np.float32)
    for row, (image, count) in enumerate(zip(images, counts, strict=True)):
        features[row, :count] = image.features[:count]
        if image.boxes is not None:
            boxes[row, :count] = image.boxes[:count]
    columns: dict[str, npt.ArrayLike] = {"counts": counts}
    if images[0].boxes is not None:
        columns |= {"boxes": boxes, "sizes": np.array([image.size for image in images])}
    writer.append([image.id for image in images], features, **columns)
