"""`*_ims.npy` files as a region store: mapped where they lie, if their layout allows."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.data.npyfiles import map_npy
from crossgaze.data.regions.import_batches import (
    BATCH,
    Progress,
    require_utf8_names,
    stamps,
)
from crossgaze.data.regions.store import Commit, Field, Head, RegionStore
from crossgaze.data.regions.writer import (
    FEATURE_TYPES,
    RegionWriter,
    require_store_folder,
    write_head,
)
from crossgaze.errors import FileFormatError, InputError, require_file
from crossgaze.files import only_writer, write_atomically


def import_npy(
    npy: str | Path,
    out: str | Path,
    *,
    ids: Sequence[str] | None = None,
    row_step: int = 1,
    dtype: str | None = None,
    on_progress: Progress | None = None,
) -> RegionStore:
    """Make a store of an `*_ims.npy` file: (N, k, d) region features, or (N, d) for one region.

    A little-endian fp16 or fp32 file in C order is mapped where it lies and not copied; any other
    layout, or asking for another `dtype`, copies it; a copy that was stopped goes on, unless the
    file has changed meanwhile.

    Args:
        npy: the file.
        out: the store's folder, new.
        ids: image ids; row numbers as text if not given.
        row_step: 5 where each image was stored five times (image i is row 5 i).
        dtype: "float16" or "float32" to convert; None keeps what can be kept.
        on_progress: called with (images copied, images in all).
    """
    path = require_file(npy, "a NumPy array of region features (N, k, d)")
    require_utf8_names([path])
    array, _ = _map_npy(path)
    rows = array.shape[0]
    if rows % row_step:
        raise FileFormatError(path, f"has {rows} rows, wanted a multiple of {row_step}")
    images = rows // row_step
    names = [str(row) for row in range(images)] if ids is None else list(ids)
    if len(names) != images:
        raise FileFormatError(path, f"has {images} images, but {len(names)} ids were given")
    if len(set(names)) != images:
        raise InputError(f"ids: {images - len(set(names))} of the {images} ids repeat another")
    if dtype is None or FEATURE_TYPES.get(dtype) == array.dtype.str:
        head = mapped_head(path, row_step)
        if head is not None:
            return _map_store(Path(out), head, names)
    made_by = {"from": "npy", "file": str(path.resolve()), "row_step": row_step, **stamps([path])}
    regions, width = array.shape[1:]
    with RegionWriter(
        out, regions, width, dtype=dtype or "float32", fields=[], made_by=made_by
    ) as writer:
        for start in range(0, images, BATCH):
            batch = [n for n in names[start : start + BATCH] if n not in writer]
            if batch and len(batch) < len(names[start : start + BATCH]):
                raise InputError(f"{out}: holds part of a batch, it was not made by this import")
            if batch:
                chosen = array[start * row_step : (start + len(batch)) * row_step : row_step]
                writer.append(batch, np.asarray(chosen))
            if on_progress:
                on_progress(min(start + BATCH, images), images)
    return RegionStore(out)


def _map_npy(path: Path) -> tuple[npt.NDArray[Any], int]:
    """Return the array, mapped and three-dimensional, and where its data begins."""
    array = map_npy(path)
    if array.dtype.kind != "f" or array.ndim not in (2, 3) or 0 in array.shape:
        raise FileFormatError(
            path, f"holds {array.dtype} of shape {array.shape}, wanted floats (N, k, d) or (N, d)"
        )
    offset = int(array.offset)
    return (array if array.ndim == 3 else array[:, None, :]), offset


def mapped_head(path: Path, row_step: int = 1) -> Head | None:
    """Return the head of a store that lies in an `.npy` file, or None if it cannot lie there.

    Args:
        path: the file.
        row_step: 5 where each image was stored five times.
    """
    array, offset = _map_npy(path)
    if not array.flags.c_contiguous or array.dtype.str not in FEATURE_TYPES.values():
        return None
    with path.open("rb") as file:
        header_crc = zlib.crc32(file.read(offset))
    place = path.resolve()
    regions, width = array.shape[1:]
    field = Field(
        "features",
        array.dtype.str,
        (regions, width),
        place,
        offset=offset,
        row_step=row_step,
        external=True,
        header_crc=header_crc,
    )
    return Head(regions, width, (field,), {}, {"from": "npy", "file": str(place)})


def _map_store(out: Path, head: Head, names: Sequence[str]) -> RegionStore:
    """Write a head and a log that point into a file; the head last, so the store appears whole."""
    if (out / "head.json").exists():
        raise InputError(f"{out}: there is a region store already, wanted a new folder")
    require_store_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    with only_writer(out, "this region store"):
        lines = [
            Commit(start, tuple(names[start : start + 1024]), {}).line()
            for start in range(0, len(names), 1024)
        ]
        write_atomically(out / "log.jsonl", "".join(lines))
        write_head(out, head)
    return RegionStore(out)
