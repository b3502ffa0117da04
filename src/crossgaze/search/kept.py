"""What is kept of every photograph's regions: a mapped region store beside the database.

An image's id in the store is its uid. Rows are added first and acknowledged by the database after,
so that the store may hold rows that nothing refers to, never the other way round. Uids only rise,
so that a row is found by bisection.
"""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter, require_sound_log
from crossgaze.errors import FileFormatError
from crossgaze.search.results import Region
from crossgaze.threads import cores

FIELDS = ("counts", "boxes", "sizes")
LOG = "log.jsonl"  # of a store: a line for each batch
BLOCK = 1024  # images copied at a time
PART = 64 << 20  # bytes read at a time


def way_out(store: Path) -> str:
    """Return what to do about a store that is damaged."""
    return (
        f"put {store} back from a copy, or move it away and index the photographs' folders again: "
        "their regions are made anew, entries and tags stay"
    )


class KeptRegions:
    """The region store of an index, open for reading: what was there when it was opened.

    Args:
        folder: the store's.
        extra: rows in front of the regions', see `crossgaze.search.models`.
    """

    def __init__(self, folder: Path, extra: int) -> None:
        self.folder, self.extra = folder, extra
        self._log = _stamp(folder)  # before it is read: what comes after makes it out of date
        store = self.store = RegionStore(folder)
        for field in store.head.fields:
            store.field(field.name)  # mapped now: `compact` of another process may remove the files
        try:
            self.uids = np.array([int(name) for name in store.ids], np.int64)
        except ValueError:
            raise FileFormatError(self.folder, "holds names that are no index's") from None
        if np.any(np.diff(self.uids) <= 0):
            raise FileFormatError(self.folder, "is damaged: its rows are out of order")
        self.counts = store.sound_counts(slice(None)).astype(np.int64) - self.extra
        head = store.head.field("features")
        assert head is not None  # every store has them
        self._start, self._size = head.offset, head.row_bytes
        self._file = os.open(head.path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def __len__(self) -> int:
        return len(self.uids)

    @property
    def current(self) -> bool:
        """Whether nobody has written to the store since it was opened."""
        return self._log is not None and _stamp(self.folder) == self._log

    def require_sound(self) -> None:
        """Refuse a store whose log, state and arrays do not fit together."""
        require_sound_log(self.folder, self.store.head, len(self))

    def lacking(self, uids: Iterable[int]) -> set[int]:
        """Return those of some uids whose regions are not here; only damage makes any."""
        wanted = np.fromiter(uids, np.int64)
        return set(wanted[self.rows(wanted) < 0].tolist())

    def require_finite(self, numbers: npt.NDArray[Any], what: str) -> None:
        """Refuse what was read, or made of it, where it is not numbers: only damage does that."""
        if not np.isfinite(numbers).all():
            raise FileFormatError(
                self.folder,
                f"is damaged: {what} are not numbers; crossgaze store verify {self.folder} says "
                f"where; {way_out(self.folder)}",
            )

    @property
    def part(self) -> int:
        """How many rows to read at a time."""
        return max(PART // max(self._size, 1), 1)

    @property
    def features(self) -> npt.NDArray[Any]:
        """(N, extra + k, width), mapped."""
        return self.store.features

    def rows(self, uids: npt.NDArray[np.int64] | Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the rows of uids; -1 for one that is not here."""
        wanted = np.asarray(uids, np.int64)
        if not len(self.uids):
            return np.full(len(wanted), -1, np.int64)
        found = np.minimum(np.searchsorted(self.uids, wanted), len(self.uids) - 1)
        return np.where(self.uids[found] == wanted, found, -1)

    def read(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return the features of rows, best given rising, (n, extra + k, width), copied.

        Read and not mapped: of a mapped file the system counts large pieces around every row as
        this process's memory, gigabytes after some searches. It is told of all rows at once and
        fetches them together; waiting for each in turn would be slow on a disk that is not cached.
        """
        out = np.empty((len(rows), *self.features.shape[1:]), self.features.dtype)
        if not out.nbytes:
            return out
        ends = np.flatnonzero(np.append(np.diff(rows) != 1, True)) + 1  # of each run
        starts = np.append(0, ends[:-1])
        places = self._start + rows[starts] * self._size
        lengths = (ends - starts) * self._size
        runs = list(zip(starts.tolist(), places.tolist(), lengths.tolist(), strict=True))
        if hasattr(os, "posix_fadvise"):
            for _, place, length in runs:
                os.posix_fadvise(self._file, place, length, os.POSIX_FADV_WILLNEED)
        room = out.reshape(-1).view(np.uint8).data
        threads = min(cores(), len(runs))

        def fill(number: int) -> None:
            for row, place, length in runs[number::threads]:
                first = row * self._size
                _read_into(self._file, room[first : first + length], place, self.folder)

        with ThreadPoolExecutor(threads, "regions") as pool:
            list(pool.map(fill, range(threads)))
        return out

    def regions(self, uid: int) -> tuple[Region, ...]:
        """Return where the regions of a photograph are, and what they are called."""
        (row,) = self.rows([uid])
        if row < 0:
            return ()
        boxes, count = self.store.boxes, int(self.counts[row])
        assert boxes is not None
        real = slice(self.extra, self.extra + count)
        self.require_finite(boxes[row, real], "boxes")
        nouns, attributes = self._names(row, real, "classes"), self._names(row, real, "attributes")
        sure = self.store.field("confidence")
        confidence = np.zeros(count) if sure is None else sure[row, real]
        self.require_finite(confidence, "confidences")
        return tuple(
            Region((x1, y1, x2, y2), noun, attribute, float(how))
            for (x1, y1, x2, y2), noun, attribute, how in zip(
                boxes[row, real].tolist(), nouns, attributes, confidence, strict=True
            )
        )

    def _names(self, row: int, real: slice, field: str) -> list[str]:
        numbers, labels = self.store.field(field), self.store.head.labels.get(field, ())
        count = real.stop - real.start
        if numbers is None:
            return [""] * count
        return [labels[n] if 0 <= n < len(labels) else "" for n in numbers[row, real].tolist()]


def _stamp(folder: Path) -> tuple[int, int, int] | None:
    """Return what changes with every batch of a store, None where there is no store."""
    try:
        found = (folder / LOG).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def open_writer(
    folder: Path,
    rows: int,
    width: int,
    fields: Sequence[str],
    labels: Mapping[str, Sequence[str]],
    made_by: Mapping[str, Any],
) -> RegionWriter:
    """Open the store of an index for writing, or make it."""
    return RegionWriter(
        folder, rows, width, fields=(*FIELDS, *fields), labels=labels, made_by=made_by
    )


def reopen_writer(folder: Path) -> RegionWriter:
    """Open a store that is there for writing, as it was made."""
    head = RegionStore(folder).head
    fields = [field.name for field in head.fields if field.name != "features"]
    return RegionWriter(
        folder,
        head.regions,
        head.width,
        fields=fields,
        labels=head.labels,
        made_by=head.made_by,
    )


def copy_kept(source: KeptRegions, uids: npt.NDArray[np.int64], out: Path) -> None:
    """Copy the regions of some uids, in rising order, into a new store."""
    shutil.rmtree(out, ignore_errors=True)
    store = source.store
    others = [field.name for field in store.head.fields if field.name != "features"]
    head = store.head
    with RegionWriter(
        out, head.regions, head.width, fields=others, labels=head.labels, made_by=head.made_by
    ) as writer:
        rows = source.rows(np.sort(uids))
        for start in range(0, len(rows), BLOCK):
            part = rows[start : start + BLOCK]
            arrays = {name: np.asarray(store.field(name)[part]) for name in others}  # type: ignore[index]
            ids = [str(uid) for uid in source.uids[part]]
            writer.append(ids, source.read(part), **arrays)


def _read_into(file: int, room: memoryview, place: int, folder: Path) -> None:
    """Fill `room` with a file's bytes from `place` on."""
    while len(room):
        count = os.preadv(file, [room], place)
        if not count:
            raise FileFormatError(folder, "is truncated: its features end before the last row")
        room, place = room[count:], place + count
