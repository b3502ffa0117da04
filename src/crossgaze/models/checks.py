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

LARGEST = 1 << 20  # no size of a model is anywhere near; more is an accident or an attack


def require_whole(name: str, value: object, least: int = 1, most: int = LARGEST) -> None:
    """Refuse anything but a whole number from `least` to `most`."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        least_or_more = f"{least} or more" if most == LARGEST else f"{least} to {most}"
        raise InputError(f"{name}: got {value!r}, wanted a whole number, {least_or_more}")


def require_switch(name: str, value: object) -> None:
    """Refuse anything but True and False."""
    if not isinstance(value, bool):
        raise InputError(f"{name}: got {value!r}, wanted True or False")


def require_share(name: str, value: object) -> None:
    """Refuse anything but a number from 0 to less than 1."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < 1:  # type: ignore[operator]
        raise InputError(f"{name}: got {value!r}, wanted a number from 0 to less than 1")


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


def numbers(name: str, values: npt.NDArray[Any] | Sequence[Any]) -> Tensor:
    """Return an array or nested lists as a tensor of its own, or say what they are instead."""
    try:
        array = np.array(values)
        if array.dtype.kind == "u":  # torch has few operations on unsigned numbers
            array = array.astype(np.int64)
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: are not an array of numbers: {error}") from None


def whole_numbers(name: str, values: Tensor | npt.NDArray[Any] | Sequence[Any]) -> Tensor:
    """Return whole numbers as an int64 tensor; a fraction is refused and not cut."""
    found = values if isinstance(values, Tensor) else numbers(name, values)
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
