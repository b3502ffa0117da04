"""Writing a region store: batches appended, each one durable when `append` returns."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crossgaze.data.regions.store import (
    FIELDS,
    FORMAT,
    VERSION,
    WITHOUT_STATE,
    Commit,
    Field,
    Head,
    RegionStore,
    read_head,
    read_log,
    read_state,
)
from crossgaze.errors import FileFormatError, InputError, nearest
from crossgaze.files import LOCK, naming, only_writer, sync_folder, write_json

BY_REGION = {"features", *(name for name, (_, shape) in FIELDS.items() if shape[:1] == ("k",))}
FEATURE_TYPES = {"float16": "<f2", "float32": "<f4"}


def new_head(
    folder: Path,
    regions: int,
    width: int,
    dtype: str,
    fields: Sequence[str],
    labels: Mapping[str, Sequence[str]],
    made_by: Mapping[str, Any],
) -> Head:
    """Return the head of an empty store with features and these other fields."""
    if dtype not in FEATURE_TYPES:
        raise InputError(f"dtype: got {dtype!r}, wanted float16 or float32")
    if regions < 1 or width < 1:
        raise InputError(f"a store of {regions} regions of width {width}: both must be at least 1")
    made = [Field("features", FEATURE_TYPES[dtype], (regions, width), folder / "features.bin")]
    for name in fields:
        if name not in FIELDS:
            raise InputError(f"fields: unknown field {name!r}{nearest(name, FIELDS)}")
        kind, shape = FIELDS[name]
        row = tuple(regions if size == "k" else int(size) for size in shape)
        made.append(Field(name, kind, row, folder / f"{name}.bin"))
    return Head(regions, width, tuple(made), labels, made_by)


def write_head(folder: Path, head: Head) -> None:
    """Write `head.json`; the store's files exist once it does."""
    fields: dict[str, dict[str, Any]] = {}
    for field in head.fields:
        spec: dict[str, Any] = {"dtype": field.dtype, "shape": list(field.shape)}
        spec |= {"external": str(field.path)} if field.external else {"file": field.path.name}
        if field.external:
            spec |= {"offset": field.offset, "row_step": field.row_step}
            spec |= {} if field.header_crc is None else {"header_crc": field.header_crc}
        fields[field.name] = spec
    write_json(
        folder / "head.json",
        {
            "format": FORMAT,
            "version": VERSION,
            "regions": head.regions,
            "width": head.width,
            "fields": fields,
            "labels": head.labels,
            "made_by": head.made_by,
        },
    )


class RegionWriter:
    """Appends to a region store; the only one to do so while it is open.

    A new store is made if the folder has none; an existing one is continued, after checking that
    it was made the same way. What `append` has returned from survives SIGKILL and power loss.

    Example:
        ```python
        with RegionWriter("regions/", 36, 1280, fields=["counts", "boxes"]) as writer:
            writer.append(["a.jpg"], features, boxes=boxes)
        ```
    """

    def __init__(
        self,
        folder: str | Path,
        regions: int,
        width: int,
        *,
        dtype: str = "float16",
        fields: Sequence[str] = ("counts", "boxes", "sizes"),
        labels: Mapping[str, Sequence[str]] | None = None,
        made_by: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder = Path(folder)
        asked = new_head(self.folder, regions, width, dtype, fields, labels or {}, made_by or {})
        require_store_folder(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._open: ExitStack | None = None
        with ExitStack() as opening:
            opening.enter_context(only_writer(self.folder, "this region store"))
            self.head = self._start(asked)
            self._files = {f.name: _open(opening, f.path) for f in self.head.fields}
            self._log = _open(opening, self.folder / "log.jsonl")
            self._read_committed()
            self._state = _open(opening, self.folder / "state")
            self._cut_back()
            self._note_state(0)
            self._open = opening.pop_all()

    def _start(self, asked: Head) -> Head:
        """Make the files of a new store, or check that the one here was made as asked."""
        if (self.folder / "head.json").exists():
            head = read_head(self.folder)
            if head.external:
                raise InputError(f"{self.folder}: maps somebody else's file and cannot grow")
            _require_same(self.folder, head, asked)
            return head
        for path in [*(field.path for field in asked.fields), self.folder / "log.jsonl"]:
            path.touch()
        write_head(self.folder, asked)
        sync_folder(self.folder.parent)
        return asked

    def _read_committed(self) -> None:
        """Note what is committed; what a stopped writer left behind it, and only that, is cut."""
        commits, self._log_end = read_log(self.folder)
        self._ids = {name for commit in commits for name in commit.ids}
        self._rows = sum(commit.rows for commit in commits)
        require_sound_log(self.folder, self.head, self._rows)

    def _note_state(self, writing: int) -> None:
        """Write down that the log lists `_rows` images and that `writing` more are on their way."""
        with naming(self.folder / "state"):
            _write_all(self._state, f"{self._rows:020} {writing:020}\n".encode(), 0)
            if writing:  # before any of them: whatever is left of them, the next writer cuts
                os.fsync(self._state)

    def __len__(self) -> int:
        return self._rows

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the images that are in the store."""
        return frozenset(self._ids)

    def __contains__(self, image: object) -> bool:
        return image in self._ids

    @classmethod
    def like(
        cls, folder: str | Path, store: RegionStore, made_by: Mapping[str, Any] | None = None
    ) -> Self:
        """Open a store of the same regions, fields and labels as another; made the same way, too.

        Args:
            folder: of the new store, or of one to go on with.
            store: the other.
            made_by: how the new one was made, if otherwise.
        """
        head = store.head
        return cls(
            folder,
            head.regions,
            head.width,
            dtype=str(store.features.dtype),
            fields=[field.name for field in head.fields if field.name != "features"],
            labels=head.labels,
            made_by=head.made_by if made_by is None else made_by,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and let the next writer in."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def append(self, ids: Sequence[str], features: npt.ArrayLike, **fields: npt.ArrayLike) -> None:
        """Append a batch; when this returns it is on disk for good.

        Args:
            ids: (B,) new image ids.
            features: (B, n, d) with n <= k regions; short rows are padded with zeros.
            **fields: an array (B, ...) for each of the store's other fields; `counts` may be left
                out and is then n for every image.
        """
        if self._open is None:
            raise InputError(f"{self.folder}: this writer was closed, open another to append")
        if isinstance(ids, str) or not all(isinstance(name, str) for name in ids):
            raise InputError(f"ids: got {str(ids)[:60]!r}, wanted a list of texts")
        if not ids:
            return
        self._require_new(ids)
        arrays = self._arrays(ids, np.asarray(features), dict(fields))
        try:
            end = self._write(ids, arrays)
        except OSError:
            # Not acknowledged, so nothing of it may be found there later.
            self._cut_back()
            raise
        self._ids.update(ids)
        self._rows += len(ids)
        self._log_end = end
        self._note_state(0)

    def cut(self, rows: int) -> None:
        """Forget the last batches so that `rows` rows are left; for good when this returns.

        For a batch that somebody else should have acknowledged too and did not.

        Args:
            rows: how many stay; a batch stays whole or goes whole.
        """
        if self._open is None:
            raise InputError(f"{self.folder}: this writer was closed, open another to cut")
        commits, _ = read_log(self.folder)
        ends = {0: 0}  # rows up to the end of a batch -> where its line ends in the log
        for commit in commits:
            ends[commit.start + commit.rows] = ends[commit.start] + len(commit.line().encode())
        if rows not in ends:
            raise InputError(f"rows: got {rows}, wanted the end of a batch, at most {self._rows}")
        gone = self._rows - rows
        self._ids -= {name for c in commits if c.start >= rows for name in c.ids}
        self._rows, self._log_end = rows, ends[rows]
        self._note_state(gone)
        self._cut_back()
        with naming(self.folder / "log.jsonl"):
            os.fsync(self._log)
        self._note_state(0)

    def _write(self, ids: Sequence[str], arrays: Mapping[str, npt.NDArray[Any]]) -> int:
        """Put a batch on disk, its log line last; returns where the log then ends."""
        self._note_state(len(ids))
        checksums = {}
        for field in self.head.fields:
            data = arrays[field.name].tobytes()
            checksums[field.name] = zlib.crc32(data)
            with naming(field.path):
                _write_all(self._files[field.name], data, self._rows * field.row_bytes)
        for field in self.head.fields:
            with naming(field.path):
                os.fsync(self._files[field.name])
        line = Commit(self._rows, tuple(ids), checksums).line().encode()
        with naming(self.folder / "log.jsonl"):
            _write_all(self._log, line, self._log_end)
            os.fsync(self._log)
        return self._log_end + len(line)

    def _cut_back(self) -> None:
        """Cut the files to what is committed."""
        os.truncate(self._log, self._log_end)  # first: a line must never list rows that are gone
        for field in self.head.fields:
            os.truncate(self._files[field.name], self._rows * field.row_bytes)

    def _require_new(self, ids: Sequence[str]) -> None:
        known = [name for name in ids if name in self._ids]
        if known:
            raise InputError(f"{self.folder}: image id {known[0]!r} is already in the store")
        if len(set(ids)) != len(ids):
            twice = next(name for name in ids if list(ids).count(name) > 1)
            raise InputError(f"{self.folder}: image id {twice!r} occurs twice in one batch")

    def _arrays(
        self, ids: Sequence[str], features: npt.NDArray[Any], fields: dict[str, npt.ArrayLike]
    ) -> dict[str, npt.NDArray[Any]]:
        """Check a batch and return it as rows of exactly the store's shapes."""
        head, batch = self.head, len(ids)
        if features.ndim != 3 or features.shape[0] != batch or features.shape[2] != head.width:
            raise InputError(
                f"features: got shape {features.shape}, wanted ({batch}, n, {head.width})"
            )
        regions = features.shape[1]
        if not 1 <= regions <= head.regions:
            raise InputError(f"features: got {regions} regions, wanted 1 to {head.regions}")
        fields.setdefault("counts", np.full(batch, regions))
        names = {field.name for field in head.fields} - {"features"}
        if head.field("counts") is None:
            if regions != head.regions or not np.all(np.asarray(fields["counts"]) == regions):
                raise InputError("counts: this store keeps none, every image needs all regions")
            del fields["counts"]
        wrong = sorted(names.symmetric_difference(fields))
        if wrong:
            verb = "lacks" if wrong[0] in names else "does not keep"
            raise InputError(f"{self.folder}: the batch or store {verb} the field {wrong[0]!r}")
        counts = np.asarray(fields.get("counts", np.full(batch, regions)))
        if (
            counts.dtype.kind not in "iu"
            or counts.shape != (batch,)
            or counts.min() < 1
            or counts.max() > regions
        ):
            raise InputError(f"counts: got {counts.tolist()[:8]}, wanted {batch} of 1 to {regions}")
        real = np.arange(head.regions) < counts[:, None]  # (B, k)
        arrays = {}
        for field in head.fields:
            given = np.asarray(features if field.name == "features" else fields[field.name])
            arrays[field.name] = _fit(field, given, real, ids)
        return arrays


def _open(closing: ExitStack, path: Path) -> int:
    """Open a file for writing at given places, to be closed with the store."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    closing.callback(os.close, handle)
    return handle


def _write_all(handle: int, data: bytes, offset: int) -> None:
    """Write at a place, unbuffered: after a failure nothing waits to be written later."""
    view = memoryview(data)
    while view:
        written = os.pwrite(handle, view, offset)
        view, offset = view[written:], offset + written


def _fit(
    field: Field, given: npt.NDArray[Any], real: npt.NDArray[np.bool_], ids: Sequence[str]
) -> npt.NDArray[Any]:
    """Return `given` as (B, *field.shape): padded with zeros, finite, in the field's type."""
    wanted = (len(real), *field.shape)
    if field.name in BY_REGION and given.ndim == len(wanted) and given.shape[1] < wanted[1]:
        missing = wanted[1] - given.shape[1]
        given = np.pad(given, [(0, 0), (0, missing)] + [(0, 0)] * (given.ndim - 2))
    if given.shape != wanted:
        raise InputError(f"{field.name}: got shape {given.shape}, wanted {wanted}")
    if field.name in BY_REGION and not real.all():
        mask = real.reshape(*real.shape, *[1] * (given.ndim - 2))
        given = np.where(mask, given, given.dtype.type(0))
    with np.errstate(over="ignore", invalid="ignore"):  # what does not fit is named below
        fitted = np.ascontiguousarray(given, dtype=field.dtype)
    if fitted.dtype.kind == "i" and not np.array_equal(fitted, given):
        bad = next(i for i, row in enumerate(fitted) if not np.array_equal(row, given[i]))
        raise InputError(
            f"{field.name} of image {ids[bad]!r}: {np.asarray(given[bad]).tolist()} does not fit "
            f"whole numbers of {fitted.dtype.itemsize} bytes"
        )
    if fitted.dtype.kind == "f" and not np.isfinite(fitted).all():
        bad = next(i for i, row in enumerate(fitted) if not np.isfinite(row).all())
        worst = float(np.abs(given[bad].astype(np.float64)).max())
        raise InputError(
            f"{field.name} of image {ids[bad]!r}: not finite as {fitted.dtype} "
            f"(largest magnitude {worst:g})"
        )
    return fitted


def require_store_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but a region store, before anything is written there.

    What a writer leaves that was stopped while it made a new store, empty files, is a store too.
    """
    if folder.is_file():
        raise InputError(f"{folder}: is a file, wanted a folder for the region store")
    try:
        str(folder.resolve()).encode()
    except UnicodeEncodeError:
        raise InputError(f"{str(folder)!r}: is not a name in UTF-8, it cannot be kept") from None
    if not folder.is_dir() or (folder / "head.json").exists():
        return
    made = {LOCK, "features.bin", *(f"{name}.bin" for name in FIELDS), "log.jsonl", "state"}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".head.json.") or path.name == LOCK:
            continue
        if path.name not in made:
            raise InputError(
                f"{folder}: is not empty and not a region store (it holds {path.name!r}), "
                "wanted a new or empty folder"
            )
        if path.stat().st_size:
            raise InputError(
                f"{folder}: holds {path.name!r} but no head.json; if it was a region store, put "
                "its head.json back, else take another folder"
            )


def require_sound_log(folder: Path, head: Head, listed: int) -> None:
    """Refuse a log that lists other images than were acknowledged; nothing is changed.

    Args:
        folder: the store.
        head: what it says of itself.
        listed: images in the log.
    """
    left = 0  # rows, begun or whole, that lie behind those listed
    for field in head.fields:
        field.check(listed)
        behind = field.path.stat().st_size - listed * field.row_bytes
        left = max(left, -(-behind // field.row_bytes))
    state = read_state(folder)
    if state is None and left:
        raise FileFormatError(
            folder / "state",
            f"is missing, and {left:,} rows lie behind the {listed:,} images that the log lists; "
            "nothing was changed",
        )
    if state is None:
        return
    known, writing = state
    if listed > known + writing:
        # Every line of the log has a checksum, so that it is not the log that lists too many.
        raise FileFormatError(
            folder / "state",
            f"is damaged: it says {known:,} images, the log lists {listed:,}; {WITHOUT_STATE}",
        )
    allowed = {known: writing, known + writing: 0}  # stopped while writing, or just after
    if listed not in allowed or left > allowed[listed]:
        raise FileFormatError(
            folder / "log.jsonl",
            f"is damaged: it lists {listed:,} images, the store has {known:,} and {left:,} rows "
            "behind those listed; nothing was changed",
        )


def _require_same(folder: Path, found: Head, asked: Head) -> None:
    """Refuse to continue a store that was made in another way, and say what differs."""
    have = {field.name: (field.dtype, field.shape) for field in found.fields}
    want = {field.name: (field.dtype, field.shape) for field in asked.fields}
    made = json.loads(json.dumps(asked.made_by))  # as it would read back: tuples become lists
    pairs = [
        *((key, found.made_by.get(key), made.get(key)) for key in [*made, *found.made_by]),
        *((f"field {name}", have.get(name), want.get(name)) for name in [*want, *have]),
        ("labels", json.loads(json.dumps(found.labels)), json.loads(json.dumps(asked.labels))),
    ]
    for what, old, new in pairs:
        if old != new:
            raise InputError(
                f"{folder}: the store there was made with {what} = {old!r}, now it is {new!r}; "
                "take another folder or the same settings"
            )
