"""Bottom-up-attention TSV files as a region store, boxes included."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from crossgaze.data.regions.import_batches import ImageRegions, Progress, import_images
from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import FileFormatError, require_file

TSV_FIELDS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")


def import_tsv(
    tsv: str | Path,
    out: str | Path,
    *,
    regions: int | None = None,
    dtype: str = "float16",
    on_progress: Progress | None = None,
) -> RegionStore:
    """Make a store of a bottom-up-attention TSV, boxes included; goes on where it was stopped.

    Args:
        tsv: lines of image_id, image_w, image_h, num_boxes, boxes, features, the last two base64.
        out: the store's folder.
        regions: regions kept an image, the first ones; None looks through the file for the most.
        dtype: "float16" or "float32".
        on_progress: called with (bytes read, bytes in all).
    """
    path = require_file(tsv, "a bottom-up-attention TSV")
    if regions is None:
        regions = max((_tsv_count(path, n, cells) for n, cells, _ in _tsv_lines(path)), default=0)
        if regions == 0:
            raise FileFormatError(path, "has no image in it")
    total = path.stat().st_size

    def images() -> Iterator[tuple[ImageRegions, int]]:
        for number, cells, end in _tsv_lines(path):
            yield _tsv_image(path, number, cells), end

    made_by = {"from": "bottom-up-attention TSV", "file": str(path.resolve())}
    return import_images(images(), total, Path(out), regions, dtype, made_by, on_progress)


def _tsv_lines(path: Path) -> Iterator[tuple[int, list[bytes], int]]:
    """Give (line number, cells, bytes read so far); a header line of the field names is passed."""
    end = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            end += len(line)
            cells = line.rstrip(b"\r\n").split(b"\t")
            if len(cells) != len(TSV_FIELDS):
                wanted = f"{len(TSV_FIELDS)} ({', '.join(TSV_FIELDS)})"
                raise FileFormatError(
                    path, f"has {len(cells)} tab-separated fields, wanted {wanted}", line=number
                )
            if number == 1 and cells[0] == b"image_id":
                continue
            yield number, cells, end


def _tsv_count(path: Path, number: int, cells: Sequence[bytes]) -> int:
    try:
        count = int(cells[3])
    except ValueError:
        count = -1
    if count < 1:
        raise FileFormatError(path, f"num_boxes is {cells[3][:20]!r}, wanted >= 1", line=number)
    return count


def _tsv_image(path: Path, number: int, cells: Sequence[bytes]) -> ImageRegions:
    count = _tsv_count(path, number, cells)
    try:
        width, height = int(cells[1]), int(cells[2])
        boxes, features = (base64.b64decode(cell, validate=True) for cell in cells[4:])
    except (ValueError, binascii.Error) as error:
        raise FileFormatError(path, f"does not parse: {error}", line=number) from None
    if len(boxes) != count * 16:
        raise FileFormatError(
            path, f"boxes are {len(boxes)} bytes, wanted {count * 16} for {count}", line=number
        )
    if not features or len(features) % (count * 4):
        raise FileFormatError(
            path, f"features are {len(features)} bytes, not {count} rows of float32", line=number
        )
    return ImageRegions(
        id=cells[0].decode("utf-8", "replace"),
        features=np.frombuffer(features, "<f4").reshape(count, -1),
        boxes=np.frombuffer(boxes, "<f4").reshape(count, 4),
        size=(width, height),
    )
