"""Progress on long work: a bar where a person watches, a line a minute where nobody does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

EVERY = 60.0  # seconds between lines off a terminal


class Pace:
    """How fast work goes and how long it will take, from its first report on.

    What the first report counts as done was done before (a run that goes on), so it is not part of
    the pace. Time after the last report is not either: work is reported in groups, and between two
    of them the pace would seem to fall.

    Example:
        >>> seconds = iter([10.0, 14.0])
        >>> pace = Pace(lambda: next(seconds))
        >>> pace.step(100, 120), pace.step(110, 120)
        (None, None)
        >>> pace.rate, pace.seconds_left
        (2.5, 4.0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: tuple[int, float] | None = None
        self._last = (0, 0.0)
        self._total = 0

    def step(self, done: int, total: int) -> None:
        """Report that `done` of `total` are done."""
        self._last, self._total = (done, self._clock()), total
        self._first = self._first or self._last

    @property
    def rate(self) -> float | None:
        """How many a second; None before there is anything to tell it from."""
        if self._first is None:
            return None
        done, seconds = (last - first for last, first in zip(self._last, self._first, strict=True))
        return done / seconds if done > 0 and seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at this pace; None as long as there is none."""
        rate = self.rate
        return None if rate is None else max(self._total - self._last[0], 0) / rate


@contextmanager
def progress_bar(label: str, unit: str = "images") -> Iterator[Callable[[int, int], None]]:
    """Give a function `(done, total)` that moves a bar on stderr, with rate and time left.

    Where stderr is not a terminal, a line is written there every minute, and none for what is
    done sooner.

    Args:
        label: what is being done.
        unit: what is counted; "" shows no rate.

    Example:
        ```python
        with progress_bar("Extracting") as step:
            extract(photos, out, on_progress=step)
        ```
    """
    if sys.stderr is None:
        yield lambda done, total: None
        return
    if not sys.stderr.isatty():
        yield _lines(label, unit)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    # Rich's own rate and time come from the gaps between its samples: nothing after one group of
    # work, and the resumed part of a run taken for speed.
    pace = Pace()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=None, rate="", left="")

        def step(done: int, total: int) -> None:
            pace.step(done, total)
            rate, left = _told(pace, unit)
            bar.update(task, completed=done, total=total, rate=rate, left=left)

        yield step


def _told(pace: Pace, unit: str) -> tuple[str, str]:
    """Return rate and time left for people, "" as long as there is none."""
    rate, left = pace.rate, pace.seconds_left
    return (
        "" if rate is None or not unit else f"{rate:,.1f} {unit}/s",
        "" if left is None else f"{timedelta(seconds=round(left))} left",
    )


def _lines(label: str, unit: str) -> Callable[[int, int], None]:
    """Return a function `(done, total)` that writes a line to stderr now and then."""
    clock = time.monotonic
    pace, said = Pace(clock), clock()

    def step(done: int, total: int) -> None:
        nonlocal said
        pace.step(done, total)
        if clock() - said >= EVERY:
            said = clock()
            told = (f"{label}: {done:,} of {total:,}", *_told(pace, unit))
            sys.stderr.write(", ".join(part for part in told if part) + "\n")
            sys.stderr.flush()

    return step
