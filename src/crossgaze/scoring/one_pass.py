"""Cross attention in one pass, for numba to compile; `attention` explains it in the same letters.

Arrays of a block: E, (c, q x WIDE) softmax weights up to a factor; `top`, E . s; `z`, their sum;
`square`, half of E' G E. Columns are a query fragment and one of WIDE items, items innermost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

from crossgaze.models.cross_attention import UNIFORM
from crossgaze.models.norms import EPS as NORM_EPS

WIDE = 32  # items of the query at once

# exp(x) = 2^k exp(r), |r| <= ln(2) / 2, with a polynomial for exp(r) that is right to 1e-7.
LOG2E = np.float32(1.4426950408889634)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
P0, P1, P2 = np.float32(1.9875691e-4), np.float32(1.3981999e-3), np.float32(8.3334519e-3)
P3, P4, P5 = np.float32(4.1665796e-2), np.float32(1.6666667e-1), np.float32(0.5)
EPS, EQUAL = np.float32(NORM_EPS), np.float32(UNIFORM)
ZERO, HALF, ONE, TWO = np.float32(0), np.float32(0.5), np.float32(1), np.float32(2)

Floats = npt.NDArray[np.float32]
F = TypeVar("F", bound=Callable[..., Any])
# Not all of fast-math: what is not a number must stay so.
compiled = cast(
    Callable[[F], F],
    njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz", "arcp"}),
)


@compiled
def attend(
    scores: Floats,
    gram: Floats,
    lengths: Floats,
    sharpness: np.float32,
    leak: np.float32,
    focal: int,
    out: Floats,
) -> None:
    """Write the cosines of query fragments with what they attend to.

    Args:
        scores: (C, c, q, I) inner products.
        gram: (C, c or more, c) inner products within each context item.
        lengths: (q, I) of the query's fragments.
        sharpness: lambda_1.
        leak: slope below zero; 1 does not clip.
        focal: 0 keeps all context fragments, 1 is BFAN's "equal", 2 its "prob".
        out: (C, q, I), written.
    """
    items, c, q, others = scores.shape
    size = q * WIDE
    weights, factors = np.zeros((c, size), np.float32), np.zeros(WIDE, np.float32)
    shifts, mixed = np.zeros(size, np.int32), np.zeros(size, np.float32)
    top, square, z = (
        np.zeros(size, np.float32), np.zeros(size, np.float32), np.zeros(size, np.float32)
    )  # fmt: skip
    for item in range(items):
        for start in range(0, others, WIDE):
            wide = min(WIDE, others - start)
            top[:], z[:] = ZERO, ZERO
            for row in range(c):
                _weigh(scores[item, row], start, wide, sharpness, leak,
                       weights[row], shifts, factors, z)  # fmt: skip
            if focal > 0:
                _focus(weights, focal, mixed, top, z)
                top[:] = ZERO
            for row in range(c):
                e = weights[row]
                for word in range(q):
                    s = scores[item, row, word]
                    for j in range(wide):
                        top[word * WIDE + j] += e[word * WIDE + j] * s[start + j]
            square[:] = ZERO
            _squares(weights, gram[item], mixed, square)
            for word in range(q):
                for j in range(wide):
                    n = word * WIDE + j
                    double = TWO * square[n]
                    bottom = np.sqrt(double if double > ZERO else ZERO) * lengths[word, start + j]
                    least = EPS * z[n]
                    cosine = top[n] / (bottom if bottom > least else least)
                    cosine = ONE if cosine > ONE else cosine
                    out[item, word, start + j] = -ONE if cosine < -ONE else cosine


@compiled
def _weigh(
    scores: Floats,
    start: int,
    wide: int,
    sharpness: np.float32,
    leak: np.float32,
    e: Floats,
    shifts: npt.NDArray[np.int32],
    factors: Floats,
    z: Floats,
) -> None:
    """Write exp(lambda s-bar) of one context fragment to `e`, and add it to `z`.

    Args:
        scores: (q, I) of the fragment.
        start: first item of the query.
        wide: how many of them.
        sharpness: lambda_1.
        leak: slope below zero.
        e: (q x WIDE), written.
        shifts: (q x WIDE), overwritten.
        factors: (WIDE,), overwritten.
        z: (q x WIDE), added to.
    """
    q = scores.shape[0]
    powers = shifts.view(np.float32)
    factors[:] = ZERO
    for word in range(q):
        s = scores[word]
        for j in range(wide):
            x = s[start + j]
            x = x if x > ZERO else x * leak
            e[word * WIDE + j] = x
            factors[j] += x * x
    for j in range(WIDE):
        factors[j] = sharpness / (np.sqrt(factors[j]) + EPS)
    for word in range(q):
        for j in range(WIDE):
            n = word * WIDE + j
            x = e[n] * factors[j]
            k = np.floor(x * LOG2E + HALF)
            # 2^k by its bits; at most 2^44 for a sharpness of 30.
            shifts[n] = (np.int32(k) + np.int32(127)) << np.int32(23)
            x = x - k * LN2_HIGH - k * LN2_LOW
            p = ((((P0 * x + P1) * x + P2) * x + P3) * x + P4) * x + P5
            e[n] = p * x * x + x + ONE
    for n in range(q * WIDE):
        e[n] *= powers[n]
        z[n] += e[n]


@compiled
def _focus(weights: Floats, focal: int, trust: Floats, base: Floats, z: Floats) -> None:
    """Set to zero what BFAN drops, and `z` to the sum of the rest; see `models.bfan.focus`."""
    c, size = weights.shape
    best = z  # until the sum is made
    trust[:], base[:], best[:] = ZERO, ZERO, ZERO
    for row in range(c):
        e = weights[row]
        for n in range(size):
            root = ONE if focal == 1 else np.sqrt(e[n])
            trust[n] += root
            base[n] += root * e[n]
            best[n] = e[n] if e[n] > best[n] else best[n]
    for n in range(size):
        uniform = best[n] * trust[n] - base[n] <= EQUAL * base[n]
        base[n] = -ONE if uniform else base[n] / trust[n]
    z[:] = ZERO
    for row in range(c):
        e = weights[row]
        for n in range(size):
            e[n] = ZERO if e[n] <= base[n] else e[n]
            z[n] += e[n]


@compiled
def _squares(weights: Floats, gram: Floats, mixed: Floats, square: Floats) -> None:
    """Add half of E' G E to `square`: of the symmetric G only the upper half is looked at."""
    c, size = weights.shape
    for row in range(c):
        e, own = weights[row], gram[row, row] * HALF
        for n in range(size):
            mixed[n] = own * e[n]
        other = row + 1
        while other + 4 <= c:  # four at a time: `mixed` is read and written less often
            g0, g1, g2, g3 = gram[row, other], gram[row, other + 1], gram[row, other + 2], gram[row, other + 3]  # noqa: E501  # fmt: skip
            e0, e1, e2, e3 = weights[other], weights[other + 1], weights[other + 2], weights[other + 3]  # noqa: E501  # fmt: skip
            for n in range(size):
                mixed[n] += g0 * e0[n] + g1 * e1[n] + g2 * e2[n] + g3 * e3[n]
            other += 4
        while other < c:
            g0, e0 = gram[row, other], weights[other]
            for n in range(size):
                mixed[n] += g0 * e0[n]
            other += 1
        for n in range(size):
            square[n] += mixed[n] * e[n]
