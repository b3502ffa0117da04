"""Joining the stores that several machines made into one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.verify import verify
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.data.textfiles import MAX_FILE_BYTES, kind_of, parse_head
from crossgaze.errors import FileFormatError, InputError
from crossgaze.files import write_json

BATCH = 64
# Counts and lists of an extraction's report that add up over its shards.
COUNTS = ("photos", "extracted", "already", "gone", "seconds")
LISTS = ("unreadable", "changed", "left_out", "without_boxes")


def merge_stores(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    partial: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> RegionStore:
    """Join stores that were made the same way; images come out sorted by id.

    That is the order of an extraction that was never sharded. Rows are copied as they are.
    Every source is verified first. A merge that was stopped goes on where it was.

    Args:
        sources: the shards' folders.
        out: the folder of the whole.
        partial: join even though shards are missing or were not finished.
        on_progress: called with (images written, images in all).
    """
    if not sources:
        raise InputError("merge: got no store, wanted at least one")
    if Path(out).resolve() in [Path(source).resolve() for source in sources]:
        raise InputError(f"merge: {out} is to be the whole, and is among the parts as well")
    for source in sources:
        found = verify(source)
        if not found.sound:
            raise InputError(f"merge: {source} is damaged: {found.problems[0]}")
    stores = [RegionStore(source) for source in sources]
    reports = [_read_report(store.folder) for store in stores]
    if not partial:
        _require_whole(stores, reports)
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
    fields = [field.name for field in first.head.fields]
    with RegionWriter.like(out, first) as writer:
        if writer.ids != set(names[: len(writer)]):
            raise InputError(f"{out}: was made of other stores, wanted a new folder")
        for start in range(len(writer), len(names), BATCH):
            batch = names[start : start + BATCH]
            where = [places[name] for name in batch]
            columns = {field: _rows(stores, where, field) for field in fields}
            writer.append(batch, **columns)
            if on_progress:
                on_progress(len(writer), len(names))
    if any(reports):
        write_json(Path(out) / "report.json", _join(reports))
    return RegionStore(out)


def _rows(
    stores: Sequence[RegionStore], where: Sequence[tuple[int, int]], name: str
) -> npt.NDArray[Any]:
    """Read one field of images that lie in several stores.

    A store is mapped only while its rows are read: a mapping holds a file open, and there may be
    more shards than a process may have open files.
    """
    parts: dict[int, npt.NDArray[Any]] = {}
    for number in {number for number, _ in where}:
        field = stores[number].head.field(name)
        assert field is not None
        rows = [row for other, row in where if other == number]
        parts[number] = np.array(field.map(len(stores[number]))[rows])
    taken = dict.fromkeys(parts, 0)
    chosen = []
    for number, _ in where:
        chosen.append(parts[number][taken[number]])
        taken[number] += 1
    return np.stack(chosen)


def _read_report(folder: Path) -> dict[str, Any]:
    """Return what an extraction reported of a shard; nothing where there is no report."""
    path = folder / "report.json"
    if not path.is_file():
        return {}
    try:
        report = parse_head(path, "the report of an extraction", MAX_FILE_BYTES)
        shard = str(report.get("shard") or "1/1")
        number, total = (int(part) for part in shard.split("/"))
        for key in report.keys() & {*COUNTS, *LISTS}:
            counts = isinstance(report[key], int | float) and abs(report[key]) < 1 << 63
            if not (counts if key in COUNTS else isinstance(report[key], list)):
                raise TypeError(f"{key} is {kind_of(report[key])}")
        json.dumps(report, indent=2, allow_nan=False)  # the whole's will hold what it holds
        return {**report, "finished": bool(report["finished"]), "shard": (number, total)}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileFormatError(path, f"does not read as a report: {error!r}") from None


def _require_whole(stores: Sequence[RegionStore], reports: Sequence[Mapping[str, Any]]) -> None:
    """Refuse if the shards' own reports say that some of the whole is not among them."""
    known = [(store, report) for store, report in zip(stores, reports, strict=True) if report]
    for store, report in known:
        number, total = report["shard"]
        if not report["finished"]:
            raise InputError(f"merge: {store.folder} (shard {number}/{total}) was not finished")
    totals = sorted({report["shard"][1] for _, report in known})
    if len(totals) > 1:
        raise InputError(
            f"merge: the stores are shards of {totals[0]} and of {totals[1]}, wanted those of one"
        )
    found = {report["shard"][0] for _, report in known}
    for total in totals:
        # One by one: the reports may say that there are any number.
        missing = next((number for number in range(1, total + 1) if number not in found), None)
        if missing is not None:
            raise InputError(
                f"merge: shard {missing}/{total} is not among the {len(stores)} stores"
            )


def _join(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the shards' reports; of what is not a count or a list the first shard's stays."""
    known = [report for report in reports if report]
    joined = dict(known[0])
    for key in (*COUNTS, *LISTS):
        values = [report[key] for report in known if key in report]
        if values:
            whole = key in COUNTS
            joined[key] = sum(values) if whole else [item for value in values for item in value]
    joined["seconds"] = round(joined.get("seconds", 0), 3)
    joined["finished"] = all(report["finished"] for report in known)
    joined["shard"] = ""
    return joined


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
