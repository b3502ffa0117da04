"""The order in which VSRN's GRU reads regions (Li et al., ICCV 2019, section 4.2 and table 5)."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy.typing as npt
import torch
from torch import Tensor

from crossgaze.errors import InputError
from crossgaze.models.checks import numbers, require_counts
from crossgaze.models.encoded import real

Order = Literal["given", "confidence", "box-size", "random"]


def order_regions(
    features: Tensor | npt.NDArray[Any],
    counts: Tensor | npt.NDArray[Any],
    boxes: Tensor | npt.NDArray[Any] | None = None,
    confidence: Tensor | npt.NDArray[Any] | None = None,
    how: Order = "confidence",
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Sort each image's regions as the GRU shall read them: table 5 of the paper.

    Args:
        features: (N, k, d) region features.
        counts: (N,) how many are real; padding stays behind them.
        boxes: (N, k, 4) x1, y1, x2, y2, for "box-size".
        confidence: (N, k) how sure the detector is, for "confidence".
        how: "given" as they are; "confidence" the surest first, the paper's own; "box-size" the
            largest area first; "random". Equal ones stay in the order given.
        generator: what "random" draws from, on the CPU.

    Returns:
        The features, (N, k, d), and the order, (N, k): place i holds what was region `order[:, i]`.

    Example:
        >>> features, sure = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[0.3, 0.9]])
        >>> order_regions(features, torch.tensor([2]), confidence=sure)[0].tolist()
        [[[2.0], [1.0]]]
    """
    x, real_counts = _tensor(features), _tensor(counts)
    if x.ndim != 3 or real_counts.shape != x.shape[:1]:
        got = f"{tuple(x.shape)} and {tuple(real_counts.shape)}"
        raise InputError(f"features, counts: got shapes {got}, wanted (N, k, d) and (N,)")
    real_counts = require_counts("counts", real_counts, *x.shape[:2])
    shape, key = x.shape[:2], None
    if how == "given":
        key = torch.zeros(shape)
    elif how == "confidence":
        key = _tensor(_required("confidence", confidence, tuple(shape))).double()
    elif how == "box-size":
        corners = _tensor(_required("boxes", boxes, (*shape, 4))).double()
        key = (corners[..., 2:] - corners[..., :2]).prod(-1)  # (N, k) areas
    elif how == "random":
        key = torch.rand(shape, generator=generator)
    else:
        raise InputError(f"how: got {how!r}, wanted one of {', '.join(get_args(Order))}")
    mask = real(real_counts.to(x.device), shape[1])
    key = key.to(x.device).masked_fill(~mask, -torch.inf)
    order = key.argsort(dim=1, descending=True, stable=True)  # (N, k)
    return x.gather(1, order[..., None].expand_as(x)), order


def _tensor(values: Tensor | npt.NDArray[Any]) -> Tensor:
    """Return a tensor; of an array a copy, since a mapped store's must not be written to."""
    return values if isinstance(values, Tensor) else numbers("regions", values)


def _required(
    name: str, values: Tensor | npt.NDArray[Any] | None, shape: tuple[int, ...]
) -> Tensor | npt.NDArray[Any]:
    """Return `values` if they are there and of this shape, else say what was wanted."""
    if values is None or tuple(values.shape) != shape:
        got = "none" if values is None else f"shape {tuple(values.shape)}"
        raise InputError(f"{name}: got {got}, wanted {shape} for this order of regions")
    return values
