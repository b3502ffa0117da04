"""Tables of which most rows are zero, kept without these rows.

A learned vector for each of a BERT's word pieces begins at zero and stays there for every piece
that training never met: three of four rows of such a table are nothing but zeros.

| in a file | shape |
| --- | --- |
| NAME.rows | (r,) int32, ascending: which rows there are |
| NAME.values | (r, D), these rows |
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from crossgaze.errors import FileFormatError

ROWS, VALUES = ".rows", ".values"
MOST = 0.5  # of a table's rows that may be there for it to be kept so


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
    for name in [key.removesuffix(ROWS) for key in weights if key.endswith(ROWS)]:
        if name not in wanted or name in weights or name + VALUES not in weights:
            continue  # what does not fit is named with all else that does not
        rows, values = found.pop(name + ROWS), found.pop(name + VALUES)
        count = len(wanted[name]) if wanted[name].ndim else 0
        fits = rows.ndim == 1 and values.ndim == 2 and len(rows) == len(values)
        if not fits or rows.dtype not in (torch.int32, torch.int64):
            raise FileFormatError(path, f"{name}: its rows and their numbers do not fit together")
        if len(rows) and not (rows[0] >= 0 and rows[-1] < count and bool((rows.diff() > 0).all())):
            raise FileFormatError(path, f"{name}: names rows that are not of 0 to {count - 1}")
        table = values.new_zeros(count, values.shape[1])
        table[rows.long()] = values
        found[name] = table
    return found
