"""What processes that train together tell each other, with gradients (`torchrun`).

Each process ("rank") holds a part of the batch. The objective is the sum of what the ranks
contribute, so that a value which every rank reads gets the sum of all ranks' derivatives. With one
process everything here gives back what it got.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

_ALONE: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """Let this process compute something without the others, who would have to join in."""
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


def ranks() -> int:
    """Return how many processes train together; 1 where none were started together, or alone."""
    together = dist.is_available() and dist.is_initialized() and not _ALONE.get()
    return dist.get_world_size() if together else 1


def rank() -> int:
    """Return the number of this process, from 0."""
    return dist.get_rank() if ranks() > 1 else 0


def sum_over_ranks(x: Tensor) -> Tensor:
    """Return the sum of all ranks' `x`, with gradient."""
    return x if ranks() == 1 else _Sum.apply(x)  # type: ignore[no-untyped-call]


def gather_rows(x: Tensor, sizes: Sequence[int], *, replicated: bool) -> Tensor:
    """Return all ranks' rows of `x`, those of rank 0 first, with gradient.

    Args:
        x: (n, ...) this rank's rows; all ranks agree in everything but n.
        sizes: n of every rank.
        replicated: whether all ranks go on to compute the very same number from the rows. Then
            each takes the derivative of its own rows as it is; otherwise the derivatives that the
            ranks found for these rows are added up.
    """
    if ranks() == 1:
        return x
    return _Gather.apply(x, tuple(sizes), replicated)  # type: ignore[no-any-return, no-untyped-call]


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ANN401
        total = x.detach().clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # noqa: ANN401
        total = grad.contiguous().clone()
        dist.all_reduce(total)
        return total


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, sizes: tuple[int, ...], replicated: bool) -> Tensor:  # noqa: ANN401
        ctx.sizes, ctx.replicated = sizes, replicated
        most = max(sizes)
        # Backends want the same shape from every rank.
        mine = x.new_zeros(most, *x.shape[1:])
        mine[: len(x)] = x.detach()
        parts = [torch.empty_like(mine) for _ in sizes]
        dist.all_gather(parts, mine)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        if not ctx.replicated:
            grad = grad.contiguous().clone()
            dist.all_reduce(grad)
        start = sum(ctx.sizes[: rank()])
        return grad[start : start + ctx.sizes[rank()]].clone(), None, None
