"""Boxes from a user's own detector: COCO's JSON, or bottom-up-attention's TSV.

COCO's JSON is a list of detections, `[{"image_id": ..., "bbox": [x, y, w, h], "score": ...}]`, or a
whole annotation file with `images` and `annotations`. A photograph is found by its path, its name
or its name without the ending; with `images` by their `file_name`; and COCO's numbers by the digits
that end a name (`COCO_val2014_000000391895.jpg`).
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.data.regions.import_tsv import is_tsv, tsv_boxes
from crossgaze.errors import FileFormatError, InputError, require_file
from crossgaze.vision.photos import Photo

MOST = 100  # boxes of a photograph that are taken, the surest first
Floats = npt.NDArray[np.float32]


class GivenBoxes:
    """Boxes by photograph.

    Args:
        path: the file they came from.
        boxes: for each image (n, 4), x1, y1, x2, y2 in pixels of the upright photograph.
        fingerprint: of the file.
    """

    def __init__(self, path: Path, boxes: Mapping[str, Floats], fingerprint: str) -> None:
        self.path, self.fingerprint = path, fingerprint
        self._boxes = boxes
        self.most = max((len(found) for found in boxes.values()), default=0)
        if not self.most:
            raise FileFormatError(path, "holds no box")

    def __call__(self, photo: Photo, name: str) -> Floats:
        """Return a photograph's boxes as shares of its sides, (n, 4)."""
        found = self._find(name)
        shares = found / np.array([photo.width, photo.height] * 2, np.float32)
        shares = shares.clip(0, 1)
        good = (shares[:, 2] > shares[:, 0]) & (shares[:, 3] > shares[:, 1])
        if not good.any():
            raise InputError(f"{self.path}: no box of {name!r} lies inside the photograph")
        return shares[good]

    def _find(self, name: str) -> Floats:
        path = PurePosixPath(name)
        digits = re.search(r"(\d+)$", path.stem)
        keys = [name, path.name, path.stem]
        keys += [str(int(digits[1]))] if digits else []
        for key in keys:
            if key in self._boxes:
                return self._boxes[key]
        raise InputError(f"{self.path}: has no box for the photograph {name!r}")


def read_boxes(path: str | Path) -> GivenBoxes:
    """Read a file of boxes, COCO's JSON or bottom-up-attention's TSV."""
    file = require_file(Path(path), "a file of boxes")
    content = file.read_bytes()
    fingerprint = f"{zlib.crc32(content):08x}"
    if is_tsv(file):
        return GivenBoxes(file, tsv_boxes(file), fingerprint)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise FileFormatError(file, "is neither JSON nor bottom-up-attention's TSV") from None
    return GivenBoxes(file, _coco(file, found), fingerprint)


def _coco(path: Path, found: Any) -> dict[str, Floats]:  # noqa: ANN401 (JSON is Any)
    names: dict[Any, str] = {}
    if isinstance(found, dict):
        try:
            names = {image["id"]: str(image["file_name"]) for image in found["images"]}
            found = found["annotations"]
        except (KeyError, TypeError):
            raise FileFormatError(path, "has no images and annotations as COCO's JSON") from None
    if not isinstance(found, list):
        raise FileFormatError(path, "is not a list of detections")
    rows: dict[str, list[tuple[float, tuple[float, ...]]]] = {}
    for number, entry in enumerate(found):
        try:
            x, y, w, h = (float(value) for value in entry["bbox"])
            image, score = entry["image_id"], float(entry.get("score", 0))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise FileFormatError(
                path, f"entry {number}: wanted an image_id and a bbox of x, y, width, height"
            ) from None
        if not np.isfinite([x, y, w, h, score]).all():
            raise FileFormatError(path, f"entry {number}: its box or score is not finite")
        rows.setdefault(str(names.get(image, image)), []).append((-score, (x, y, x + w, y + h)))
    return {
        # The surest first; equally sure ones as they came.
        name: np.array([box for _, box in sorted(mine, key=lambda row: row[0])[:MOST]], np.float32)
        for name, mine in rows.items()
    }
