"""The region store: an image's regions on disk, mapped and never loaded.

A store is a folder of

- `head.json`: format and version, regions an image (k), feature width (d), the fields with their
  types and files, label names, and how the regions were made; written once;
- `features.bin`, `boxes.bin`, ...: one raw little-endian array a field, row after row;
- `log.jsonl`: a line for each committed batch: its ids, and a checksum of its part of each file;
- `state`: how many images the log should list, and how many are being written behind them.

A batch counts once its log line is whole on disk. Bytes behind the last committed row belong to a
writer that was stopped; readers never look at them and the next writer cuts them off. So a store
can be killed at any moment and holds exactly what was acknowledged. A log that lists fewer images
than `state` says was damaged, not stopped: then nothing is cut off and the writer refuses.

A field may also lie in somebody else's `.npy` file (`external` in the head): it is mapped where it
is, not copied, and such a store is read-only.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crossgaze.data.textfiles import parse_head
from crossgaze.errors import FileFormatError, InputError, require_file, require_folder

FORMAT = "crossgaze-regions"
VERSION = 1
WITHOUT_STATE = "if `crossgaze store verify` finds nothing else, remove this file"

# What a row may hold beside the features; "k" stands for the store's number of regions.
FIELDS: Mapping[str, tuple[str, tuple[str | int, ...]]] = {
    "counts": ("<i4", ()),  # how many of the k regions are real; the rest is zero
    "boxes": ("<f4", ("k", 4)),  # x1, y1, x2, y2 in pixels of the upright original image
    "sizes": ("<i4", (2,)),  # width and height of that image
    "confidence": ("<f4", ("k",)),  # how sure the detector is that there is something
    "classes": ("<i4", ("k",)),  # index into labels["classes"], -1 for none
    "class_confidence": ("<f4", ("k",)),
    "attributes": ("<i4", ("k",)),  # index into labels["attributes"], -1 for none
    "attribute_confidence": ("<f4", ("k",)),
    "stamps": ("<i8", (2,)),  # bytes and mtime (ns) of the file the regions were made from
}


@dataclass(frozen=True)
class Field:
    """One array of the store.

    Args:
        name: its name in the head.
        dtype: NumPy type with byte order, such as "<f2".
        shape: shape of one row.
        path: the file.
        offset: bytes before row 0.
        row_step: image i is at file row i * row_step (5 where images were stored five times).
        external: whether the file belongs to somebody else.
        header_crc: checksum of the `offset` bytes in front, by which a file that was replaced by
            one of another layout is known.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: Path
    offset: int = 0
    row_step: int = 1
    external: bool = False
    header_crc: int | None = None

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=np.int64))

    def check(self, rows: int) -> None:
        """Refuse a file that is missing, too short for `rows` rows, or replaced by another."""
        wanted = self.offset + (((rows - 1) * self.row_step + 1) * self.row_bytes if rows else 0)
        if not self.path.is_file():
            raise FileFormatError(self.path, f"is missing, the store's {self.name} lie in it")
        found = self.path.stat().st_size
        if found < wanted:
            raise FileFormatError(
                self.path, f"is truncated: {found:,} bytes, wanted {wanted:,} for {rows:,} images"
            )
        if self.header_crc is not None:
            with self.path.open("rb") as file:
                if zlib.crc32(file.read(self.offset)) != self.header_crc:
                    raise FileFormatError(
                        self.path, "is another file than was imported: its header differs"
                    )

    def map(self, rows: int) -> npt.NDArray[Any]:
        """Return the first `rows` rows as an array on the mapped file, (rows, *shape)."""
        self.check(rows)
        if rows == 0 or self.row_bytes == 0:
            return np.empty((rows, *self.shape), dtype=self.dtype)
        shape = ((rows - 1) * self.row_step + 1, *self.shape)
        mapped = np.memmap(self.path, dtype=self.dtype, mode="r", offset=self.offset, shape=shape)
        return mapped[:: self.row_step]


@dataclass(frozen=True)
class Commit:
    """One committed batch: `rows` rows from `start`, with the checksum of each field's bytes."""

    start: int
    ids: tuple[str, ...]
    crc: Mapping[str, int]

    @property
    def rows(self) -> int:
        """How many rows the batch has."""
        return len(self.ids)

    def line(self) -> str:
        """Return the log line: a checksum of the JSON, a blank, the JSON, a newline."""
        text = json.dumps({"ids": self.ids, "crc": self.crc}, separators=(",", ":"))
        return f"{zlib.crc32(text.encode()):08x} {text}\n"


@dataclass(frozen=True)
class Head:
    """What `head.json` says."""

    regions: int
    width: int
    fields: tuple[Field, ...]
    labels: Mapping[str, Sequence[str]]
    made_by: Mapping[str, Any]

    def field(self, name: str) -> Field | None:
        """Return the field called `name`, or None if this store has none."""
        return next((field for field in self.fields if field.name == name), None)

    @property
    def external(self) -> bool:
        """Whether a field lies in somebody else's file, so that nothing can be appended."""
        return any(field.external for field in self.fields)


@dataclass(frozen=True)
class Regions:
    """The regions of some images, read into memory.

    Args:
        ids: (B,) image ids.
        features: (B, k, d), rows past `counts` are zero.
        counts: (B,) how many regions are real.
        boxes: (B, k, 4) pixels of the upright original, or None where no box was kept.
        sizes: (B, 2) width and height, or None.
        other: the store's other fields by name, such as "confidence" and "classes", (B, ...).
    """

    ids: tuple[str, ...]
    features: npt.NDArray[Any]
    counts: npt.NDArray[np.int32]
    boxes: npt.NDArray[np.float32] | None
    sizes: npt.NDArray[np.int32] | None
    other: Mapping[str, npt.NDArray[Any]]


def read_head(folder: Path) -> Head:
    """Read and check `head.json`."""
    path = folder / "head.json"
    if not path.is_file():
        raise InputError(f"{folder}: is not a region store, it has no head.json")
    try:
        raw = parse_head(path, "a store's head")
        if raw["format"] != FORMAT:
            raise FileFormatError(path, f"format is {raw['format']!r}, wanted {FORMAT!r}")
        if raw["version"] != VERSION:
            raise FileFormatError(
                path, f"version is {raw['version']}, this crossgaze reads version {VERSION}"
            )
        regions, width = raw["regions"], raw["width"]
        if not (type(regions) is type(width) is int and 0 < regions < 1 << 20 > width > 0):
            raise ValueError(f"regions is {regions!r} and width {width!r}")
        if not isinstance(raw["labels"], dict) or not isinstance(raw["made_by"], dict):
            raise TypeError("labels and made_by must be keys and values")
        for name, texts in raw["labels"].items():
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise TypeError(f"labels of {name!r} must be a list of texts")
        fields = tuple(
            _read_field(folder, name, spec, regions, width) for name, spec in raw["fields"].items()
        )
        head = Head(regions, width, fields, raw["labels"], raw["made_by"])
    except FileFormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileFormatError(path, f"does not read as a store's head: {error!r}") from None
    if head.field("features") is None:
        raise FileFormatError(path, "has no features field")
    return head


def _read_field(
    folder: Path, name: str, spec: Mapping[str, Any], regions: int, width: int
) -> Field:
    """Read one field, which must be of the type and shape that its name stands for."""
    wanted: tuple[int, ...] = (regions, width)
    kinds = ["<f2", "<f4"]
    if name != "features":
        kind, row = FIELDS[name]
        kinds, wanted = [kind], tuple(regions if size == "k" else int(size) for size in row)
    if spec["dtype"] not in kinds or tuple(spec["shape"]) != wanted:
        raise ValueError(f"field {name!r} is {spec['dtype']!r} of shape {spec['shape']!r}")
    if "external" not in spec:
        if spec["file"] != f"{name}.bin":
            raise ValueError(f"field {name!r} lies in {spec['file']!r}, wanted {name}.bin")
        return Field(name, spec["dtype"], wanted, folder / f"{name}.bin")
    step, offset, crc = spec["row_step"], spec["offset"], spec.get("header_crc")
    if not (type(step) is type(offset) is int and step >= 1 and offset >= 0):
        raise ValueError(f"field {name!r} has row_step {step!r} and offset {offset!r}")
    path = Path(str(spec["external"]))
    return Field(name, spec["dtype"], wanted, path, offset, step, True, crc)


def read_state(folder: Path) -> tuple[int, int] | None:
    """Return how many images the log should list and how many are being written; None if unknown.

    A log that lists neither the first number nor the sum of both was damaged.
    """
    if (path := folder / "state").exists():
        require_file(path, "a store's state")
    try:
        text = path.read_text("ascii")
        if not text:  # a store that is just being made
            return 0, 0
        listed, writing = text.split()
        return int(listed), int(writing)
    except FileNotFoundError:
        return None
    except (ValueError, UnicodeDecodeError):
        raise FileFormatError(path, f"is damaged, wanted two numbers; {WITHOUT_STATE}") from None


def read_log(folder: Path) -> tuple[list[Commit], int]:
    """Read the commits, and how many bytes of the log they fill.

    A last line without its end is what a stopped writer leaves, and is not counted. A whole line
    whose checksum differs is damage, and is an error.
    """
    path = folder / "log.jsonl"
    if not path.is_file():
        raise FileFormatError(path, "is missing, the store's batches are listed in it")
    commits: list[Commit] = []
    start = used = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            commit = _read_commit(line, start)
            if commit is None:
                raise FileFormatError(path, "is damaged (checksum differs)", line=number)
            commits.append(commit)
            start += commit.rows
            used += len(line)
    return commits, used


def _read_commit(line: bytes, start: int) -> Commit | None:
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(text):
            return None
        raw = json.loads(text)
        if not raw["ids"]:  # no writer lists a batch of nothing
            return None
        return Commit(start, tuple(map(str, raw["ids"])), dict(raw["crc"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


class RegionStore:
    """A region store, open for reading: what was committed when it was opened.

    Example:
        ```python
        store = RegionStore("regions/")
        store.features.shape            # (8090, 36, 1280), mapped, not loaded
        batch = store.read(["a.jpg"])   # Regions, in memory
        ```
    """

    def __init__(self, folder: str | Path) -> None:
        found = require_folder(folder, "a region store")
        head = read_head(found)
        self._open(found, head, read_log(found)[0])

    @classmethod
    def of(cls, folder: Path, head: Head, ids: Sequence[str]) -> Self:
        """Return the store of a head that is written nowhere, on arrays that lie in `folder`."""
        store = cls.__new__(cls)
        store._open(folder, head, [Commit(0, tuple(ids), {})])
        return store

    def _open(self, folder: Path, head: Head, commits: list[Commit]) -> None:
        self.folder, self.head, self.commits = folder, head, commits
        self.ids: tuple[str, ...] = tuple(name for commit in commits for name in commit.ids)
        for field in head.fields:
            field.check(len(self.ids))
        self._mapped: dict[str, npt.NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, image: object) -> bool:
        return image in self._row_of

    def __repr__(self) -> str:
        return (
            f"RegionStore({str(self.folder)!r}: {len(self):,} images, {self.head.regions} regions "
            f"of {self.head.width} {self.features.dtype})"
        )

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.ids)}

    @property
    def features(self) -> npt.NDArray[Any]:
        """(N, k, d) region features."""
        features = self.field("features")
        assert features is not None
        return features

    @cached_property
    def counts(self) -> npt.NDArray[np.int32]:
        """(N,) how many regions of each image are real; k where the store does not say."""
        counts = self.field("counts")
        if counts is None:
            return np.full(len(self), self.head.regions, dtype=np.int32)
        return counts

    def sound_counts(self, rows: slice | npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return how many regions of rows are real, copied, or say that the file is damaged."""
        counts = np.array(self.counts[rows])
        if counts.size and (counts.min() < 1 or counts.max() > self.head.regions):
            raise FileFormatError(
                self.folder / "counts.bin",
                f"is damaged: an image has {counts.min() if counts.min() < 1 else counts.max()} "
                f"regions, wanted 1 to {self.head.regions}",
            )
        return counts

    @property
    def boxes(self) -> npt.NDArray[np.float32] | None:
        """(N, k, 4) x1, y1, x2, y2 in pixels of the upright original, or None."""
        return self.field("boxes")

    @property
    def sizes(self) -> npt.NDArray[np.int32] | None:
        """(N, 2) width and height of the upright original, or None."""
        return self.field("sizes")

    def field(self, name: str) -> npt.NDArray[Any] | None:
        """Return a field's array by name (see FIELDS), (N, ...), or None if the store has none."""
        if name not in self._mapped:
            field = self.head.field(name)
            if field is None:
                return None
            self._mapped[name] = field.map(len(self))
        return self._mapped[name]

    def rows(self, images: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the row of each image id."""
        missing = [name for name in images if name not in self._row_of]
        if missing:
            raise InputError(
                f"{self.folder}: {len(missing)} of the {len(images)} asked images are not in the "
                f"store, the first is {missing[0]!r}"
            )
        return np.array([self._row_of[name] for name in images], dtype=np.int64)

    def read(self, images: Sequence[str] | npt.NDArray[np.int64]) -> Regions:
        """Read some images, by id or by row number, into memory in the order given."""
        if isinstance(images, np.ndarray):
            rows = images
            if rows.size and (rows.min() < 0 or rows.max() >= len(self)):
                raise InputError(
                    f"{self.folder}: rows go from {rows.min()} to {rows.max()}, "
                    f"the store has {len(self)}"
                )
        else:
            rows = self.rows(images)
        boxes, sizes = self.boxes, self.sizes
        counts = self.sound_counts(rows)
        return Regions(
            ids=tuple(self.ids[row] for row in rows),
            features=np.asarray(self.features[rows]),
            counts=counts,
            boxes=None if boxes is None else np.asarray(boxes[rows]),
            sizes=None if sizes is None else np.asarray(sizes[rows]),
            other={
                field.name: np.asarray(self.field(field.name)[rows])  # type: ignore[index]
                for field in self.head.fields
                if field.name not in ("features", "counts", "boxes", "sizes")
            },
        )

    def describe(self) -> dict[str, object]:
        """Return what a table or JSON shows of the store."""
        own = [field.path for field in self.head.fields if not field.external]
        return {
            "folder": str(self.folder),
            "images": len(self),
            "regions": self.head.regions,
            "width": self.head.width,
            "dtype": str(self.features.dtype),
            "fields": [field.name for field in self.head.fields],
            "bytes": sum(path.stat().st_size for path in own),
            "external": sorted({str(f.path) for f in self.head.fields if f.external}),
            "made_by": dict(self.head.made_by),
        }
