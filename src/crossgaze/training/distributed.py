"""Processes that train together, as `torchrun` starts them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import nn

from crossgaze.collectives import rank, ranks
from crossgaze.devices import find_device
from crossgaze.errors import InputError

T = TypeVar("T")
WAIT = timedelta(hours=12)  # the first looks at dev alone, and BERT reads: torch waits for minutes


@contextmanager
def process_group(device: str = "auto") -> Iterator[torch.device]:
    """Join the other processes, if `torchrun` started any, and give the device to train on.

    Args:
        device: "auto" (a GPU if there is one), "cpu", "cuda", "cuda:1" ...; of several processes
            with "auto" or "cuda" each takes the GPU of its number on the machine.
    """
    count = _number("WORLD_SIZE", 1)
    chosen = choose_device(device, _number("LOCAL_RANK", 0))
    if count <= 1 or dist.is_initialized():
        yield chosen
        return
    for name in ("RANK", "MASTER_PORT"):
        _number(name, None)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo", timeout=WAIT)
    try:
        yield chosen
    finally:
        dist.destroy_process_group()


def _number(name: str, default: int | None) -> int:
    """Return what `torchrun` says in a variable, which another launcher may have set as well."""
    found = os.environ.get(name)
    if found is None and default is not None:
        return default
    if found is None or not found.isdecimal():
        got = "it is not set" if found is None else f"got {found!r}, wanted a number"
        raise InputError(
            f"{name}: {got}; start several processes with torchrun, or one without WORLD_SIZE, "
            "RANK and LOCAL_RANK"
        )
    return int(found)


def choose_device(device: str, local: int = 0) -> torch.device:
    """Return the device that a name means, or say that it is not there."""
    if device in ("auto", "cuda") and torch.cuda.is_available():
        device = f"cuda:{local}"
    elif device == "auto":
        device = "cpu"  # a Mac's GPU is taken by its name only: nothing was ever trained on one
    return find_device(device)


def wrap(step: nn.Module, device: torch.device) -> nn.Module:
    """Return the step with gradients averaged over the processes; alone, the step itself."""
    if ranks() == 1:
        return step
    ids = [device.index] if device.type == "cuda" else None
    return nn.parallel.DistributedDataParallel(step, device_ids=ids)


def from_first(value: T) -> T:
    """Return rank 0's value on every rank."""
    if ranks() == 1:
        return value
    held: list[T] = [value]
    dist.broadcast_object_list(held, src=0)
    return held[0]


def is_first() -> bool:
    """Whether this process is the one that writes."""
    return rank() == 0


def started_first() -> bool:
    """Whether this process is the first that `torchrun` started, or the only one."""
    return _number("RANK", 0) == 0
