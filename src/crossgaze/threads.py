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
def plain_mode(device: torch.device, *, inference: bool) -> Iterator[None]:
    """Compute without gradient and autocast, in inference mode or not, the same in every thread.

    All three are a thread's own. What a caller set would hold for work done here and not for work
    done by threads, and numbers would depend on how much work there is.

    Args:
        device: where work is done.
        inference: `torch.is_inference_mode_enabled()` where the work was ordered.
    """
    with (
        torch.inference_mode(inference),
        torch.no_grad(),
        torch.autocast(device.type, enabled=False),
    ):
        yield


@contextmanager
def single_threaded() -> Iterator[Callable[[], None]]:
    """Give what a thread calls to compute alone; afterwards torch has the threads it had.

    MKL's count of threads belongs to the process, so that other threads of a program that compute
    at the same time compute alone too.
    """
    before = torch.get_num_threads()
    try:
        yield lambda: torch.set_num_threads(1)
    finally:
        torch.set_num_threads(before)
