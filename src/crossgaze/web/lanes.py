"""Work off the event loop: few threads, and a line before them that has an end.

A request takes a place for as long as it wants anything computed, however many steps that are.
When all places are taken, the next request is told so at once; nothing piles up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import ParamSpec, TypeVar

from crossgaze.web.problems import BusyError, RequestError

P = ParamSpec("P")
T = TypeVar("T")


class Places:
    """So many requests at a time, and not one more.

    Args:
        count: how many.

    Example:
        >>> places = Places(1)
        >>> place = places.enter()
        >>> places.taken
        1
        >>> place.leave()
        >>> places.taken
        0
    """

    def __init__(self, count: int) -> None:
        self.count, self.taken = count, 0

    def enter(self) -> Place:
        """Take a place, or say that there is none."""
        if self.taken >= self.count:
            raise BusyError
        self.taken += 1
        return Place(self)


class Place:
    """One request's place; `leave` gives it back, once however often it is called."""

    def __init__(self, places: Places) -> None:
        self._places: Places | None = places

    def leave(self) -> None:
        """Give the place back."""
        if self._places is not None:
            self._places.taken -= 1
            self._places = None

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()


class Lane(Places):
    """Threads for one kind of work.

    Args:
        name: of the threads.
        threads: how many; one where what they use is not safe for several.
        places: requests that may be in it, waiting or working.
        seconds: how long a step may wait and take.
    """

    def __init__(self, name: str, threads: int, places: int, seconds: float) -> None:
        super().__init__(places)
        self.seconds = seconds
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"crossgaze-{name}")

    async def step(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something in the lane's threads; the caller has a place."""
        future = asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: work(*args, **kwargs)
        )
        try:
            async with asyncio.timeout(self.seconds):
                return await future
        except TimeoutError:
            raise RequestError(
                503, f"no answer within {self.seconds:g} seconds; try again", {"Retry-After": "5"}
            ) from None

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Take a place for a single step."""
        with self.enter():
            return await self.step(work, *args, **kwargs)

    def close(self) -> None:
        """Start nothing more."""
        with suppress(RuntimeError):
            self._pool.shutdown(wait=False, cancel_futures=True)
