"""Norms and cosines as the papers' code defines them, finite at zero in value and gradient."""

from __future__ import annotations

import torch
from torch import Tensor

EPS = 1e-8


def length(x: Tensor, dim: int) -> Tensor:
    """Return sqrt(sum x^2) along `dim`, kept as size 1; its gradient at zero is zero, not NaN."""
    return root(x.square().sum(dim, keepdim=True))


def root(x: Tensor) -> Tensor:
    """Return sqrt(x), and 0 with gradient 0 where x is not positive."""
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1.0).sqrt(), 0.0)


def _wide(x: Tensor) -> Tensor:
    """Return half precision as single: there 1e-8 is zero, and squares overflow."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def l2norm(x: Tensor, dim: int = -1) -> Tensor:
    """Return x / (|x|_2 + 1e-8) along `dim`.

    Example:
        >>> l2norm(torch.tensor([3.0, 4.0]))
        tensor([0.6000, 0.8000])
    """
    wide = _wide(x)
    return (wide / (length(wide, dim) + EPS)).to(x.dtype)


def l1norm(x: Tensor, dim: int = -1) -> Tensor:
    """Return x / (|x|_1 + 1e-8) along `dim`."""
    wide = _wide(x)
    return (wide / (wide.abs().sum(dim, keepdim=True) + EPS)).to(x.dtype)


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Return a.b / max(|a| |b|, 1e-8) over the last dimension: 0 where one of them is zero."""
    dtype, a, b = a.dtype, _wide(a), _wide(b)
    lengths = (length(a, -1) * length(b, -1)).squeeze(-1)
    return ((a * b).sum(-1) / lengths.clamp(min=EPS)).to(dtype)


def masked_softmax(x: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    """Return the softmax over the entries where `mask` is True; the others get 0.

    Every slice along `dim` must have at least one True.
    """
    return x.masked_fill(~mask, -torch.inf).softmax(dim).masked_fill(~mask, 0.0)
