"""What a query must be before it is answered, and what its answer tells about it."""

from __future__ import annotations

import operator
import time
from typing import TYPE_CHECKING

import numpy as np

from crossgaze.data.textfiles import sentence_problem
from crossgaze.errors import InputError
from crossgaze.models.checks import require_whole
from crossgaze.search.filters import Where
from crossgaze.search.models import unknown_words

if TYPE_CHECKING:
    from crossgaze.search.index import Index

LONGEST = 2000  # signs of a query


class Clock:
    """Milliseconds by step."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        """Note what was taken since the last lap."""
        now = time.perf_counter()
        self.taken[step] = round(1e3 * (now - self._last), 3)
        self._last = now


def require_k(k: int) -> int:
    """Return a number of results, any from 1 on, as Python counts; NumPy's numbers are, too."""
    try:
        count = 0 if isinstance(k, bool) else operator.index(k)
    except TypeError:
        count = 0
    if count < 1:
        raise InputError(f"k: got {k!r}, wanted a whole number, 1 or more")
    return count


def require_filled(index: Index, k: int) -> int:
    """Return how many photographs there are, at least one."""
    require_k(k)
    total = len(index)
    if not total:
        raise InputError(
            f"{index.folder}: holds no photograph yet; crossgaze index PHOTOS --into {index.folder}"
        )
    return total


def require_candidates(candidates: int | None) -> None:
    """Refuse a number of candidates that is none."""
    if candidates is not None:
        whole = int(candidates) if isinstance(candidates, np.integer) else candidates
        require_whole("candidates", whole, most=1 << 31)


def require_words(index: Index, query: str, *, embedded: bool = True) -> tuple[str, ...]:
    """Return the query's unknown words; refuse a query that holds nothing a model can read.

    Args:
        index: the index.
        query: a sentence.
        embedded: whether the embedder reads it, too; not where the re-ranker scores everything.
    """
    if not query.strip():
        raise InputError("query: is empty, wanted a sentence such as 'two dogs in the snow'")
    problem = sentence_problem(query)
    if problem is not None:
        raise InputError(f"query: {problem}")
    if len(query) > LONGEST:
        raise InputError(f"query: has {len(query):,} characters, {LONGEST:,} are the most")
    members = list(index.embedder.members) if embedded else []
    members += index.reranker.members if index.reranker is not None else []
    if not any(sign.isalnum() for sign in query):
        raise InputError(f"query: {query!r} has no word in it")
    unknown, lost = unknown_words(members, query)
    if lost:
        raise InputError(
            f"query: the model knows none of its words ({', '.join(unknown)}); try other words"
        )
    return unknown


def notes_on(
    k: int,
    total: int,
    found: int,
    where: Where | None,
    unknown: tuple[str, ...] = (),
    *,
    asked: int = 0,
    most: int | None = None,
) -> tuple[str, ...]:
    """Return what the user should be told.

    Args:
        k: photographs that the user asked for.
        total: photographs in the index.
        found: hits.
        where: the filter.
        unknown: words that a model does not know.
        asked: photographs that the vectors were asked for.
        most: how many the database gives at most.
    """
    notes = []
    if most is not None and most < min(asked, total):
        notes.append(
            f"{asked:,} photographs were asked for by their vectors, the database gives the best "
            f"{most:,} at most"
        )
    if unknown:
        notes.append(f"words that the model does not know: {', '.join(unknown)}")
    if k > total:
        notes.append(f"{k} photographs were asked for, the index holds {total}")
    if found < min(k, total) and where:
        notes.append(f"{found} photographs pass the filter, {k} were asked for")
    return tuple(notes)
