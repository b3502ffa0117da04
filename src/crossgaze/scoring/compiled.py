"""Where cross attention may be computed in one compiled pass, and the call that does it.

`crossgaze.scoring.attention` goes over a tile's scores ten times, once a torch operation. With the
extra `fast` (numba) one item of the context meets 32 items of the query at a time, and everything
between inner products and cosines happens while those few thousand numbers stay in a core's first
cache (`one_pass`). The numbers are the same up to rounding.

Used where numba is installed, for float32 on a CPU and the norms that SCAN and BFAN use, on tiles
large enough to be worth the compilation (some seconds, once a machine: numba keeps the result).
The environment variable CROSSGAZE_COMPILED=0 turns it off.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor

from crossgaze.models.cross_attention import LEAK, FeatureNorm, Focal

WORTH = 1 << 18  # scores of a tile
NARROWEST = 16  # items of the query; with fewer, most lanes of the processor would stay empty
FOCALS: dict[Focal | None, int] = {None: 0, "equal": 1, "prob": 2}
LEAKS: dict[FeatureNorm, float] = {"l2norm": 1.0, "clipped_l2norm": LEAK}


def relevances(
    scores: Tensor,
    gram: Tensor,
    lengths: Tensor,
    *,
    norm: FeatureNorm,
    sharpness: float,
    focal: Focal | None,
) -> Tensor:
    """Return the cosine of each query fragment with what it attends to, (C, q, I).

    Args:
        scores: (C, c, q, I) inner products, left as they are.
        gram: (C, c or more, c) inner products within each context item.
        lengths: (q, I) of the query's fragments.
        norm: how scores are normalised over the query, one of LEAKS.
        sharpness: lambda_1, at most 30 either way.
        focal: which context fragments BFAN keeps, None for all.
    """
    run = _one_pass()
    assert run is not None
    out = scores.new_empty(len(scores), *scores.shape[2:])
    parts = [part.detach().contiguous().numpy() for part in (scores, gram, lengths)]
    run(*parts, np.float32(sharpness), np.float32(LEAKS[norm]), FOCALS[focal], out.numpy())
    return out


def takes(scores: Tensor, norm: FeatureNorm) -> bool:
    """Return whether the compiled pass can be and is worth being used."""
    return (
        norm in LEAKS
        and scores.dtype == torch.float32
        and scores.device.type == "cpu"
        and scores.numel() >= WORTH
        and scores.shape[3] >= NARROWEST
        and os.environ.get("CROSSGAZE_COMPILED") != "0"
        and _one_pass() is not None
    )


@cache
def _one_pass() -> Callable[..., None] | None:
    """Return the compiled pass, or None without numba or a folder to keep what it compiles."""
    try:
        from crossgaze.scoring.one_pass import attend
    except (ImportError, RuntimeError):
        return None
    return attend
