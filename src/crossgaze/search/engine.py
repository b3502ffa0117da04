"""What an index asks of the database that keeps its vectors: one small protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from crossgaze.errors import FileFormatError, InputError
from crossgaze.search.entries import Entry
from crossgaze.search.filters import Where

Vectors = npt.NDArray[np.float32]
Uids = npt.NDArray[np.int64]
Tidying = Literal["during", "after", "unchanged", "compact"]
T = TypeVar("T")


class OutOfDateError(FileFormatError):
    """What was opened is not what is there: another process went on, or something is damaged.

    A search looks again (`Index.refresh`) and tries once more before it says so.
    """


class Engine(Protocol):
    """A table of entries, each with one vector, found by inner product.

    What `add`, `update` and `delete` return from is durable, each call whole or not at all where
    the database can do that (LanceDB); where it cannot (Milvus), an index repairs what is left.

    Attributes:
        kind: "memory", "lance" or "milvus".
        width: numbers in a vector.
        most: results that a search gives at most; None for as many as are asked for.
    """

    kind: str
    width: int
    most: int | None

    def __len__(self) -> int:
        """Return how many entries there are."""

    def add(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Add entries with new uids, and their (N, D) vectors."""

    def update(self, entries: Sequence[Entry]) -> None:
        """Put entries in the place of those with the same uids; their vectors stay."""

    def delete(self, uids: Sequence[int]) -> None:
        """Remove entries; uids that are not there do no harm."""

    def search(self, vector: Vectors, count: int, where: Where | None) -> tuple[Uids, Vectors]:
        """Return the uids and inner products of the best, falling; equals by rising uid."""

    def get(self, uids: Sequence[int]) -> list[Entry]:
        """Return entries in the order of `uids`; those that are not there are left out."""

    def vectors(self, uids: Sequence[int]) -> Vectors:
        """Return the vectors of entries that are all there, (N, D), in the order of `uids`."""

    def every(self, where: Where | None = None) -> Iterator[list[Entry]]:
        """Give all entries that a filter admits, some at a time."""

    def tidy(self, when: Tidying = "after") -> None:
        """Do what makes later searches fast (compaction, an approximate index), if anything.

        Args:
            when: "during" many additions, where nothing may take minutes; "after" them; after all
                was found "unchanged", to make up for a process that was stopped; or to "compact".
        """

    def refresh(self) -> None:
        """See what other processes have written meanwhile."""

    def close(self) -> None:
        """Let go of files and connections."""


def all_of(there: Mapping[int, T], uids: Sequence[int], where: str | Path) -> list[T]:
    """Return what belongs to each uid, all of which should be there."""
    missing = [uid for uid in map(int, uids) if uid not in there]
    if missing:
        raise OutOfDateError(where, f"has no entry {missing[0]} any more")
    return [there[uid] for uid in map(int, uids)]


def check_vectors(entries: Sequence[Entry], vectors: Vectors, width: int) -> Vectors:
    """Return vectors as (N, D) float32, or say what is wrong with them."""
    found = np.ascontiguousarray(vectors, dtype=np.float32)
    if found.shape != (len(entries), width):
        raise InputError(f"vectors: got shape {found.shape}, wanted ({len(entries)}, {width})")
    if not np.isfinite(found).all():
        bad = next(entry for entry, row in zip(entries, found, strict=True) if not _finite(row))
        raise InputError(f"vectors: that of {bad.key!r} is not finite")
    return found


def _finite(row: npt.NDArray[np.float32]) -> bool:
    return bool(np.isfinite(row).all())


def best(scores: Vectors, uids: Uids, count: int) -> tuple[Uids, Vectors]:
    """Return the `count` best of (N,) scores, falling; equals by rising uid.

    Example:
        >>> best(np.float32([1, 3, 1]), np.array([7, 8, 5]), 2)
        (array([8, 5]), array([3., 1.], dtype=float32))
    """
    if 0 < count < len(scores):
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        kept = np.flatnonzero(scores >= least)  # with all that equal the last, to choose by uid
        scores, uids = scores[kept], uids[kept]
    order = np.lexsort((uids, -scores))[:count]
    return uids[order], scores[order]


def together(products: Vectors, reranked: Vectors) -> Vectors:
    """Return (e + r) / 2 of the embedder's similarities e and the re-ranker's r.

    The last bits of e differ with the engine, and of equal photographs with what their vectors were
    made beside; rounded, what is equal stays so, but for a rare one at the border of rounding.
    """
    return ((np.round(products, 5) + reranked) / 2).astype(np.float32)
