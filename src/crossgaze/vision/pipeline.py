"""The hands of an extraction: threads that decode and compute, results in order.

Each thread takes a group of photographs from file to features by itself, with torch's own threads
off. Sharing every convolution between the cores instead makes each of them wait for the slowest at
every layer, and with decoding on the same cores somebody always is: measured on two cores, that
kept 0.6 of the network's speed, and a busy neighbour cost a factor of eight.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from crossgaze.vision.backbones import Backbone
from crossgaze.vision.grid import pool_grid
from crossgaze.vision.photos import Photo, PhotoError

GROUP = 32  # photographs that one thread takes at a time, written and acknowledged together


@dataclass(frozen=True)
class Group:
    """What became of a group of photographs.

    Args:
        names: (B,) those that were read.
        features: (B, g * g, d).
        sizes: (B, 2) width and height, upright.
        stamps: (B, 2) bytes and mtime (ns) of the files.
        unreadable: (name, reason) of the others.
    """

    names: tuple[str, ...]
    features: npt.NDArray[np.float32]
    sizes: npt.NDArray[np.int64]
    stamps: npt.NDArray[np.int64]
    unreadable: tuple[tuple[str, str], ...]


def extract_groups(
    root: Path,
    names: Sequence[str],
    read: Callable[[Path], Photo],
    model: Backbone,
    *,
    grid: int,
    batch: int,
    workers: int,
) -> Iterator[Group]:
    """Give the regions of photographs, group by group in the order of `names`.

    Args:
        root: the folder that the names are relative to.
        names: the photographs.
        read: gives a photograph resized to what the network takes.
        model: the backbone, on its device.
        grid: g.
        batch: photographs a forward pass.
        workers: threads.
    """
    # A GPU takes one batch at a time anyway; the threads then share out the decoding.
    turn = threading.Lock() if model.mean.device.type != "cpu" else None

    def work(names: Sequence[str]) -> Group:
        photos, stamps, done, unreadable = [], [], [], []
        for name in names:
            path = root / name
            try:
                status = path.stat()
                photos.append(read(path))
            except PhotoError as error:
                unreadable.append((name, error.reason))
            except OSError as error:
                unreadable.append((name, error.strerror or str(error)))
            else:
                done.append(name)
                stamps.append((status.st_size, status.st_mtime_ns))
        compute = partial(grid_regions, photos, model, grid, batch)
        if turn is None:
            features = compute()
        else:
            with turn:
                features = compute()
        sizes = [(photo.width, photo.height) for photo in photos]
        return Group(
            tuple(done),
            features,
            np.array(sizes, np.int64).reshape(-1, 2),
            np.array(stamps, np.int64).reshape(-1, 2),
            tuple(unreadable),
        )

    group = max(GROUP, batch)
    with _single_threaded() as initializer:
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


@contextmanager
def _single_threaded() -> Iterator[Callable[[], None]]:
    """Give what a thread calls to compute alone; afterwards torch has the threads it had."""
    before = torch.get_num_threads()
    try:
        yield lambda: torch.set_num_threads(1)
    finally:
        torch.set_num_threads(before)
