"""Cores, and threads of which each computes alone.

torch shares every operation out among its own threads, which pays for large ones only. Work that
falls into many independent pieces goes faster with one piece a thread and torch's own threads off.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS does not tell
        return os.cpu_count() or 1


@contextmanager
def single_threaded() -> Iterator[Callable[[], None]]:
    """Give what a thread calls to compute alone; afterwards torch has the threads it had."""
    before = torch.get_num_threads()
    try:
        yield lambda: torch.set_num_threads(1)
    finally:
        torch.set_num_threads(before)
