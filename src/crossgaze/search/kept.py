"""What is kept of every photograph's regions: a mapped region store beside the database.

An image's id in the store is its uid. Rows are added first and acknowledged by the database after,
so that the store may hold rows that nothing refers to, never the other way round. Uids only rise,
so that a row is found by bisection.
"""

from __future__ import annotations

import mmap
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import FileFormatError
from crossgaze.search.results import Region

FIELDS = ("counts", "boxes", "sizes")
BLOCK = 1024  # images copied at a time
# Bytes read of the mapped file before its pages are given back; the system maps about three times
# what is read, its neighbours with it.
TOUCHED = 64 << 20


class KeptRegions:
    """The region store of an index, open for reading: what was there when it was opened.

    Args:
        folder: the store's.
        extra: rows in front of the regions', see `crossgaze.search.models`.
    """

    def __init__(self, folder: Path, extra: int) -> None:
        self.folder, self.extra = folder, extra
        self._read = 0
        store = self.store = RegionStore(folder)
        for field in store.head.fields:
            store.field(field.name)  # mapped now: `compact` of another process may remove the files
        try:
            self.uids = np.array([int(name) for name in store.ids], np.int64)
        except ValueError:
            raise FileFormatError(self.folder, "holds names that are no index's") from None
        if np.any(np.diff(self.uids) <= 0):
            raise FileFormatError(self.folder, "is damaged: its rows are out of order")
        self.counts = np.asarray(store.counts, np.int64) - self.extra
        features = store.features
        self._map = _mapping(features)
        if self._map is not None:
            # Candidates lie anywhere: what lies behind one is not wanted.
            self._map.madvise(mmap.MADV_RANDOM)

    def __len__(self) -> int:
        return len(self.uids)

    @property
    def part(self) -> int:
        """How many rows to read before their pages are given back."""
        return max(TOUCHED // int(self.features[0].nbytes), 1)

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

    def will_read(self, rows: npt.NDArray[np.int64]) -> None:
        """Tell the system which rows, rising, are wanted, so that it fetches them all at once.

        Faulting them in one after the other would wait for the disk at every page.
        """
        if self._map is None or not len(rows):
            return
        size, page = self.features[0].nbytes, mmap.PAGESIZE
        ends = np.flatnonzero(np.append(np.diff(rows) > 1, True))  # of each run
        firsts = rows[np.append(0, ends[:-1] + 1)] * size // page * page
        lengths = (rows[ends] + 1) * size - firsts
        for first, length in zip(firsts.tolist(), lengths.tolist(), strict=True):
            self._map.madvise(mmap.MADV_WILLNEED, first, length)

    def was_read(self, rows: int) -> None:
        """Count rows that a search has read, and give memory back now and then.

        Mapped pages count as this process's memory while it holds them; the system keeps them
        cached all the same.
        """
        if self._map is None or not rows:
            return
        self._read += rows * self.features[0].nbytes
        if self._read >= TOUCHED:
            self._map.madvise(mmap.MADV_DONTNEED)
            self._read = 0

    def regions(self, uid: int) -> tuple[Region, ...]:
        """Return where the regions of a photograph are, and what they are called."""
        (row,) = self.rows([uid])
        if row < 0:
            return ()
        boxes, count = self.store.boxes, int(self.counts[row])
        assert boxes is not None
        real = slice(self.extra, self.extra + count)
        nouns, attributes = self._names(row, real, "classes"), self._names(row, real, "attributes")
        sure = self.store.field("confidence")
        confidence = np.zeros(count) if sure is None else sure[row, real]
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
            source.will_read(part)
            arrays = {name: np.asarray(store.field(name)[part]) for name in others}  # type: ignore[index]
            ids = [str(uid) for uid in source.uids[part]]
            writer.append(ids, np.asarray(store.features[part]), **arrays)
            source.was_read(len(part))


def _mapping(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """Return the mapping that an array lies on, if it does."""
    base: Any = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = getattr(base, "base", None)
    return base if hasattr(mmap, "MADV_RANDOM") else None
