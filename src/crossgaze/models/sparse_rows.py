"""Tables of which most rows are zero, kept without these rows.

A learned vector for each of a BERT's word pieces begins at zero and stays there for every piece
that training never met: three of four rows of such a table are nothing but zeros.

| in a file | shape |
| --- | --- |
| NAME.rows | (r,) int32, ascending: which rows there are |
| NAME.values | (r, D), these rows |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from crossgaze.errors import FileFormatError

ROWS, VALUES = ".rows", ".values"
MOST = 0.5  # of a table's rows that may be there for it to be kept so
# Numbers that a file's tables may have when they are whole: rows that are not there take no bytes,
# so a small file could ask for any number. 250,000 word pieces of 512 numbers each would do.
LARGEST = 1 << 27

Shape = tuple[int, ...]


def pack(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights with tables that are mostly zero kept by their other rows.

    Example:
        >>> table = torch.zeros(5, 2)
        >>> table[3] = 1
        >>> {name: tensor.tolist() for name, tensor in pack({"own": table}).items()}
        {'own.rows': [3], 'own.values': [[1.0, 1.0]]}
    """
    packed: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        there = tensor.any(1) if tensor.ndim == 2 else None
        if there is None or not tensor.is_floating_point() or there.float().mean() > MOST:
            packed[name] = tensor
            continue
        rows = there.nonzero()[:, 0]
        packed[name + ROWS] = rows.to(torch.int32)
        packed[name + VALUES] = tensor[rows].contiguous()
    return packed


def whole_shapes(
    shapes: Mapping[str, Shape], wanted: Mapping[str, Shape], path: Path
) -> dict[str, Shape]:
    """Return the shapes that a file's tables have once `unpack` has made them whole.

    Args:
        shapes: of what is in the file.
        wanted: of the model's own, for how many rows a table has.
        path: of the file, for errors.

    Example:
        >>> packed = {"own.rows": (2,), "own.values": (2, 8), "bias": (4,)}
        >>> whole_shapes(packed, {"own": (5, 8), "bias": (4,)}, Path("x"))
        {'bias': (4,), 'own': (5, 8)}
    """
    found, numbers = dict(shapes), 0
    for name in _packed(shapes, wanted):
        del found[name + ROWS]
        found[name] = wanted[name][:1] + found.pop(name + VALUES)[1:]
        numbers += math.prod(found[name])
    if numbers > LARGEST:
        raise FileFormatError(
            path, f"its tables have {numbers:,} numbers when they are whole, {LARGEST:,} may be"
        )
    return found


def unpack(
    weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor], path: Path
) -> dict[str, Tensor]:
    """Return weights with every table whole.

    Args:
        weights: what `pack` gave.
        wanted: the model's own, for how many rows a table has.
        path: of the file, for errors.
    """
    found = dict(weights)
    for name in _packed(weights, wanted):
        rows, values = found.pop(name + ROWS), found.pop(name + VALUES)
        shape = tuple(wanted[name].shape)
        fits = rows.ndim == 1 and values.ndim == 2 and len(rows) == len(values)
        if not fits or rows.dtype not in (torch.int32, torch.int64):
            raise FileFormatError(path, f"{name}: its rows and their numbers do not fit together")
        if len(shape) != 2 or shape[1] != values.shape[1]:  # before a table is made of them
            raise FileFormatError(
                path, f"{name}: has rows of {values.shape[1]:,} numbers, wanted the shape {shape}"
            )
        last = shape[0] - 1
        if len(rows) and not (rows[0] >= 0 and rows[-1] <= last and bool((rows.diff() > 0).all())):
            raise FileFormatError(path, f"{name}: names rows that are not of 0 to {last}")
        table = values.new_zeros(shape)
        table[rows.long()] = values
        found[name] = table
    return found


def _packed(there: Mapping[str, object], wanted: Mapping[str, object]) -> list[str]:
    """Return the tables of a model that are kept by their rows.

    What does not fit otherwise stays, to be named with all else that does not.
    """
    names = [key.removesuffix(ROWS) for key in there if key.endswith(ROWS)]
    return [n for n in names if n in wanted and n not in there and n + VALUES in there]
