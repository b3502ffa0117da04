"""Adding a folder while the service goes on answering."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from crossgaze.cli import failures
from crossgaze.progress import Pace
from crossgaze.search.engines import open_tables
from crossgaze.search.entries import clean_tags
from crossgaze.search.index import Index
from crossgaze.search.report import IndexReport
from crossgaze.vision.photos import Photo
from crossgaze.vision.sources.base import Found, RegionSource, Stop
from crossgaze.web.problems import RequestError, explain
from crossgaze.web.schemas import Job

LOOK = 0.2  # seconds between two looks at how far it is
LAST = 5  # looks that are left when the service is being stopped: the work soon says that it was
IDLE = Job(state="idle")


class _StoppedError(Exception):
    """The service is being stopped."""


class _Interruptible:
    """A source of regions that can be stopped between two of its batches.

    Args:
        source: makes the regions.
        go_on: raises when nobody wants them any more.
    """

    def __init__(self, source: RegionSource, go_on: Stop) -> None:
        self.source, self._go_on = source, go_on
        self.regions, self.width, self.size = source.regions, source.width, source.size
        self.multiple, self.fields, self.labels = source.multiple, source.fields, source.labels
        self.made_by, self.device = source.made_by, source.device

    def __call__(self, photos: Sequence[Photo], names: Sequence[str], go_on: Stop) -> list[Found]:
        """Make the regions of some photographs."""

        def both() -> None:
            go_on()
            self._go_on()

        return self.source(photos, names, both)


class Indexing:
    """One folder at a time, in a thread of its own, by an index of its own.

    A batch that has been acknowledged is safe however the process ends (see docs/search.md), so the
    thread is ended with it. What a job says is done has been read; what of it is acknowledged, the
    index itself says.

    Args:
        index: the one that is served; its models and region model are used.
        folders: that may be added.
    """

    def __init__(self, index: Index, folders: Sequence[Path]) -> None:
        self.index, self.folders = index, tuple(folders)
        self.job = IDLE
        self._pace = Pace()
        self._stop = False
        self._thread: threading.Thread | None = None

    def start(self, folder: str, tags: Sequence[str]) -> Job:
        """Begin with a folder, one of those that may be added."""
        if not self.folders:
            raise RequestError(
                403, "no folder may be added here; start crossgaze serve with --add FOLDER"
            )
        if folder not in map(str, self.folders):
            known = ", ".join(map(str, self.folders))
            raise RequestError(403, f"this folder may not be added; those that may: {known}")
        words = clean_tags(tags)
        if self.job.state == "running":
            raise RequestError(409, f"{self.job.folder} is being added; wait until it is done")
        self.job, self._pace = Job(state="running", folder=folder), Pace()
        self._thread = threading.Thread(
            target=self._run, args=(folder, words), name="crossgaze-indexing", daemon=True
        )
        self._thread.start()
        return self.job

    def give_up(self) -> None:
        """Let the work end with the few photographs it is at, and those who look on with it."""
        self._stop = True

    def stop(self, seconds: float = 10.0) -> None:
        """Give the work up, and wait until it has ended."""
        self.give_up()
        if self._thread is not None:
            self._thread.join(seconds)

    async def events(self) -> AsyncIterator[Job]:
        """Give the state now, then whenever it changes, until nothing is being added."""
        last, looks = None, LAST
        while looks:
            job = self.job
            if job != last:
                last = job
                yield job
            if job.state != "running":
                return
            looks -= self._stop
            await asyncio.sleep(LOOK)

    def _run(self, folder: str, tags: Sequence[str]) -> None:
        try:
            served = self.index
            writer = Index(
                served.folder,
                served.head,
                open_tables(served.folder, served.head),
                served.embedder,
                served.reranker,
                _Interruptible(served.source, self._go_on),
            )
            with writer:
                report = writer.add(folder, tags=tags, on_progress=self._step)
        except _StoppedError:
            self.job = Job(state="failed", folder=folder, words="stopped; what was done is kept")
        except Exception as error:  # noqa: BLE001 (there is nobody above who could tell the page)
            self.job = Job(state="failed", folder=folder, words=_why(error))
        else:
            done = report.added + report.changed
            self.job = Job(state="done", folder=folder, done=done, of=done, words=told(report))

    def _go_on(self) -> None:
        if self._stop:
            raise _StoppedError

    def _step(self, done: int, total: int) -> None:
        self._go_on()
        self._pace.step(done, total)
        left = self._pace.seconds_left
        self.job = self.job.model_copy(
            update={
                "done": done,
                "of": total,
                "seconds_left": None if left is None else round(left),
            }
        )


def _why(error: Exception) -> str:
    """Return what ended the work, as the command line says it; of a bug only that it is one."""
    if failures.is_unexpected(error):
        return explain(error)[1]
    return failures.explain(error, [])[1]


def told(report: IndexReport) -> str:
    """Return what was done, in a line.

    Example:
        >>> told(IndexReport(found=3, added=2, unchanged=1))
        '2 added, 1 as before'
    """
    counts = {
        "added": report.added,
        "changed": report.changed,
        "removed": report.removed,
        "as before": report.unchanged + report.touched,
        "could not be read": len(report.unreadable),
    }
    said = [f"{count:,} {what}" for what, count in counts.items() if count]
    return ", ".join(said) or "nothing to do"
