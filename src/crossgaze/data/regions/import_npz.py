"""A folder with one `.npz` an image as a region store."""

from __future__ import annotations

import struct
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.data.regions.import_batches import (
    MAX_LABEL,
    MAX_SIDE,
    ImageRegions,
    Progress,
    import_images,
    require_utf8_names,
    stamps,
)
from crossgaze.data.regions.renaming import Rename
from crossgaze.data.regions.store import FIELDS, RegionStore
from crossgaze.errors import FileFormatError, InputError, require_folder
from crossgaze.zips import open_zip

NPZ_LIMIT = 1 << 30  # bytes one image's arrays may unpack to
NPZ_ARRAYS = 1_000  # of one image; the public ones have ten
# What is read -> what files call it; the first that is there counts.
CALLED = {
    "features": ("features", "x", "feat"),
    "boxes": ("boxes", "bbox"),
    "width": ("image_w", "width"),
    "height": ("image_h", "height"),
}
LABELS = {
    "confidence": ("confidence", "conf"),
    "classes": ("classes", "objects_id"),
    "class_confidence": ("class_confidence", "objects_conf"),
    "attributes": ("attributes", "attrs_id"),
    "attribute_confidence": ("attribute_confidence", "attrs_conf"),
}
# What zipfile, its unpackers and NumPy raise, by experiment, on files that are damaged, encrypted,
# packed in an unknown way, or have an absurd header.
_NPZ_ERRORS = (
    *(ValueError, TypeError, KeyError, OSError, EOFError, RuntimeError, OverflowError, MemoryError),
    *(SyntaxError, TokenError, struct.error, zipfile.BadZipFile, zlib.error),
)


def import_npz(
    folder: str | Path,
    out: str | Path,
    *,
    regions: int | None = None,
    dtype: str = "float16",
    on_progress: Progress | None = None,
    rename: Rename | None = None,
) -> RegionStore:
    """Make a store of a folder with one `.npz` an image; goes on where it was stopped.

    Features are called `features`, `x` or `feat`, (n, d) or, beside n boxes, (d, n); boxes `boxes`
    or `bbox`, (n, 4), with the image's size `image_w` and `image_h`, or `width` and `height`.
    Classes, attributes and confidences, (n,), are read under the store's names for them and as
    `objects_id`, `objects_conf`, `attrs_id`, `attrs_conf` and `conf`. Each of these is in all files
    or in none; other arrays are reported as ignored. The id is the file name without `.npz`.

    Args:
        folder: where the files are.
        out: the store's folder.
        regions: regions kept an image, the first ones; None looks through the files for the most.
            What is cut off is counted in the report (`read_import_report`).
        dtype: "float16" or "float32".
        on_progress: called with (images read, images in all).
        rename: gives images their ids in the store.
    """
    root = require_folder(folder, "a folder of .npz files, one an image")
    files = sorted(root.glob("*.npz"))
    if not files:
        raise InputError(f"{root}: has no .npz file in it")
    require_utf8_names(files)
    if regions is None:
        regions = max(len(_image(file).features) for file in files)
    images = ((_image(file), number) for number, file in enumerate(files, 1))
    made_by = {
        "from": "npz",
        "folder": str(root.resolve()),
        "files": len(files),
        **stamps(files),
    }
    total = len(files)
    return import_images(
        images, total, Path(out), regions, dtype, made_by, total, on_progress, rename
    )


def _image(path: Path) -> ImageRegions:
    """Return the image in a file."""
    arrays, ignored = _read(path)
    if "features" not in arrays:
        names = ", ".join(CALLED["features"])
        raise FileFormatError(path, f"has none of {names}; it holds {sorted(ignored)}")
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu":
            raise FileFormatError(path, f"has {name} of type {array.dtype}, wanted numbers")
    features, boxes = arrays["features"], arrays.get("boxes")
    if features.ndim != 2 or 0 in features.shape:
        raise FileFormatError(path, f"has features of shape {features.shape}, wanted (n, d)")
    size = None
    if boxes is not None:
        if boxes.ndim != 2 or boxes.shape[1] != 4 or len(boxes) not in features.shape:
            raise FileFormatError(
                path,
                f"has features {features.shape}, boxes {boxes.shape}, wanted (n, d) and (n, 4)",
            )
        if features.shape[0] != len(boxes):
            features = features.T
        size = (_side(path, arrays, "width"), _side(path, arrays, "height"))
    with np.errstate(over="ignore"):  # what is not finite then is named by import_images
        return ImageRegions(
            id=path.stem,
            features=features.astype(np.float32),
            path=path,
            boxes=None if boxes is None else boxes.astype(np.float32),
            size=size,
            labels={
                name: _label(path, name, arrays[name], len(features))
                for name in LABELS
                if name in arrays
            },
            ignored=ignored,
        )


def _read(path: Path) -> tuple[dict[str, npt.NDArray[Any]], frozenset[str]]:
    """Return the arrays that a store can keep, by our names, and the names of the others."""
    try:
        with open_zip(path, most=NPZ_ARRAYS) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > NPZ_LIMIT:
            raise FileFormatError(
                path, f"unpacks to {unpacked:,} bytes, the limit is {NPZ_LIMIT:,}"
            )
        found: dict[str, npt.NDArray[Any]] = {}
        with warnings.catch_warnings(), np.load(path, allow_pickle=False) as arrays:
            warnings.simplefilter("ignore", UserWarning)  # of headers that Python 2 wrote
            left = set(arrays.files)
            sized = left.intersection(CALLED["boxes"])  # a size alone is not kept
            for name, names in (CALLED | LABELS).items():
                there = [other for other in names if other in left]
                if there and (sized or name not in ("width", "height")):
                    found[name] = np.asarray(arrays[there[0]])
                    left.remove(there[0])
    except _NPZ_ERRORS as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FileFormatError(path, f"does not read as an image's regions: {reason}") from None
    return found, frozenset(left)


def _side(path: Path, arrays: Mapping[str, npt.NDArray[Any]], name: str) -> int:
    """Return the image's width or height, in pixels."""
    if name not in arrays:
        raise FileFormatError(path, f"has boxes but none of {', '.join(CALLED[name])}")
    value = float(arrays[name].flat[0]) if arrays[name].size == 1 else 0.0
    if not (1 <= value <= MAX_SIDE and value == int(value)):
        found = str(arrays[name])[:40]
        raise FileFormatError(
            path, f"{name} is {found}, wanted a whole number from 1 to {MAX_SIDE:,}"
        )
    return int(value)


def _label(path: Path, name: str, array: npt.NDArray[Any], regions: int) -> npt.NDArray[Any]:
    """Return one number a region in the type of the store's field."""
    if array.shape != (regions,):
        raise FileFormatError(path, f"has {name} of shape {array.shape}, wanted ({regions},)")
    kind = np.dtype(FIELDS[name][0])
    if kind.kind == "i":
        if array.dtype.kind == "f":
            raise FileFormatError(path, f"has {name} of type {array.dtype}, wanted whole numbers")
        if int(array.min()) < -1 or int(array.max()) > MAX_LABEL:
            raise FileFormatError(
                path, f"{name} are {array.min()} to {array.max()}, wanted -1 or more"
            )
    return array.astype(kind)
