"""Progress on long work: a bar where a person watches, silence where output goes to a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(label: str, unit: str = "images") -> Iterator[Callable[[int, int], None]]:
    """Give a function `(done, total)` that moves a bar on stderr, with rate and time left.

    Nothing is drawn when stderr is not a terminal.

    Example:
        ```python
        with progress_bar("Extracting") as step:
            extract(photos, out, on_progress=step)
        ```
    """
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.1f} {unit}/s")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=None)
        first: list[int] = []

        def step(done: int, total: int) -> None:
            if not first:  # work resumed from disk must not count into the rate
                first.append(done)
                bar.update(task, total=total)
            bar.update(task, completed=done)

        yield step
