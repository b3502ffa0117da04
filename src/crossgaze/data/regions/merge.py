"""Joining the stores that several machines made into one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import FileFormatError, InputError

BATCH = 64


def merge_stores(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    partial: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> RegionStore:
    """Join stores that were made the same way; images come out sorted by id.

    That is the order of an extraction that was never sharded, so the result is the same bytes.
    A merge that was stopped goes on where it was.

    Args:
        sources: the shards' folders.
        out: the folder of the whole.
        partial: join even though shards are missing or were not finished.
        on_progress: called with (images written, images in all).
    """
    stores = [RegionStore(source) for source in sources]
    if not stores:
        raise InputError("merge: got no store, wanted at least one")
    if not partial:
        _require_whole(stores)
    first = stores[0]
    places: dict[str, tuple[int, int]] = {}
    for number, store in enumerate(stores):
        _require_alike(first, store)
        for row, name in enumerate(store.ids):
            if name in places:
                other = stores[places[name][0]].folder
                raise InputError(f"merge: image {name!r} is in {other} and in {store.folder}")
            places[name] = (number, row)
    names = sorted(places)
    fields = [field.name for field in first.head.fields if field.name != "features"]
    with RegionWriter(
        out,
        first.head.regions,
        first.head.width,
        dtype=str(first.features.dtype),
        fields=fields,
        labels=first.head.labels,
        made_by=first.head.made_by,
    ) as writer:
        if any(name not in places for name in writer.ids):
            raise InputError(f"{out}: holds images that none of the merged stores has")
        todo = [name for name in names if name not in writer]
        for start in range(0, len(todo), BATCH):
            batch = todo[start : start + BATCH]
            where = [places[name] for name in batch]
            columns = {
                field: np.stack([stores[s].field(field)[r] for s, r in where])  # type: ignore[index]
                for field in ["features", *fields]
            }
            writer.append(batch, **columns)
            if on_progress:
                on_progress(len(writer), len(names))
    return RegionStore(out)


def _require_whole(stores: Sequence[RegionStore]) -> None:
    """Refuse if the shards' own reports say that some of the whole is not among them."""
    found: dict[int, Path] = {}
    total = 0
    for store in stores:
        path = store.folder / "report.json"
        if not path.is_file():
            continue
        try:
            report = json.loads(path.read_text("utf-8"))
            finished, shard = bool(report["finished"]), str(report["shard"] or "1/1")
            number, total = (int(part) for part in shard.split("/"))
        except (ValueError, KeyError, TypeError) as error:
            raise FileFormatError(path, f"does not read as a report: {error!r}") from None
        if not finished:
            raise InputError(f"merge: {store.folder} (shard {shard}) was not finished")
        found[number] = store.folder
    missing = sorted(set(range(1, total + 1)) - set(found))
    if missing:
        raise InputError(f"merge: shard {missing[0]}/{total} is not among the {len(stores)} stores")


def _require_alike(first: RegionStore, other: RegionStore) -> None:
    """Refuse stores whose regions do not mean the same thing."""
    for what in ("regions", "width", "labels", "made_by"):
        ours, theirs = getattr(first.head, what), getattr(other.head, what)
        if ours != theirs:
            raise InputError(
                f"merge: {what} is {ours!r} in {first.folder}, but {theirs!r} in {other.folder}"
            )
    ours, theirs = (
        [(field.name, field.dtype, field.shape) for field in store.head.fields]
        for store in (first, other)
    )
    if ours != theirs:
        raise InputError(
            f"merge: fields are {ours} in {first.folder}, but {theirs} in {other.folder}"
        )
