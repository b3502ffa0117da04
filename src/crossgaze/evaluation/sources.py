"""Where an evaluation's captions and regions come from: a data set, a store or its own files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.captions.precomp import SPLITS, precomp_layout, read_precomp
from crossgaze.data.captions.reading import detect_format, read_captions
from crossgaze.data.detect import holds_questions
from crossgaze.data.npyfiles import map_npy
from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import InputError


@dataclass(frozen=True, eq=False)
class RegionSource:
    """The regions of N images, mapped; read when they are wanted.

    Args:
        name: the store's folder or the file of features, for messages.
        rows: (N,) the row of each image in what follows.
        features: (R, k, d).
        counts: (R,) how many regions are real, or None where all are.
        boxes: (R, k, 4) x1, y1, x2, y2, or None.
        sizes: (N, 2) width and height of each image, or None.
    """

    name: str
    rows: npt.NDArray[np.int64]
    features: npt.NDArray[Any]
    counts: npt.NDArray[np.int32] | None = None
    boxes: npt.NDArray[np.float32] | None = None
    sizes: npt.NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        """How wide a region's feature is."""
        return int(self.features.shape[-1])

    def read(
        self, images: Sequence[int] | slice
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32] | None]:
        """Return features (B, k, d) and counts (B,) of some of the images, in memory."""
        rows = self.rows[images if isinstance(images, slice) else list(images)]
        counts = None if self.counts is None else np.asarray(self.counts[rows])
        return np.asarray(self.features[rows]), counts


def read_split(
    data: str | Path,
    split: str | None = None,
    *,
    format: str | None = None,  # noqa: A002
) -> CaptionedImages:
    """Read one split of a captioned data set.

    Args:
        data: anything `crossgaze data` reads.
        split: its name; "test" by default, or all of a set that has no splits.
        format: the data's format, where its files do not tell.
    """
    if holds_questions(data, format):
        raise InputError(f"{data}: holds questions, wanted captioned images")
    kind = format or detect_format(data)
    if kind == "precomp" and Path(data).is_dir() and split in SPLITS:
        return read_precomp(data, splits=split)  # only so is testall read beside test
    captioned = read_captions(data, format=format)
    if split is None and set(captioned.splits) == {""}:
        return captioned
    if split is None and len(set(captioned.splits)) == 1 and kind == "precomp":
        return captioned  # one file was named
    return captioned.split(split or "test")


def open_regions(
    captioned: CaptionedImages, data: str | Path, store: str | Path | None = None
) -> RegionSource:
    """Return the regions of a split's images.

    Args:
        captioned: the split.
        data: where it was read from; a `*_precomp` folder has features of its own.
        store: a region store with all of its images.
    """
    if store is not None:
        found = RegionStore(store)
        rows = found.rows(captioned.images)
        sizes = None if found.sizes is None else np.asarray(found.sizes[rows])
        return RegionSource(str(store), rows, found.features, found.counts, found.boxes, sizes)
    splits = sorted(set(captioned.splits))
    folder = Path(data) if Path(data).is_dir() else Path(data).parent
    if len(splits) == 1 and (folder / f"{splits[0]}_caps.txt").is_file():
        layout = precomp_layout(folder, splits[0])
        if layout.features is not None:
            array: npt.NDArray[Any] = map_npy(layout.features)
            array = array[:, None] if array.ndim == 2 else array
            names = {name: row for row, name in enumerate(_precomp_ids(folder, splits[0]))}
            rows = np.array([names[name] for name in captioned.images], np.int64)
            return RegionSource(str(layout.features), rows * layout.row_step, array)
    raise InputError(
        f"{data}: has no region features of its own; give a region store with --store "
        "(crossgaze extract and crossgaze store import make one)"
    )


def _precomp_ids(folder: Path, split: str) -> tuple[str, ...]:
    return read_precomp(folder, splits=split).images
