"""From a folder of photographs to a region store.

Threads take groups of photographs from file to features, batched by shape inside a group, while
this one writes what they finish in the order of the names, so the store comes out the same whatever
finished first. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.config import to_dict
from crossgaze.data.left_out import LeftOut
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.data.textfiles import MAX_FILE_BYTES, parse_head
from crossgaze.devices import find_device
from crossgaze.errors import FileFormatError, InputError
from crossgaze.files import stamp_of
from crossgaze.threads import cores
from crossgaze.vision.backbones import Backbone
from crossgaze.vision.listing import list_photos
from crossgaze.vision.photos import Photo, read_photo
from crossgaze.vision.pipeline import GROUP, Group, PixelBudget, extract_groups
from crossgaze.vision.report import ExtractReport
from crossgaze.vision.settings import ExtractConfig, Shard
from crossgaze.vision.sources.base import RegionSource
from crossgaze.vision.sources.given import GivenBoxes, read_boxes
from crossgaze.vision.sources.making import default_batch, make_source

__all__ = ["ExtractConfig", "ExtractReport", "Shard", "extract"]

FIELDS = ("counts", "boxes", "sizes", "stamps")


def extract(
    photos: str | Path,
    out: str | Path,
    config: ExtractConfig | None = None,
    *,
    shard: Shard | None = None,
    backbone: Backbone | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> ExtractReport:
    """Make a region store of every photograph in a folder, or go on with one.

    Args:
        photos: a folder (searched to its depths) or one photograph.
        out: the store's folder.
        config: how; the defaults if not given.
        shard: only this part of the folder, to be joined with `merge_stores`.
        backbone: a loaded backbone for a grid, instead of loading what `config` names.
        on_progress: called with (photographs done, photographs in all).

    Example:
        ```python
        report = extract("photos/", "regions/", ExtractConfig(batch=4))
        store = RegionStore("regions/")
        ```
    """
    config = config or ExtractConfig()
    shard = shard or Shard()
    listing = list_photos(photos, follow_links=config.follow_links)
    names = [name for name in listing.names if name in shard]
    device = find_device(config.device)
    given = None if config.boxes is None else read_boxes(config.boxes, listing.names)
    source = make_source(config, device, backbone=backbone, given=given)
    require_same_shard(Path(out), shard)
    made_by = {**source.made_by, "fit": config.fit}
    settings = to_dict(config) | {"size": source.size}
    with RegionWriter(
        out,
        source.regions,
        source.width,
        dtype=config.dtype,
        fields=FIELDS + source.fields,
        labels=source.labels,
        made_by=made_by,
    ) as writer:
        already = writer.ids & set(names)
        report = ExtractReport(
            photos=len(names),
            already=len(already),
            changed=_changed(RegionStore(out), listing.root, already),
            gone=len(writer.ids - set(names)),
            left_out=listing.left_out + (given.strangers if given else ()),
            shard=str(shard) if shard.total > 1 else "",
            config=settings,
        )
        report.save(Path(out))
        todo = [name for name in names if name not in already]

        def read(path: Path, budget: PixelBudget) -> Photo:
            photo = read_photo(
                path,
                source.size,
                fit=config.fit,
                multiple=source.multiple,
                max_pixels=config.max_pixels,
                budget=budget,
            )
            if given:
                given.require_fitting(photo, path.relative_to(listing.root).as_posix())
            return photo

        batch = config.batch or default_batch(device)
        workers = config.workers or cores()
        groups = extract_groups(
            listing.root, todo, read, source, group=max(GROUP, 4 * batch), workers=workers
        )
        unreadable: list[tuple[str, str]] = []
        started, done = time.perf_counter(), len(already)
        if on_progress:
            on_progress(done, len(names))
        finished = False
        try:
            for group in groups:
                if group.names:
                    writer.append(group.names, **_arrays(group, source))
                unreadable += group.unreadable
                done += len(group.names) + len(group.unreadable)
                if on_progress:
                    on_progress(done, len(names))
            finished = True
        finally:
            without, unused = _without_boxes(given, RegionStore(out), set(names))
            report = replace(
                report,
                without_boxes=without,
                left_out=report.left_out + unused,
                extracted=len(writer.ids & set(todo)),
                unreadable=tuple(unreadable),
                seconds=round(time.perf_counter() - started, 3),
                finished=finished,
            )
            report.save(Path(out))
    if names and not len(RegionStore(out)) and shard.total == 1:
        name, reason = unreadable[0]
        raise InputError(
            f"{photos}: none of the {len(names)} photographs could be read; {name}: {reason}"
        )
    return report


def _without_boxes(
    given: GivenBoxes | None, store: RegionStore, names: set[str]
) -> tuple[tuple[str, ...], tuple[LeftOut, ...]]:
    """Return the photographs in the store that have no box of their own, and boxes not used.

    Of the whole store, so that a run that was stopped and went on says it of all of them.
    """
    if given is None:
        return (), ()
    rows = [row for row, name in enumerate(store.ids) if name in names]
    sizes = store.sizes
    assert sizes is not None
    return given.unused([store.ids[row] for row in rows], np.asarray(sizes[rows]))


def _arrays(group: Group, source: RegionSource) -> dict[str, npt.NDArray[Any]]:
    """Return a group's regions as the store takes them, short rows padded."""
    count = len(group.names)
    arrays: dict[str, npt.NDArray[Any]] = {
        "features": np.zeros((count, source.regions, source.width), np.float32),
        "boxes": np.zeros((count, source.regions, 4), np.float32),
        "counts": np.array([len(found.boxes) for found in group.found], np.int64),
        "sizes": group.sizes,
        "stamps": group.stamps,
    }
    for name in source.fields:
        kind = group.found[0].fields[name].dtype
        arrays[name] = np.zeros((count, source.regions), kind)
    for row, found in enumerate(group.found):
        n = len(found.boxes)
        arrays["features"][row, :n] = found.features
        arrays["boxes"][row, :n] = found.boxes * np.tile(group.sizes[row], 2)
        for name in source.fields:
            arrays[name][row, :n] = found.fields[name]
    return arrays


def require_same_shard(out: Path, shard: Shard) -> None:
    """Refuse to put one shard into the store of another."""
    path = out / "report.json"
    if not path.is_file():
        return
    try:
        found = parse_head(path, "the report of an extraction", MAX_FILE_BYTES)["shard"] or "1/1"
    except KeyError:  # of an import, which has no shards
        return
    except (ValueError, TypeError, RecursionError) as error:
        raise FileFormatError(path, f"does not read as a report: {error!r}") from None
    if found != str(shard):
        raise InputError(f"{out}: holds shard {found}, now it is {shard}; take another folder")


def _changed(store: RegionStore, root: Path, names: frozenset[str]) -> tuple[str, ...]:
    """Return the photographs whose file is no longer the one that the store's regions came from."""
    stamps = store.field("stamps")
    assert stamps is not None
    changed = []
    for row, name in enumerate(store.ids):
        if name in names:
            status = (root / name).stat()
            if stamp_of(status) != tuple(stamps[row].tolist()):
                changed.append(name)
    return tuple(changed)
