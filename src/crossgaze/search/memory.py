"""Vectors in memory, every one of them looked at: exact, and fast up to some 100,000.

One matrix-vector product reads each vector once, which is all that an exact answer needs. LanceDB's
engine keeps this one in front of its files as long as there are few enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from crossgaze.errors import InputError
from crossgaze.search.engine import Tidying, Uids, Vectors, all_of, best, check_vectors
from crossgaze.search.entries import Entry
from crossgaze.search.filters import Where

PART = 1024  # entries given at a time
FILTERS = 16  # whose entries are remembered


class MemoryEngine:
    """Entries and vectors in arrays that grow; nothing is kept on disk.

    Args:
        width: numbers in a vector.
    """

    kind = "memory"
    most: int | None = None

    def __init__(self, width: int) -> None:
        self.width = width
        self._entries: list[Entry] = []
        self._row_of: dict[int, int] = {}
        self._matrix = np.empty((0, width), np.float32)  # with room behind the last row
        self._columns: dict[str, npt.NDArray[np.int64]] | None = None
        self._admitted: dict[Where, npt.NDArray[np.int64]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Add entries and their vectors."""
        rows = check_vectors(entries, vectors, self.width)
        known = [entry.uid for entry in entries if entry.uid in self._row_of]
        if known or len({entry.uid for entry in entries}) < len(entries):
            raise InputError(f"uid: {known[:1] or 'one'} is already there, wanted new ones")
        old, new = len(self._entries), len(self._entries) + len(entries)
        self.reserve(new)
        self._matrix[old:new] = rows
        self._row_of |= {entry.uid: old + place for place, entry in enumerate(entries)}
        self._entries += entries
        self._forget()

    def reserve(self, rows: int) -> None:
        """Make room for so many rows in all, at least twice what there is."""
        if rows > len(self._matrix):
            old, filled = self._matrix, len(self._entries)
            size = rows if not filled else max(rows, 2 * len(old))
            self._matrix = np.empty((size, self.width), np.float32)
            self._matrix[:filled] = old[:filled]

    def update(self, entries: Sequence[Entry]) -> None:
        """Put entries in the place of those with the same uids."""
        for entry in entries:
            if entry.uid in self._row_of:
                self._entries[self._row_of[entry.uid]] = entry
        self._forget()

    def delete(self, uids: Sequence[int]) -> None:
        """Remove entries."""
        gone = {self._row_of[uid] for uid in uids if uid in self._row_of}
        if not gone:
            return
        kept = [row for row in range(len(self._entries)) if row not in gone]
        first = min(gone)
        later = [row for row in kept if row > first]
        self._matrix[first : len(kept)] = self._matrix[later]
        self._entries = [self._entries[row] for row in kept]
        self._row_of = {entry.uid: row for row, entry in enumerate(self._entries)}
        self._forget()

    def search(self, vector: Vectors, count: int, where: Where | None) -> tuple[Uids, Vectors]:
        """Compare with every vector."""
        filled = torch.from_numpy(self._matrix[: len(self._entries)])
        with torch.inference_mode():
            query = torch.from_numpy(np.array(vector, np.float32).reshape(self.width))
            scores = torch.mv(filled, query).numpy()  # torch shares it out among the cores
        uids = self._column("uid")
        if where:
            rows = self._rows(where)
            scores, uids = scores[rows], uids[rows]
        return best(scores, uids, count)

    def get(self, uids: Sequence[int]) -> list[Entry]:
        """Return entries by uid."""
        return [self._entries[self._row_of[uid]] for uid in map(int, uids) if uid in self._row_of]

    def vectors(self, uids: Sequence[int]) -> Vectors:
        """Return vectors by uid."""
        return self._matrix[all_of(self._row_of, uids, "memory")].reshape(-1, self.width)

    def every(self, where: Where | None = None) -> Iterator[list[Entry]]:
        """Give the entries in the order they were added."""
        entries = list(self._entries)
        if where:
            entries = [entries[row] for row in self._rows(where)]
        for start in range(0, len(entries), PART):
            yield entries[start : start + PART]

    def tidy(self, when: Tidying = "after") -> None:
        """Nothing is untidy here."""

    def refresh(self) -> None:
        """Nobody else can write here."""

    def close(self) -> None:
        """Nothing is open."""

    def _forget(self) -> None:
        self._columns, self._admitted = None, {}

    def _column(self, name: str) -> npt.NDArray[np.int64]:
        if self._columns is None:
            self._columns = {
                one: np.array([getattr(entry, one) for entry in self._entries], np.int64)
                for one in ("uid", "bytes", "taken")
            }
        return self._columns[name]

    def _rows(self, where: Where) -> npt.NDArray[np.int64]:
        """Return the rows that a filter admits; those of the last few filters are remembered."""
        if where not in self._admitted:
            mask = np.ones(len(self._entries), bool)
            compare = {">=": np.greater_equal, "<=": np.less_equal, "<": np.less}
            for column, sign, value in where.ranges():
                mask &= compare[sign](self._column(column), value)
            # Only texts are looked at one by one, and only of what the numbers left.
            rows, entries = np.flatnonzero(mask).tolist(), self._entries
            if where.tags:
                wanted = set(where.tags)
                rows = [row for row in rows if wanted.issubset(entries[row].tags)]
            if where.path is not None:
                matches = where.regex.fullmatch
                rows = [row for row in rows if matches(entries[row].key)]
            if len(self._admitted) >= FILTERS:
                self._admitted = {}
            self._admitted[where] = np.array(rows, np.int64)
        return self._admitted[where]
