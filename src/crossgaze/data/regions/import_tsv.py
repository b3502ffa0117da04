"""Bottom-up-attention TSV files, and LXMERT's with objects and attributes, as a region store."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.textfiles import MAX_NAME_CHARS
from crossgaze.errors import FileFormatError, InputError, require_file

TSV_FIELDS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")
LXMERT_FIELDS = (
    *("img_id", "img_h", "img_w", "objects_id", "objects_conf", "attrs_id", "attrs_conf"),
    *("num_boxes", "boxes", "features"),
)
# LXMERT's name of a column -> the other's.
_SAME = {"img_id": "image_id", "img_w": "image_w", "img_h": "image_h"}
# A column -> the store's fields that it fills, and the type of its numbers.
_LABELS = {
    "objects_id": (("classes",), "<i8"),
    "objects_conf": (("confidence", "class_confidence"), "<f4"),
    "attrs_id": (("attributes",), "<i8"),
    "attrs_conf": (("attribute_confidence",), "<f4"),
}
_FILE = re.compile(r".+\.tsv(?:\.(\d+))?", re.IGNORECASE)
MAX_LINE = 1 << 28  # bytes; an image of 100 regions of 2048 has one million
MAX_COLUMNS, MAX_HEADER = 1_000, 100_000  # and bytes of their names, which the report keeps


def import_tsv(
    tsv: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    regions: int | None = None,
    dtype: str = "float16",
    on_progress: Progress | None = None,
    rename: Rename | None = None,
) -> RegionStore:
    """Make a store of bottom-up-attention TSV files, boxes included; goes on where it was stopped.

    A line has six columns (image_id, image_w, image_h, num_boxes, boxes, features) or LXMERT's ten
    (img_id, img_h, img_w, objects_id, objects_conf, attrs_id, attrs_conf, num_boxes, boxes,
    features); arrays are base64, of float32 or, ids, of int64. A header may name them, in another
    order too; columns that it names and nobody knows are reported as ignored.

    Args:
        tsv: a file, or several that become one store.
        out: the store's folder.
        regions: regions kept an image, the first ones; None looks through the files for the most.
            What is cut off is counted in the report (`read_import_report`).
        dtype: "float16" or "float32".
        on_progress: called with (bytes read, bytes in all).
        rename: gives images their ids in the store.
    """
    given = [tsv] if isinstance(tsv, str | Path) else list(tsv)
    if not given:
        raise InputError("tsv: got no file, wanted at least one")
    files = [require_file(path, "a bottom-up-attention TSV") for path in given]
    require_utf8_names(files)
    if regions is None:
        regions = max(line.count() for path in files for line in _lines(path))
    named = [str(path.resolve()) for path in files]
    made_by = {"from": "bottom-up-attention TSV", "files": named, **stamps(files)}
    total = sum(path.stat().st_size for path in files)
    return import_images(
        _images(files), total, Path(out), regions, dtype, made_by, len(files), on_progress, rename
    )


def tsv_boxes(path: Path) -> Iterator[tuple[str, npt.NDArray[np.float32], tuple[int, int]]]:
    """Give the images of a TSV file without their features: id, boxes (n, 4) in pixels, size."""
    seen: dict[str, int] = {}
    for line in _lines(path):
        name, rows = line.name(), line.count()
        boxes = line.numbers("boxes", "<f4", rows)
        if not np.isfinite(boxes).all():
            raise line.error("boxes are not all finite")
        if name in seen:
            raise line.error(f"image id {name!r} was already given by line {seen[name]}")
        seen[name] = line.number
        yield name, boxes, (line.whole("image_w", MAX_SIDE), line.whole("image_h", MAX_SIDE))


def is_tsv(path: Path) -> bool:
    """Whether a file is named as a TSV or as a numbered part of one (`train.tsv.0`)."""
    return _FILE.fullmatch(path.name) is not None


def tsv_files(folder: Path) -> list[Path]:
    """Return the TSV files of a folder, parts of one in the order of their numbers."""
    found = sorted(path for path in folder.iterdir() if ".tsv" in path.name.lower())
    for path in found:
        if not is_tsv(path):
            raise InputError(f"{path}: wanted .tsv files or numbered parts of them (.tsv.0) only")

    def place(path: Path) -> tuple[str, int]:
        number = path.suffix.removeprefix(".")
        return (path.stem, int(number)) if number.isdecimal() else (path.name, -1)

    return sorted(found, key=place)


@dataclass(frozen=True)
class _Layout:
    """Which column holds what; `width` columns in all."""

    places: Mapping[str, int]
    width: int
    ignored: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Line:
    """One image's line, not yet decoded; `end` bytes of its file are read with it."""

    path: Path
    number: int
    cells: Sequence[bytes]
    layout: _Layout
    end: int

    def error(self, problem: str) -> FileFormatError:
        return FileFormatError(self.path, problem, line=self.number)

    def cell(self, name: str) -> bytes:
        return self.cells[self.layout.places[name]]

    def whole(self, name: str, most: int) -> int:
        """Return a whole number from 1 to `most`."""
        cell = self.cell(name).strip()
        if not re.fullmatch(rb"\d{1,9}", cell) or not 1 <= int(cell) <= most:
            found = cell[:20].decode("utf-8", "replace")
            raise self.error(f"{name} is {found!r}, wanted a whole number from 1 to {most:,}")
        return int(cell)

    def count(self) -> int:
        """Return how many boxes there are; the boxes' own length must say the same."""
        boxes = self.cell("boxes")
        size = len(boxes) // 4 * 3 - boxes[-2:].count(b"=")
        number = self.whole("num_boxes", MAX_LINE)
        if size != number * 16:
            raise self.error(f"boxes are {size} bytes, wanted {number * 16} for {number}")
        return number

    def numbers(self, name: str, dtype: str, rows: int) -> npt.NDArray[Any]:
        """Return a base64 column as (rows, as many as there are)."""
        try:
            data = base64.b64decode(self.cell(name), validate=True)
        except (ValueError, binascii.Error) as error:
            raise self.error(f"{name} is not base64: {error}") from None
        size = np.dtype(dtype).itemsize
        if not data or len(data) % (rows * size):
            raise self.error(
                f"{name} are {len(data)} bytes, not {rows} rows of {size}-byte numbers"
            )
        return np.frombuffer(data, dtype).reshape(rows, -1)

    def label(self, name: str, dtype: str, rows: int) -> npt.NDArray[Any]:
        """Return one number a region, (rows,)."""
        values = self.numbers(name, dtype, rows)
        if values.shape[1] != 1:
            raise self.error(f"{name} has {values.shape[1]} numbers a region, wanted one")
        if values.dtype.kind == "i" and not (values.min() >= -1 and values.max() <= MAX_LABEL):
            raise self.error(f"{name} are {values.min()} to {values.max()}, wanted -1 or more")
        return values[:, 0]

    def image(self) -> ImageRegions:
        rows = self.count()
        labels: dict[str, npt.NDArray[Any]] = {}
        for name, (fields, dtype) in _LABELS.items():
            if name in self.layout.places:
                labels |= dict.fromkeys(fields, self.label(name, dtype, rows))
        return ImageRegions(
            id=self.name(),
            features=self.numbers("features", "<f4", rows),
            path=self.path,
            line=self.number,
            boxes=self.numbers("boxes", "<f4", rows),
            size=(self.whole("image_w", MAX_SIDE), self.whole("image_h", MAX_SIDE)),
            labels=labels,
            ignored=self.layout.ignored,
        )

    def name(self) -> str:
        cell = self.cell("image_id")
        try:
            text = cell.decode()
        except UnicodeDecodeError:
            raise self.error(f"image_id is {cell[:40]!r}, which is not UTF-8") from None
        if not text.strip() or len(text) > MAX_NAME_CHARS:
            raise self.error(f"image_id is {text[:40]!r}, wanted 1 to {MAX_NAME_CHARS} characters")
        return text


def _images(files: Sequence[Path]) -> Iterator[tuple[ImageRegions, int]]:
    """Give each image, and how many bytes of all the files are read with it."""
    before = 0
    for path in files:
        for line in _lines(path):
            yield line.image(), before + line.end
        before += path.stat().st_size


def _lines(path: Path) -> Iterator[_Line]:
    """Give each image's line; a header is read and passed over."""
    end, layout, images = 0, None, 0
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
            end += len(line)
            if len(line) > MAX_LINE:
                raise FileFormatError(path, f"has more than {MAX_LINE:,} bytes", line=number)
            if (fields := line.count(b"\t") + 1) > MAX_COLUMNS:
                raise FileFormatError(
                    path,
                    f"has {fields:,} tab-separated fields, wanted {MAX_COLUMNS:,} at most",
                    line=number,
                )
            cells = line.rstrip(b"\r\n").split(b"\t")
            if layout is None:
                cells[0] = cells[0].removeprefix(b"\xef\xbb\xbf")
                layout, is_header = _layout(path, cells)
                if is_header:
                    continue
            if len(cells) != layout.width:
                raise FileFormatError(
                    path,
                    f"has {len(cells)} tab-separated fields, the first line has {layout.width}",
                    line=number,
                )
            images += 1
            yield _Line(path, number, cells, layout, end)
    if not images:
        raise FileFormatError(path, "has no image in it")


def _layout(path: Path, cells: Sequence[bytes]) -> tuple[_Layout, bool]:
    """Return the layout that the first line shows, and whether that line is a header."""
    if b"num_boxes" in cells:
        if (size := sum(map(len, cells))) > MAX_HEADER:
            raise FileFormatError(
                path, f"has a header of {size:,} bytes, wanted {MAX_HEADER:,} at most", line=1
            )
        return _named(path, [cell.decode("utf-8", "replace").strip() for cell in cells]), True
    for names in (TSV_FIELDS, LXMERT_FIELDS):
        if len(cells) == len(names):
            return _named(path, names), False
    raise FileFormatError(
        path,
        f"has {len(cells)} tab-separated fields, wanted {len(TSV_FIELDS)} "
        f"({', '.join(TSV_FIELDS)}) or LXMERT's {len(LXMERT_FIELDS)}",
        line=1,
    )


def _named(path: Path, columns: Sequence[str]) -> _Layout:
    places: dict[str, int] = {}
    ignored = set()
    for place, column in enumerate(columns):
        name = _SAME.get(column, column)
        if name not in TSV_FIELDS and name not in _LABELS:
            ignored.add(column)
        elif places.setdefault(name, place) != place:
            raise FileFormatError(path, f"the header names {name} twice", line=1)
    for name in TSV_FIELDS:
        if name not in places:
            raise FileFormatError(path, f"the header has no column {name}", line=1)
    return _Layout(places, len(columns), frozenset(ignored))
