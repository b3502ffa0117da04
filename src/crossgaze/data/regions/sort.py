"""The regions of a store in another order: VSRN's GRU reads one after the other.

Li, Zhang, Li, Li, Fu: Visual Semantic Reasoning for Image-Text Matching, ICCV 2019, table 5.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from crossgaze.data.regions.store import FIELDS, RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import InputError
from crossgaze.models.checks import require_choice, require_whole

BATCH = 64
By = Literal["area", "confidence", "random"]
NEEDED = {"area": "boxes", "confidence": "confidence"}


def sort_regions(
    source: str | Path,
    out: str | Path,
    by: By,
    *,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> RegionStore:
    """Write a store with each image's regions in another order; images stay in theirs.

    Equals keep their order. A run that was stopped goes on where it was.

    Args:
        source: the store.
        out: the new store.
        by: "area", the largest box first; "confidence", the surest first; or "random".
        seed: of a random order.
        on_progress: called with (images written, images in all).
    """
    require_choice("by", by, get_args(By))
    require_whole("seed", seed, least=0)
    store = RegionStore(source)
    if Path(out).resolve() == store.folder.resolve():
        raise InputError(f"sort: {out} is the store itself, wanted a new folder")
    if (needed := NEEDED.get(by)) is not None and store.field(needed) is None:
        raise InputError(f"{store.folder}: has no {needed}, wanted them to sort by {by}")
    fields = [field.name for field in store.head.fields]
    order = {"sorted by": by} | ({"seed": seed} if by == "random" else {})
    with RegionWriter.like(out, store, {**store.head.made_by, **order}) as writer:
        if writer.ids != set(store.ids[: len(writer)]):
            raise InputError(f"{out}: was made of another store, wanted a new folder")
        for start in range(len(writer), len(store), BATCH):
            rows = np.arange(start, min(start + BATCH, len(store)))
            turned = _orders(store, rows, by, seed)  # (n, k)
            columns = {name: _column(store, name, rows, turned) for name in fields}
            writer.append([store.ids[row] for row in rows], **columns)
            if on_progress:
                on_progress(len(writer), len(store))
    return RegionStore(out)


def _orders(
    store: RegionStore, rows: npt.NDArray[np.int64], by: By, seed: int
) -> npt.NDArray[np.int64]:
    """Return where each region of some images comes from, (n, k); padding stays last."""
    real = np.arange(store.head.regions) < store.counts[rows, None]  # (n, k)
    if by == "random":
        # Of each image by itself, so that a run that goes on draws what it would have drawn.
        draws = [np.random.default_rng([seed, int(row)]).random(store.head.regions) for row in rows]
        keys = np.stack(draws)
    elif by == "area":
        boxes = store.boxes[rows].astype(np.float64)  # type: ignore[index]
        keys = -(boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    else:
        keys = -store.field("confidence")[rows].astype(np.float64)  # type: ignore[index]
    found: npt.NDArray[np.int64] = np.where(real, keys, np.inf).argsort(1, kind="stable")
    return found


def _column(
    store: RegionStore, name: str, rows: npt.NDArray[np.int64], turned: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    """Return one field of some images, regions turned where it is of regions."""
    found = store.features if name == "features" else store.field(name)
    assert found is not None
    part = np.asarray(found[rows])
    if name != "features" and not (FIELDS[name][1] and FIELDS[name][1][0] == "k"):
        return part
    return np.take_along_axis(part, turned.reshape(*turned.shape, *[1] * (part.ndim - 2)), axis=1)
