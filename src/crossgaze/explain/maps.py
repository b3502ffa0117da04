"""Region weights to a smooth map over pixels that keeps within the regions' boxes.

A region lights its box, with an edge that fades over a share E of the box's side (`EDGE`), half of
it inside and half outside. With the smooth step s(t) = t^2 (3 - 2 t) for t in [0, 1], 0 below and 1
above, and pixel p at its centre (x, y), region i with box (x1, y1, x2, y2) covers p by

    K_i(p) = s(1/2 + (x - x1) / dx) s(1/2 + (x2 - x) / dx)
             s(1/2 + (y - y1) / dy) s(1/2 + (y2 - y) / dy)

where dx = E (x2 - x1), dy = E (y2 - y1). An edge that lies on the picture's own edge does not fade:
such a region was cut off there and did not end. Of the weights w_i of the regions over a pixel,

    rule "strongest":  H(p) = sum_i w_i (C_i(p) - C_{i-1}(p)), C_i(p) = min(1, sum_{j<=i} K_j(p))
    rule "sum":        H(p) = sum_i w_i K_i(p)

and M(p) = H(p) / max_q H(q). In the first, regions are numbered from the strongest down: the
strongest takes as much of the pixel as it covers, K_1, and every other one what is left, until the
pixel is full. So a pixel well inside its strongest region has that region's weight, whatever lies
below; where that one's edge fades, the next shows through; and a region without weight changes
nothing. Found objects crowd and overlap: a sum lights the crowd, whatever was looked at there,
while this is even where all weights are equal, over objects and, since s(t) + s(1 - t) = 1, without
a seam over the cells of a grid. The sum is VSRN's own (section 4.5).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crossgaze.errors import InputError

Floats = npt.NDArray[np.floating[Any]]
Rule = Literal["strongest", "sum"]
EDGE = 0.1  # the share of a box's side over which it fades in
BORDER = 1e-3  # a box this near to the picture's edge, as a share, ends there
SMALLEST = 1e-12  # weights that add up to less light nothing


def soft_map(
    boxes: Floats,
    weights: Floats,
    width: int,
    height: int,
    *,
    rule: Rule = "strongest",
    edge: float = EDGE,
) -> npt.NDArray[np.float64]:
    """Return how much each pixel was looked at, (height, width), from 0 to 1 where it was most.

    Without any weight it is 0 everywhere.

    Args:
        boxes: (k, 4) x1, y1, x2, y2 as shares of width and height.
        weights: (k,) of the regions, none below 0.
        width: of the map, in pixels.
        height: likewise.
        rule: how the weights of the regions over a pixel become one.
        edge: E, the share of a box's side over which it fades in, from 0 (hard edges) to 1.

    Example:
        >>> soft_map(np.array([[0, 0, 0.5, 1]]), np.array([0.3]), 4, 1, edge=0).tolist()
        [[1.0, 1.0, 0.0, 0.0]]
    """
    placed, given = np.asarray(boxes, np.float64), np.asarray(weights, np.float64)
    if placed.ndim != 2 or placed.shape[1] != 4 or given.shape != placed.shape[:1]:
        got = f"{placed.shape} and {given.shape}"
        raise InputError(f"boxes, weights: got shapes {got}, wanted (k, 4) and (k,)")
    if not np.isfinite(given).all() or (given < 0).any():
        raise InputError("weights: wanted numbers that are finite and not below 0")
    across = _profiles(placed[:, 0], placed[:, 2], width, edge)  # (k, width)
    down = _profiles(placed[:, 1], placed[:, 3], height, edge)  # (k, height)
    top = float(given.max(initial=0.0))
    if top <= SMALLEST:
        return np.zeros((height, width))
    given = given / top
    heat = (given[:, None] * down).T @ across if rule == "sum" else _filled(given, across, down)
    most = float(heat.max())
    return heat / most if most > 0 else heat


def _filled(
    weights: npt.NDArray[np.float64],
    across: npt.NDArray[np.float64],
    down: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return the rule "strongest", (height, width), of covers K = down x across."""
    heat = np.zeros((down.shape[1], across.shape[1]))
    room = np.ones_like(heat)  # what no stronger region has taken of a pixel
    for region in np.argsort(-weights, kind="stable"):
        # Only where it reaches: of a grid's cells each reaches little.
        rows, columns = down[region] > 0, across[region] > 0
        here = np.ix_(rows, columns)
        part = np.minimum(np.outer(down[region, rows], across[region, columns]), room[here])
        heat[here] += weights[region] * part
        room[here] -= part
    return heat


def _profiles(
    low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], count: int, edge: float
) -> npt.NDArray[np.float64]:
    """Return how much of each interval reaches each of `count` pixels of a side, (k, count)."""
    # An interval thinner than a pixel would fall between the centres and be lost.
    thin = 1 / count
    middle = np.clip((low + high) / 2, thin / 2, 1 - thin / 2)
    low, high = np.minimum(low, middle - thin / 2), np.maximum(high, middle + thin / 2)
    centres = (np.arange(count) + 0.5) / count
    fade = np.maximum(edge * (high - low), 1e-9)[:, None]
    rise = 0.5 + (centres - low[:, None]) / fade
    fall = 0.5 + (high[:, None] - centres) / fade
    rise = np.where(low[:, None] <= BORDER, 1.0, rise)
    fall = np.where(high[:, None] >= 1 - BORDER, 1.0, fall)
    return _smooth(rise) * _smooth(fall)


def _smooth(t: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    t = np.clip(t, 0.0, 1.0)
    return t * t * (3 - 2 * t)
