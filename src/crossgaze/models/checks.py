"""Checks of configurations and inputs that several models make."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crossgaze.errors import InputError, nearest


def require_whole(name: str, value: object) -> None:
    """Refuse anything but a whole number from 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name}: got {value!r}, wanted a whole number, 1 or more")


def require_positive(name: str, value: object) -> None:
    """Refuse anything but a finite number above 0."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < math.inf:  # type: ignore[operator]
        raise InputError(f"{name}: got {value!r}, wanted a number above 0")


def require_choice(name: str, value: object, options: Iterable[str]) -> None:
    """Refuse what is none of the options, naming the nearest."""
    options = tuple(options)
    if value not in options:
        hint = nearest(str(value), options)
        raise InputError(f"{name}: got {value!r}{hint}, wanted one of {', '.join(options)}")


def whole_numbers(name: str, values: Tensor | npt.NDArray[Any] | Sequence[Any]) -> Tensor:
    """Return whole numbers as an int64 tensor; a fraction is refused and not cut."""
    found = values if isinstance(values, Tensor) else torch.from_numpy(np.array(values))
    if found.numel() == 0:
        return found.to(torch.long)
    if found.dtype == torch.bool or found.is_complex() or not bool((found == found.long()).all()):
        raise InputError(f"{name}: got {found.flatten()[:4].tolist()}, wanted whole numbers")
    return found.to(torch.long)


def require_counts(
    name: str, counts: Tensor | npt.NDArray[Any] | Sequence[int] | None, rows: int, width: int
) -> Tensor:
    """Check how many fragments are real and return them as (rows,) int64; all if not given."""
    if counts is None:
        return torch.full((rows,), width, dtype=torch.long)
    found = whole_numbers(name, counts)
    if found.shape != (rows,):
        raise InputError(f"{name}: got shape {tuple(found.shape)}, wanted ({rows},)")
    if rows and (int(found.min()) < 1 or int(found.max()) > width):
        raise InputError(
            f"{name}: go from {int(found.min())} to {int(found.max())}, wanted 1 to {width}"
        )
    return found
