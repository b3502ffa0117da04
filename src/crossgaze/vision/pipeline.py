"""The three hands of an extraction: decode ahead, compute, write behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from crossgaze.data.regions.writer import RegionWriter
from crossgaze.vision.backbones import Backbone
from crossgaze.vision.grid import grid_boxes, pool_grid
from crossgaze.vision.photos import Photo, PhotoError

WINDOW = 64  # photographs decoded, written and acknowledged together


@dataclass(frozen=True)
class Decoded:
    """A photograph with its name and its file's bytes and mtime."""

    name: str
    photo: Photo
    stamp: tuple[int, int]


@dataclass(frozen=True)
class Unreadable:
    """A photograph that could not be decoded, and why."""

    name: str
    reason: str


def decode_ahead(
    root: Path, names: Sequence[str], read: Callable[[Path], Photo], workers: int
) -> Iterator[list[Decoded | Unreadable]]:
    """Give windows of photographs in the order of `names`, the next being decoded meanwhile."""

    def decode(name: str) -> Decoded | Unreadable:
        path = root / name
        try:
            status = path.stat()
            return Decoded(name, read(path), (status.st_size, status.st_mtime_ns))
        except PhotoError as error:
            return Unreadable(name, error.reason)
        except OSError as error:
            return Unreadable(name, error.strerror or str(error))

    pool = ThreadPoolExecutor(workers, thread_name_prefix="decode")
    waiting: deque[list[Future[Decoded | Unreadable]]] = deque()
    try:
        for start in range(0, len(names), WINDOW):
            waiting.append([pool.submit(decode, name) for name in names[start : start + WINDOW]])
            if len(waiting) == 2:
                yield [future.result() for future in waiting.popleft()]
        while waiting:
            yield [future.result() for future in waiting.popleft()]
    finally:
        pool.shutdown(cancel_futures=True)


def grid_regions(
    photos: Sequence[Photo], model: Backbone, grid: int, batch: int
) -> npt.NDArray[np.float32]:
    """Run the network over photographs, in batches of one shape.

    Args:
        photos: B photographs, resized to what the network takes.
        model: the backbone, on its device.
        grid: g.
        batch: photographs a forward pass.

    Returns:
        (B, g * g, d) features.
    """
    shapes: dict[tuple[int, ...], list[int]] = {}
    for row, photo in enumerate(photos):
        shapes.setdefault(photo.pixels.shape, []).append(row)
    features = torch.empty(len(photos), grid * grid, model.width, device=model.mean.device)
    with torch.inference_mode():
        for rows in shapes.values():
            for start in range(0, len(rows), batch):
                chosen = rows[start : start + batch]
                pixels = np.stack([photos[row].pixels for row in chosen])  # (b, H, W, 3)
                maps = model(torch.from_numpy(pixels).to(features.device))  # (b, d, h, w)
                features[chosen] = pool_grid(maps, grid)
    return features.cpu().numpy()


class WriteBehind:
    """Appends windows to a store in a thread of its own, so that the network need not wait."""

    def __init__(self, writer: RegionWriter) -> None:
        self._writer = writer
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="write")
        self._last: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            self._wait()
        finally:
            self._pool.shutdown()

    def append(self, items: Sequence[Decoded], features: npt.NDArray[Any], grid: int) -> None:
        """Hand over a window; waits while the one before it is still being written."""
        self._wait()
        sizes = [(item.photo.width, item.photo.height) for item in items]
        columns = {
            "boxes": np.stack([grid_boxes(grid, *size) for size in sizes]),
            "sizes": np.array(sizes),
            "stamps": np.array([item.stamp for item in items]),
        }
        names = [item.name for item in items]
        self._last = self._pool.submit(self._writer.append, names, features, **columns)

    def _wait(self) -> None:
        if self._last is not None:
            last, self._last = self._last, None
            last.result()
