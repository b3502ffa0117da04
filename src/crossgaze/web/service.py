"""What every route needs, in one place."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from crossgaze.search.entries import Entry
from crossgaze.search.index import Index
from crossgaze.web.asker import Asker
from crossgaze.web.jobs import Indexing
from crossgaze.web.lanes import Lane, Places
from crossgaze.web.library import Library
from crossgaze.web.metrics import Metrics
from crossgaze.web.settings import ServeConfig
from crossgaze.web.thumbnails import Thumbnails

UPLOADS = 8  # pictures that are being received at a time, each in memory
THUMBNAILS = 256  # thumbnails that may wait: a browser asks for a whole page of them


class Service:
    """An index, the lanes in which it is asked, and what is counted.

    Args:
        index: open; the caller closes it.
        config: the settings.
        asker: answers questions, if anything does.
    """

    def __init__(self, index: Index, config: ServeConfig, asker: Asker | None = None) -> None:
        self.config, self.asker = config, asker
        self.stopping = False
        self.metrics = Metrics()
        self.library = Library(index, self.metrics)
        self.models = Lane("models", 1, config.waiting, config.seconds)
        self.pictures = Lane("pictures", 2, THUMBNAILS, config.seconds)
        self.uploads = Places(UPLOADS)
        self.thumbnails = Thumbnails(config.cache_bytes, self.metrics)
        self.indexing = Indexing(index, config.folders)
        self._tasks: set[asyncio.Task[None]] = set()
        watch = self.metrics.watch
        watch("photographs", "Photographs in the index", lambda: self.library.photographs)
        watch("waiting", "Requests waiting for the models or using them", lambda: self.models.taken)
        watch("thumbnail_bytes", "Thumbnails in memory", lambda: self.thumbnails.kept.weight)
        watch("indexing_done", "Photographs read of the folder", lambda: self.indexing.job.done)
        watch("indexing_of", "Photographs to do of the folder", lambda: self.indexing.job.of)

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something go on, whether its client stays or not."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def entry(self, uid: int) -> Entry:
        """Return an entry by id; one that a list has shown without waiting for the models."""
        known = self.library.entry_if_known(uid)
        return await self.models.run(self.library.entry, uid) if known is None else known

    def stop(self) -> None:
        """Begin to end: what is being added is given up, and nobody looks on any more."""
        self.stopping = True
        self.indexing.give_up()

    def close(self) -> None:
        """Start nothing more."""
        self.indexing.stop()
        self.models.close()
        self.pictures.close()
