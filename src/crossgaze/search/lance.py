"""LanceDB: the index's own database, in files beside it, without a server.

Every call is one commit of Lance's: after SIGKILL a batch is there whole or not at all, and what it
wrote is flushed here, which Lance does not do, so that the same holds when the power goes. As long
as there are few entries they are also held in memory and searched there, exactly; beyond that,
`tidy` makes an approximate index and LanceDB searches, with what was added since looked at exactly.
Once that is much it goes into a segment of the index, an index of its own that a search goes
through, too; once there are many of these, the index is made anew.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from crossgaze.errors import FileFormatError, InputError, MissingExtraError
from crossgaze.files import sync_folder, sync_tree
from crossgaze.search.engine import Tidying, Uids, Vectors, all_of, best, check_vectors
from crossgaze.search.entries import COLUMNS, Entry, from_row
from crossgaze.search.filters import Where
from crossgaze.search.lance_rows import among, batch_of, schema_of, sql
from crossgaze.search.memory import MemoryEngine

# Bytes up to which all entries are held in memory and looked at: what a process that searches may
# take, not where the approximate index becomes the faster ("threshold" in bench-search.json).
HELD = 660_000_000
ENTRY = 600  # bytes that an entry takes there, beside its vector
PART = 8192  # entries read at a time
PARTITION = 200_000  # vectors in each part of the approximate index, a graph of its own
UNINDEXED, FILES = (
    10_000,
    256,
)  # rows beside the index, files of few rows: with so many it is tidied
SEGMENTS = 8  # of the index, beyond which it is made anew
PROBES = 24  # partitions looked into
REFINE, REFINED = 4, 400  # candidates a result; so many in all are enough, at two a result or more
EFFORT, LEAST = 2000, 800  # HNSW's ef, of all partitions together and of each at least
MOST = 5000  # results up to which the approximate index is asked; it is none for more
VECTORS = "vector_idx"  # the approximate index's name, LanceDB's own for a column of that name
KEPT = timedelta(hours=1)  # how long a reader may go on with what it opened


def entries_held(width: int) -> int:
    """Return how many entries, with vectors of so many numbers, are held in memory.

    Example:
        >>> entries_held(512), entries_held(1024)
        (249244, 140545)
    """
    return HELD // (4 * width + ENTRY)


def partitions_of(count: int) -> int:
    """Return in how many parts the approximate index of so many vectors is.

    LanceDB divides it so, told `PARTITION`. Few and large parts, all of which a search looks into
    while there are no more than `PROBES`: of vectors without clear clusters the nearest lie in any.

    Example:
        >>> partitions_of(20_000), partitions_of(250_000), partitions_of(1_000_000)
        (1, 1, 5)
    """
    return max(count // PARTITION, 1)


def effort_of(partitions: int, wanted: int) -> int:
    """Return HNSW's ef in each partition, of which `wanted` are to come.

    Of few partitions each holds a large share of the answer, and is looked into the harder.

    Example:
        >>> effort_of(1, 400), effort_of(5, 400), effort_of(24, 400), effort_of(5, 1000)
        (2000, 800, 800, 1000)
    """
    # HNSW refuses an effort below what it is to find in each partition.
    return max(EFFORT // partitions, LEAST, wanted)


class LanceEngine:
    """A table of LanceDB.

    Args:
        folder: the database's folder.
        name: the table's.
        width: numbers in a vector.
        create: make a new table instead of opening one.
        exact: entries up to which all are looked at; as many as `HELD` has room for if not given.
    """

    kind = "lance"
    most: int | None = None

    def __init__(
        self,
        folder: Path,
        name: str,
        width: int,
        *,
        create: bool = False,
        exact: int | None = None,
    ) -> None:
        self.folder, self.name, self.width = Path(folder), name, width
        self.exact = entries_held(width) if exact is None else exact
        self._mirror: MemoryEngine | None = None
        self._count: int | None = None  # of the entries, as long as nothing has changed
        self._reading = threading.Lock()
        self._flushed: set[tuple[str, int]] = set()
        self._table: Any
        # It would tell whoever indexes which parts of a segment are empty.
        os.environ.setdefault("LANCEDB_LOG", "error")
        try:
            import lancedb
        except ImportError:
            raise MissingExtraError("an index", "lancedb", "search") from None
        with self._explained():
            database = lancedb.connect(str(folder))
            if create:
                self._table = database.create_table(name, schema=schema_of(width))
                self._flush()
                sync_folder(self.folder)
            else:
                self._table = database.open_table(name)
            found = self._table.schema
        if not found.equals(schema_of(width)):
            columns = ", ".join(f"{field.name} {field.type}" for field in found)
            raise FileFormatError(
                self.folder, f"table {name!r} has other columns than are wanted: {columns}"
            )

    def __len__(self) -> int:
        if self._mirror is not None:
            return len(self._mirror)
        if self._count is None:
            with self._explained():
                self._count = int(self._table.count_rows())
        return self._count

    def add(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Add entries in one commit."""
        rows = check_vectors(entries, vectors, self.width)
        if not len(rows):
            return
        with self._changing():
            self._table.add(batch_of(entries, rows))
            self._flush()
            if self._mirror is not None:
                self._mirror.add(entries, rows)

    def update(self, entries: Sequence[Entry]) -> None:
        """Put entries in the place of those with the same uids, in one commit."""
        if not entries:
            return
        rows = self.vectors([entry.uid for entry in entries])
        with self._changing():
            merge = self._table.merge_insert("uid").when_matched_update_all()
            merge.execute(batch_of(entries, rows))
            self._flush()
            if self._mirror is not None:
                self._mirror.update(entries)

    def delete(self, uids: Sequence[int]) -> None:
        """Remove entries, in one commit."""
        if not len(uids):
            return
        with self._changing():
            self._table.delete(among(uids))
            self._flush()
            if self._mirror is not None:
                self._mirror.delete(uids)

    def search(self, vector: Vectors, count: int, where: Where | None) -> tuple[Uids, Vectors]:
        """Search in memory, or by LanceDB where there are too many."""
        mirror = self._held()
        if mirror is not None:
            return mirror.search(vector, count, where)
        uids, scores = self._ask(vector, count, where, exactly=count > MOST)
        if len(uids) < min(count, len(self)) and count <= MOST:
            # The partitions that were looked into hold fewer: a narrow filter's lie anywhere.
            uids, scores = self._ask(vector, count, where, exactly=True)
        return best(scores, uids, count)

    def _ask(
        self, vector: Vectors, count: int, where: Where | None, *, exactly: bool
    ) -> tuple[Uids, Vectors]:
        """Have LanceDB search, by its index or by looking at every vector."""
        with self._explained():
            query = self._table.search(np.asarray(vector, np.float32).reshape(self.width))
            query = query.distance_type("dot").limit(count).select(["uid", "_distance"])
            if exactly:
                query = query.bypass_vector_index()
            else:
                refine = min(REFINE, max(REFINED // count, 2))
                effort = effort_of(partitions_of(len(self)), refine * count)
                query = query.nprobes(PROBES).refine_factor(refine).ef(effort)
            if where:
                query = query.where(sql(where), prefilter=True)
            found = query.to_arrow()
        uids = found["uid"].to_numpy().astype(np.int64)
        return uids, (1 - found["_distance"].to_numpy()).astype(np.float32)  # it gives 1 - a . b

    def get(self, uids: Sequence[int]) -> list[Entry]:
        """Return entries by uid."""
        mirror = self._held()
        if mirror is not None:
            return mirror.get(uids)
        there = {entry.uid: entry for entry, _ in self._read(among(uids), vectors=False)}
        return [there[uid] for uid in map(int, uids) if uid in there]

    def vectors(self, uids: Sequence[int]) -> Vectors:
        """Return vectors by uid."""
        mirror = self._held()
        if mirror is not None:
            return mirror.vectors(uids)
        there = {entry.uid: row for entry, row in self._read(among(uids), vectors=True)}
        rows = all_of(there, uids, self.folder)
        return np.array(rows, np.float32).reshape(-1, self.width)

    def every(self, where: Where | None = None) -> Iterator[list[Entry]]:
        """Give all entries that a filter admits."""
        mirror = self._held()
        if mirror is not None:
            yield from mirror.every(where)
            return
        part: list[Entry] = []
        for entry, _ in self._read(sql(where) if where else "", vectors=False):
            part.append(entry)
            if len(part) == PART:
                yield part
                part = []
        if part:
            yield part

    def tidy(self, when: Tidying = "after") -> None:
        """Join small files, and index the vectors where they are too many to look at all.

        Each time that LanceDB takes new rows into an index it adds a segment, however few they are.
        """
        large = len(self) > self.exact
        if when == "unchanged" and not large:
            return
        with self._explained():
            index = self._vector_index()
            if when == "compact" or self._untidy(index):
                self._table.optimize(cleanup_older_than=KEPT)
                index = self._vector_index()
            most = 1 if when == "compact" else SEGMENTS
            if large and when != "during" and (index is None or index.num_segments > most):
                self.make_index()
            self._flush()

    def _untidy(self, index: Any) -> bool:  # noqa: ANN401 (LanceDB's, None without one)
        if index is None or index.num_unindexed_rows >= UNINDEXED:
            return True
        return bool(self._table.stats()["fragment_stats"]["num_small_fragments"] >= FILES)

    def make_index(self) -> None:
        """Make the approximate index of all vectors there are, and one of their uids."""
        from lancedb.index import BTree, HnswSq

        # What was found is then read by uid; without an index that would look at every row.
        self._table.create_index("uid", config=BTree(), replace=True)
        # An index that was made under another name would be kept beside the new one.
        for one in self._table.list_indices():
            if "vector" in one.columns and one.name != VECTORS:
                self._table.drop_index(one.name)
        # By size, not number: of parts that are small for the size it was told LanceDB makes one.
        how = HnswSq(distance_type="dot", target_partition_size=PARTITION)
        self._table.create_index("vector", config=how, replace=True, name=VECTORS)

    def _vector_index(self) -> Any:  # noqa: ANN401 (LanceDB's)
        """Return what LanceDB says of the approximate index, None without one."""
        found = [one for one in self._table.list_indices() if "vector" in one.columns]
        return found[0] if found else None

    def refresh(self) -> None:
        """See the latest commit."""
        with self._explained():
            before = self._table.version
            self._table.checkout_latest()
            if self._table.version != before:
                self._mirror = self._count = None

    def close(self) -> None:
        """Let go of what is held in memory."""
        self._mirror = None

    def _held(self) -> MemoryEngine | None:
        """Return the entries in memory, read when they are first wanted; None if too many."""
        if len(self) > self.exact:
            self._mirror = None
            return None
        with self._reading:  # threads that search at once read it once
            if self._mirror is None:
                mirror = MemoryEngine(self.width)
                mirror.reserve(len(self))
                for entries, rows in self._batches("", vectors=True):
                    mirror.add(entries, rows)
                self._mirror = mirror
            return self._mirror

    def _read(self, where: str, *, vectors: bool) -> Iterator[tuple[Entry, Vectors]]:
        for entries, rows in self._batches(where, vectors=vectors):
            yield from zip(entries, rows, strict=True)

    def _batches(self, where: str, *, vectors: bool) -> Iterator[tuple[list[Entry], Vectors]]:
        names = [*COLUMNS, "vector"] if vectors else list(COLUMNS)
        with self._explained():
            query = self._table.search().select(names)
            query = query.where(where) if where else query
            for batch in query.to_batches(PART):
                columns = {name: batch[name].to_pylist() for name in COLUMNS}
                rows = [{name: columns[name][row] for name in COLUMNS} for row in range(len(batch))]
                found = np.empty((len(batch), 0), np.float32)
                if vectors:
                    found = batch["vector"].flatten().to_numpy().reshape(-1, self.width)
                yield [from_row(row) for row in rows], found

    def _flush(self) -> None:
        self._flushed = sync_tree(self.folder / f"{self.name}.lance", self._flushed)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Change the table; what is held of it is up to date afterwards, or dropped."""
        self._count = None
        try:
            with self._explained():
                yield
        except BaseException:
            # Stopped in between, it may be committed or not: then it is read again.
            self._mirror = self._count = None
            raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what LanceDB says into one line that names the database."""
        try:
            yield
        except InputError:
            raise
        except Exception as error:  # LanceDB raises many families, all with the reason as text
            said = " ".join(str(error).split())
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            if "No space left" in said or "os error 28" in said:
                raise OSError(errno.ENOSPC, "No space left on device", str(self.folder)) from error
            if "Permission denied" in said or "os error 13" in said:
                raise OSError(errno.EACCES, "Permission denied", str(self.folder)) from error
            raise FileFormatError(
                self.folder / f"{self.name}.lance",
                f"LanceDB cannot work with it ({said[:200]}); if it is damaged, delete the index "
                "and index the photographs again",
            ) from error
