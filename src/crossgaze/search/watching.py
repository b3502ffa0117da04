"""Keeping an index up to date with a folder, by looking at it again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crossgaze.errors import InputError, one_line
from crossgaze.search.report import IndexReport

if TYPE_CHECKING:
    from crossgaze.search.index import Index

LONGEST = 31_536_000  # seconds between looks, a year; a clock that sleeps has an end, too


def require_every(every: float) -> None:
    """Refuse seconds that nobody can wait for."""
    number = isinstance(every, int | float) and not isinstance(every, bool)
    if not number or not 0 < every <= LONGEST:
        raise InputError(f"every: got {every!r}, wanted seconds above 0, at most {LONGEST:,}")


def watch(
    index: Index,
    photos: str | Path | Sequence[str | Path],
    *,
    every: float = 5.0,
    tags: Sequence[str] = (),
    stop: Callable[[], bool] = lambda: False,
    on_trouble: Callable[[str], None] = lambda line: None,
) -> Iterator[IndexReport]:
    """Give a report each time that something has changed, until `stop` says so.

    A folder that is empty or away for a while is no reason to end, and none to empty the index.

    Args:
        index: the index.
        photos: the folder, or several.
        every: seconds between looks.
        tags: words to give to every photograph in it.
        stop: asked after each look.
        on_trouble: told, once, what keeps a look from working, and what cannot be read.
    """
    require_every(every)
    return _looks(index, photos, every, tags, stop, on_trouble)


def _looks(
    index: Index,
    photos: str | Path | Sequence[str | Path],
    every: float,
    tags: Sequence[str],
    stop: Callable[[], bool],
    on_trouble: Callable[[str], None],
) -> Iterator[IndexReport]:
    said = ""
    unreadable: set[tuple[str, str]] = set()
    while True:
        try:
            report = index.add(photos, tags=tags)
        except InputError as error:
            if str(error) != said:
                on_trouble(str(error))
            said = str(error)
        else:
            said = ""
            for name, reason in report.unreadable:
                if (name, reason) not in unreadable:
                    on_trouble(unreadable_line(name, reason))
            unreadable = set(report.unreadable)
            if report.did_something:
                yield report
        if stop():
            return
        time.sleep(every)


def unreadable_line(name: str, reason: str) -> str:
    """Return what is said of a photograph that cannot be read."""
    return one_line(f"{name}: cannot be read now: {reason}")
