"""Random numbers that depend on where a run is, not on how it came there.

Every step starts its generators anew from the run's seed and the step's number. So a run that was
stopped and went on draws what it would have drawn, and there is no generator's state to keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_of(*numbers: int) -> int:
    """Return one seed from several numbers, unlike that of any others.

    Example:
        >>> seed_of(1, 2) == seed_of(1, 2), seed_of(1, 2) == seed_of(2, 1)
        (True, False)
    """
    words = [number % (1 << 63) for number in numbers]  # -1 is a number, too
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> np.uint64(1))


def seed_everything(*numbers: int) -> None:
    """Start torch's generators, on every device, from these numbers."""
    torch.manual_seed(seed_of(*numbers))


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """Compute the same bits every time, and leave the caller's random numbers as they were.

    On a GPU some operations have a faster form that adds in any order; it is not used.
    """
    devices = [device] if device.type == "cuda" else []
    before = torch.are_deterministic_algorithms_enabled()
    with torch.random.fork_rng(devices=devices):
        try:
            if device.type == "cuda":
                # Else cuBLAS chooses anew; it reads this when it is first used.
                import os

                os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
                torch.use_deterministic_algorithms(True, warn_only=True)
            yield
        finally:
            torch.use_deterministic_algorithms(before)
