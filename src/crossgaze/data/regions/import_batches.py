"""What importers of boxes and features share: one image, and appending many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.data.regions.import_report import ImportReport
from crossgaze.data.regions.renaming import Rename
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import FileFormatError, InputError

Progress = Callable[[int, int], None]
BATCH = 64
MAX_SIDE = 1_000_000  # pixels of an image's width or height
MAX_LABEL = np.iinfo(np.int32).max


@dataclass(frozen=True)
class ImageRegions:
    """One image as an importer read it.

    Args:
        id: its id.
        features: (n, d).
        path: the file it was read from.
        line: the line, in a file of several images.
        boxes: (n, 4), if there are any, with the image's `size`.
        size: width and height.
        labels: other fields of the store by name (see FIELDS), each (n,).
        ignored: names of arrays or columns that were there and not read.
    """

    id: str
    features: npt.NDArray[np.float32]
    path: Path
    line: int | None = None
    boxes: npt.NDArray[np.float32] | None = None
    size: tuple[int, int] | None = None
    labels: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()

    @property
    def fields(self) -> list[str]:
        """The store's fields that this image fills."""
        return ["counts", *(["boxes", "sizes"] if self.boxes is not None else []), *self.labels]

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.path}" if self.line is None else f"{self.path}, line {self.line}"

    def error(self, problem: str) -> FileFormatError:
        """Return an error that names the file and the line."""
        return FileFormatError(self.path, problem, line=self.line)


def stamps(files: Sequence[Path]) -> dict[str, int]:
    """Return what tells whether files have changed since, for a store's `made_by`."""
    found = [path.stat() for path in files]
    return {
        "bytes": sum(status.st_size for status in found),
        "modified": max(status.st_mtime_ns for status in found),
    }


def require_utf8_names(paths: Iterable[Path]) -> None:
    """Refuse file names that a store cannot keep as text, before anything is written."""
    for path in paths:
        try:
            str(path.resolve()).encode()
        except UnicodeEncodeError:
            raise InputError(f"{str(path)!r}: is not a name in UTF-8, it cannot be kept") from None


def import_images(
    images: Iterator[tuple[ImageRegions, int]],
    total: int,
    out: Path,
    regions: int,
    dtype: str,
    made_by: Mapping[str, Any],
    files: int,
    on_progress: Progress | None,
    rename: Rename | None = None,
) -> RegionStore:
    """Append what the iterator gives, in batches, leaving out what is in the store already.

    The ids met are remembered, so that an id that comes twice is an error in the second run too.

    Args:
        images: at least one image, each with how much has been read, up to `total`.
        total: what progress counts to.
        out: the store's folder.
        regions: regions kept an image.
        dtype: "float16" or "float32".
        made_by: what the store remembers of its making; "from" names the kind of files.
        files: how many files are read, for the report.
        on_progress: called with (read, total).
        rename: gives images their ids in the store.
    """
    if rename is not None:
        images = ((replace(image, id=rename(image.id)), done) for image, done in images)
    first, begun = next(images)
    width, seen, ignored = first.features.shape[1], dict[str, str](), set[str]()
    regions_cut = images_cut = 0
    batch: list[ImageRegions] = []
    with RegionWriter(
        out, regions, width, dtype=dtype, fields=first.fields, made_by=made_by
    ) as writer:
        for image, done in chain([(first, begun)], images):
            _require_fitting(image, first, regions, dtype)
            if image.id in seen:
                raise image.error(f"image id {image.id!r} was already given by {seen[image.id]}")
            seen[image.id] = image.where
            ignored |= image.ignored
            cut = max(0, len(image.features) - regions)
            regions_cut, images_cut = regions_cut + cut, images_cut + bool(cut)
            if image.id not in writer:
                batch.append(image)
            if len(batch) == BATCH:
                _append(writer, batch)
                batch = []
            if on_progress:
                on_progress(done, total)
        _append(writer, batch)
        ImportReport(
            str(made_by["from"]),
            files,
            len(writer),
            regions_cut,
            images_cut,
            tuple(sorted(ignored)),
        ).save(out)
    return RegionStore(out)


def _require_fitting(image: ImageRegions, first: ImageRegions, regions: int, dtype: str) -> None:
    """Refuse an image that is unlike the first, or whose numbers the store cannot hold."""
    width, wanted = image.features.shape[1], first.features.shape[1]
    if width != wanted:
        raise image.error(f"features are {width} wide, those of {first.where} {wanted}")
    for name in [*first.fields, *image.fields]:
        if (name in first.fields) != (name in image.fields):
            verb = "has" if name in first.fields else "has no"
            raise image.error(f"{name} must be in every file or in none, {first.where} {verb} such")
    numbers = {"features": (image.features, dtype), "boxes": (image.boxes, "float32")}
    numbers |= {name: (array, "float32") for name, array in image.labels.items()}
    for name, (array, kind) in numbers.items():
        if array is not None and not _finite(array[:regions], kind):
            raise image.error(f"{name} are not all finite as {kind}")


def _finite(array: npt.NDArray[Any], dtype: str) -> bool:
    with np.errstate(over="ignore"):  # an overflow is what is looked for
        return bool(np.isfinite(array.astype(dtype, copy=False)).all())


def _append(writer: RegionWriter, images: Sequence[ImageRegions]) -> None:
    """Append images of unequal region counts as one padded batch."""
    if not images:
        return
    k = writer.head.regions
    columns: dict[str, npt.ArrayLike] = {
        "counts": np.array([min(len(image.features), k) for image in images])
    }
    if images[0].boxes is not None:
        columns["boxes"] = _padded([image.boxes for image in images if image.boxes is not None], k)
        columns["sizes"] = np.array([image.size for image in images])
    for name in images[0].labels:
        columns[name] = _padded([image.labels[name] for image in images], k)
    features = _padded([image.features for image in images], k)
    writer.append([image.id for image in images], features, **columns)


def _padded(arrays: Sequence[npt.NDArray[Any]], k: int) -> npt.NDArray[Any]:
    """Return (B, k, ...) of B arrays (n, ...): their first k rows, zeros where there are fewer."""
    padded = np.zeros((len(arrays), k, *arrays[0].shape[1:]), arrays[0].dtype)
    for row, array in enumerate(arrays):
        padded[row, : len(array)] = array[:k]
    return padded
