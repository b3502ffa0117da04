"""Re-ranking: a few sentences against chosen images whose regions lie in a mapped file.

Each thread reads some candidates, makes them float32 and scores them while they are still in its
cache, so that the bytes of a candidate are touched once.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crossgaze.errors import InputError
from crossgaze.models.checks import require_counts, whole_numbers
from crossgaze.models.encoded import Encoded
from crossgaze.scoring.every_pair import Scorer
from crossgaze.scoring.tiles import make_tiles
from crossgaze.threads import cores, plain_mode, single_threaded

GROUP = 900  # regions a thread takes at a time
WORDS = 1536


def rerank(
    model: Scorer,
    texts: Encoded,
    regions: npt.NDArray[Any],
    rows: Sequence[int] | npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64] | None = None,
    vectors: npt.NDArray[Any] | None = None,
    *,
    workers: int | None = None,
) -> Tensor:
    """Return the scores of candidate images with sentences, (candidates, texts).

    Args:
        model: whose similarity.
        texts: encoded sentences, usually one.
        regions: (N, k, D) images' fragments as the model encoded them, in any precision; mapped
            from a file, only the candidates are read.
        rows: the candidates.
        counts: (N,) how many regions of each image are real; all if not given.
        vectors: (N, D) images' vectors, for MMCA, which compares both.
        workers: threads on a CPU; one a core if not given.

    Example:
        ```python
        regions = np.load("fragments.npy", mmap_mode="r")
        scores = rerank(model, model.encode_texts(["two dogs"]), regions, candidates)
        ```
    """
    if regions.ndim != 3:
        raise InputError(f"regions: got shape {regions.shape}, wanted (N, k, D)")
    if 0 in regions.shape[1:]:
        raise InputError(
            f"regions: got shape {regions.shape}, wanted at least one region of width 1"
        )
    chosen = whole_numbers("rows", np.asarray(rows)).numpy().reshape(-1)
    outside = chosen[(chosen < 0) | (chosen >= len(regions))]
    if len(outside):
        raise InputError(f"rows: got {outside[0]}, wanted 0 to {len(regions) - 1}")
    if workers is not None and workers < 1:
        raise InputError(f"workers: got {workers}, wanted 1 or more")
    real = torch.full((len(chosen),), regions.shape[1], dtype=torch.long)
    if counts is not None:
        if np.shape(counts) != (len(regions),):
            raise InputError(f"counts: got shape {np.shape(counts)}, wanted ({len(regions)},)")
        # Only of the candidates, which are few among perhaps millions.
        real = require_counts("counts", counts[chosen], len(chosen), regions.shape[1])
    kernel, device = model.kernel(), texts.counts.device
    like = texts.fragments if texts.fragments is not None else texts.vectors
    dtype = torch.float64 if like is not None and like.dtype == torch.float64 else torch.float32
    inference = torch.is_inference_mode_enabled()
    with plain_mode(device, inference=inference):
        sides = make_tiles(_cast(texts, dtype), WORDS, items_first=kernel.items_first[1])
        said = [(tile.rows, kernel.texts(tile.side)) for tile in sides]
        scores = torch.empty(len(chosen), len(texts), dtype=dtype, device=device)

    in_order = bool((np.diff(chosen) == 1).all())

    def work(start: int) -> None:
        part = chosen[start : start + size]
        # What lies together in main memory already is not copied once more.
        together = in_order and regions.flags.writeable
        block = regions[part[0] : part[-1] + 1] if together else regions[part]
        read = torch.from_numpy(block).to(device, dtype)
        whole = None if vectors is None else torch.from_numpy(vectors[part]).to(device, dtype)
        with plain_mode(device, inference=inference):
            here = real[start : start + size].to(device)
            for tile in make_tiles(Encoded(whole, read, here), GROUP):
                seen = kernel.images(tile.side)
                for columns, text in said:
                    at = (tile.rows + start)[:, None]
                    scores[at, columns] = kernel.score(seen, text).to(dtype)

    size = max(GROUP // regions.shape[1], 1)
    starts = range(0, len(chosen), size)
    if device.type != "cpu" or len(starts) < 2:
        for start in starts:
            work(start)
        return scores
    threads = min(workers or cores(), len(starts))
    with (
        single_threaded() as initializer,
        ThreadPoolExecutor(threads, "rerank", initializer) as pool,
    ):
        for _ in pool.map(work, starts):
            pass
    return scores


def _cast(side: Encoded, dtype: torch.dtype) -> Encoded:
    vectors = None if side.vectors is None else side.vectors.to(dtype)
    fragments = None if side.fragments is None else side.fragments.to(dtype)
    return Encoded(vectors, fragments, side.counts)
