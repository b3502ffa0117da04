"""A folder with one `.npz` an image as a region store."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.data.regions.import_batches import ImageRegions, Progress, import_images
from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import FileFormatError, InputError, require_folder

NPZ_LIMIT = 1 << 30  # bytes one image's arrays may unpack to


def import_npz(
    folder: str | Path,
    out: str | Path,
    *,
    regions: int | None = None,
    dtype: str = "float16",
    on_progress: Progress | None = None,
) -> RegionStore:
    """Make a store of a folder with one `.npz` an image; goes on where it was stopped.

    Features are called `features`, `x` or `feat`, (n, d) or, beside n boxes, (d, n); boxes `boxes`
    or `bbox`, (n, 4), with the image's size `image_w` and `image_h`, or `width` and `height`; all
    files have boxes or none has. The id is the file name without `.npz`.

    Args:
        folder: where the files are.
        out: the store's folder.
        regions: regions kept an image, the first ones; None looks through the files for the most.
        dtype: "float16" or "float32".
        on_progress: called with (images read, images in all).
    """
    root = require_folder(folder, "a folder of .npz files, one an image")
    files = sorted(root.glob("*.npz"))
    if not files:
        raise InputError(f"{root}: has no .npz file in it")
    if regions is None:
        regions = max(len(_npz_image(file).features) for file in files)
    images = ((_npz_image(file), number) for number, file in enumerate(files, 1))
    made_by = {"from": "npz", "folder": str(root.resolve())}
    return import_images(images, len(files), Path(out), regions, dtype, made_by, on_progress)


def _npz_image(path: Path) -> ImageRegions:
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > NPZ_LIMIT:
            raise FileFormatError(
                path, f"unpacks to {unpacked:,} bytes, the limit is {NPZ_LIMIT:,}"
            )
        with np.load(path, allow_pickle=False) as arrays:
            features = _first(path, arrays, "features", "x", "feat")
            if "boxes" not in arrays and "bbox" not in arrays:
                boxes = None
            else:
                boxes = _first(path, arrays, "boxes", "bbox").astype(np.float32)
                width = int(_first(path, arrays, "image_w", "width"))
                height = int(_first(path, arrays, "image_h", "height"))
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, TypeError) as error:
        raise FileFormatError(path, f"does not read as an image's regions: {error}") from None
    if features.ndim != 2 or 0 in features.shape:
        raise FileFormatError(path, f"has features of shape {features.shape}, wanted (n, d)")
    if boxes is None:
        return ImageRegions(path.stem, features.astype(np.float32), None, None)
    if boxes.ndim != 2 or boxes.shape[1] != 4 or len(boxes) not in features.shape:
        raise FileFormatError(
            path, f"has features {features.shape}, boxes {boxes.shape}, wanted (n, d) and (n, 4)"
        )
    if features.shape[0] != len(boxes):
        features = features.T
    return ImageRegions(path.stem, features.astype(np.float32), boxes, (width, height))


def _first(path: Path, arrays: Any, *names: str) -> npt.NDArray[Any]:  # noqa: ANN401 (NpzFile)
    for name in names:
        if name in arrays:
            return np.asarray(arrays[name])
    raise FileFormatError(path, f"has none of {', '.join(names)}; it holds {list(arrays)}")
