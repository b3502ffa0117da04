"""Files of boxes as detectors write them: COCO's JSON, and bottom-up-attention's TSV.

COCO's JSON is a list of detections, `[{"image_id": 42, "bbox": [x, y, width, height], "score":
0.9}]`, or an annotation file with `images` (`id`, `file_name`) and `annotations`. The TSV's boxes
are x1, y1, x2, y2.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.data.regions.import_tsv import is_tsv, tsv_boxes
from crossgaze.data.textfiles import read_json_text
from crossgaze.errors import FileFormatError, require_file


@dataclass(frozen=True, eq=False)
class ImageBoxes:
    """The boxes of one image.

    Args:
        boxes: (n, 4), x1, y1, x2, y2 in pixels, the surest first.
        size: width and height that the pixels are of; None for the photograph's own.
        scores: (n,) how sure the detector was; None where the file does not say.
    """

    boxes: npt.NDArray[np.float64]
    size: tuple[int, int] | None = None
    scores: npt.NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class BoxFile:
    """What a file of boxes holds.

    Args:
        path: the file.
        images: by the name or number that the file has for an image.
        fingerprint: of the file's bytes.
    """

    path: Path
    images: Mapping[str, ImageBoxes]
    fingerprint: str


def read_box_file(path: str | Path) -> BoxFile:
    """Read COCO's JSON or bottom-up-attention's TSV, by the file's name."""
    file = require_file(path, "a file of boxes")
    if is_tsv(file):
        images = {
            name: ImageBoxes(boxes.astype(np.float64), size)
            for name, boxes, size in tsv_boxes(file)
        }
    else:
        images = _coco(file)
    if not any(len(image.boxes) for image in images.values()):
        raise FileFormatError(file, "holds no box")
    return BoxFile(file, images, _fingerprint(file))


def _fingerprint(path: Path) -> str:
    """Return a checksum; a TSV with features does not fit into memory."""
    crc = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            crc = zlib.crc32(block, crc)
    return f"{crc:08x}"


def _coco(path: Path) -> dict[str, ImageBoxes]:
    text = read_json_text(path, "a file of boxes")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise FileFormatError(path, "is neither JSON nor named .tsv, wanted boxes") from None
    names: dict[str, str] = {}
    sizes: dict[str, tuple[int, int] | None] = {}
    if isinstance(found, dict):
        for number, image in enumerate(_list(path, found, "images")):
            name, size = _image(path, number, image)
            if name in sizes or str(image["id"]) in names:
                raise FileFormatError(path, f"images, entry {number}: {name!r} or its id is there")
            names[str(image["id"])], sizes[name] = name, size
        found = _list(path, found, "annotations")
    if not isinstance(found, list):
        raise FileFormatError(path, f"holds a {type(found).__name__}, wanted a list of detections")
    rows: dict[str, list[tuple[float, list[float]]]] = {name: [] for name in sizes}
    scored = any(isinstance(entry, dict) and "score" in entry for entry in found)
    for number, entry in enumerate(found):
        image, score, box = _detection(path, number, entry)
        if names and image not in names:
            raise FileFormatError(path, f"entry {number}: image_id {image} is not among the images")
        # The surest first when sorted; equally sure ones stay as they came.
        rows.setdefault(names.get(image, image), []).append((-score, box))
    images = {}
    for name, mine in rows.items():
        mine.sort(key=lambda row: row[0])
        scores = np.array([-score for score, _ in mine]) if scored else None
        boxes = np.array([box for _, box in mine]).reshape(-1, 4)
        images[name] = ImageBoxes(boxes, sizes.get(name), scores)
    return images


def _list(path: Path, found: Mapping[str, Any], key: str) -> list[Any]:
    if not isinstance(found.get(key), list):
        raise FileFormatError(path, f"has no list of {key}, wanted COCO's images and annotations")
    return list(found[key])


def _image(path: Path, number: int, image: Any) -> tuple[str, tuple[int, int] | None]:  # noqa: ANN401
    """Return the file name and, where it is said, the size of an entry of `images`."""
    where = f"images, entry {number}"
    if not isinstance(image, dict) or not _named(image.get("id")):
        raise FileFormatError(path, f"{where}: has no id, wanted a number or text")
    if not isinstance(image.get("file_name"), str) or not image["file_name"]:
        raise FileFormatError(path, f"{where}: has no file_name")
    size = (image.get("width"), image.get("height"))
    if size == (None, None):
        return image["file_name"], None
    if not all(isinstance(side, int) and side >= 1 for side in size):
        raise FileFormatError(path, f"{where}: is {size[0]!r} x {size[1]!r} pixels")
    return image["file_name"], size  # type: ignore[return-value]


def _detection(path: Path, number: int, entry: Any) -> tuple[str, float, list[float]]:  # noqa: ANN401
    """Return the image, the score and the box (x1, y1, x2, y2) of a detection."""
    where = f"entry {number}"
    try:
        x, y, width, height = (float(value) for value in entry["bbox"])
        score, image = float(entry.get("score", 0)), entry["image_id"]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        image = None
    if not _named(image):
        raise FileFormatError(
            path, f"{where}: wanted an image_id and a bbox of x, y, width, height"
        )
    box = [x, y, x + width, y + height]
    if not np.isfinite([*box, score]).all():
        raise FileFormatError(path, f"{where}: its box or score is not finite")
    if width < 0 or height < 0:
        raise FileFormatError(
            path, f"{where}: is {width:g} x {height:g} pixels, wanted x, y, width, height"
        )
    return str(image), score, box


def _named(image: Any) -> bool:  # noqa: ANN401
    return isinstance(image, int | str) and not isinstance(image, bool) and image != ""
