"""The hands of an extraction: threads that decode and compute, results in order.

Each thread takes a group of photographs from file to features by itself, with torch's own threads
off. Sharing every convolution between the cores instead makes each of them wait for the slowest at
every layer, and with decoding or anybody else's work on the same cores somebody always is.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crossgaze.errors import InputError
from crossgaze.files import stamp_of
from crossgaze.threads import single_threaded
from crossgaze.vision.photos import Photo, PhotoError
from crossgaze.vision.sources.base import Found, RegionSource

PIXELS = 150_000_000  # being decoded at once by all threads together; 10-15 bytes of memory each
GROUP = 32  # photographs that one thread takes at a time, written and acknowledged together


@dataclass(frozen=True)
class Group:
    """What became of a group of photographs.

    Args:
        names: (B,) those that were read.
        found: the regions of each.
        sizes: (B, 2) width and height, upright.
        stamps: (B, 2) bytes and mtime (ns) of the files.
        unreadable: (name, reason) of the others.
    """

    names: tuple[str, ...]
    found: tuple[Found, ...]
    sizes: npt.NDArray[np.int64]
    stamps: npt.NDArray[np.int64]
    unreadable: tuple[tuple[str, str], ...]


class PixelBudget:
    """Lets threads decode together while their photographs have so many pixels in all, else waits.

    Many cores that each decode a photograph of 100 megapixels would not fit into memory. A single
    photograph may always be decoded, however large.

    Example:
        ```python
        budget = PixelBudget(150_000_000)
        with budget(width * height):
            decode()
        ```
    """

    def __init__(self, pixels: int) -> None:
        self._free = self._all = pixels
        self._changed = threading.Condition()

    @contextmanager
    def __call__(self, pixels: int) -> Iterator[None]:
        """Hold `pixels` of the budget for the block."""
        pixels = min(pixels, self._all)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= pixels)
            self._free -= pixels
        try:
            yield
        finally:
            with self._changed:
                self._free += pixels
                self._changed.notify_all()


def extract_groups(
    root: Path,
    names: Sequence[str],
    read: Callable[[Path, PixelBudget], Photo],
    source: RegionSource,
    *,
    group: int = GROUP,
    workers: int,
) -> Iterator[Group]:
    """Give the regions of photographs, group by group in the order of `names`.

    Args:
        root: the folder that the names are relative to.
        names: the photographs.
        read: gives a photograph resized to what the network takes, decoded within a budget.
        source: makes regions of them.
        group: photographs that a thread takes at a time; more than a batch, so that shapes find
            their like.
        workers: threads.
    """
    # A GPU takes one batch at a time anyway; the threads then share out the decoding.
    turn = threading.Lock() if source.device.type != "cpu" else nullcontext()
    stop = threading.Event()
    budget = PixelBudget(PIXELS)

    def go_on() -> None:
        if stop.is_set():
            raise _StoppedError

    def work(names: Sequence[str]) -> Group:
        photos, stamps, done, unreadable = [], [], [], []
        for name in names:
            go_on()
            path = root / name
            try:
                status = path.stat()
                photos.append(read(path, budget))
            except PhotoError as error:
                _require_there(root)
                unreadable.append((name, error.reason))
            except OSError as error:
                _require_there(root)
                unreadable.append((name, error.strerror or str(error)))
            else:
                done.append(name)
                stamps.append(stamp_of(status))
        with turn:
            found = source(photos, done, go_on)
        sizes = [(photo.width, photo.height) for photo in photos]
        return Group(
            tuple(done),
            tuple(found),
            np.array(sizes, np.int64).reshape(-1, 2),
            np.array(stamps, np.int64).reshape(-1, 2),
            tuple(unreadable),
        )

    with single_threaded() as initializer:
        pool = ThreadPoolExecutor(workers, "extract", initializer)
        waiting: deque[Future[Group]] = deque()
        try:
            for start in range(0, len(names), group):
                waiting.append(pool.submit(work, names[start : start + group]))
                if len(waiting) > workers + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


class _StoppedError(Exception):
    """The extraction was given up while this thread was at work; nobody waits for its result."""


def _require_there(root: Path) -> None:
    """Tell a photograph that cannot be read from a folder that has gone away."""
    if not root.is_dir():
        raise InputError(f"{root}: is gone, its photographs were being read") from None
