"""Bringing an index up to date with a folder: only what is new, changed or gone is touched.

Groups of new photographs go from file to regions on threads (see `crossgaze.vision.pipeline`) while
this one encodes, writes and acknowledges those before; `crossgaze.search.planning` says which.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crossgaze.config import build
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import InputError
from crossgaze.search.entries import Entry, clean_tags
from crossgaze.search.kept import reopen_writer
from crossgaze.search.planning import Plan, digest_of, make_plan, wall_clock
from crossgaze.search.report import IndexReport
from crossgaze.threads import cores
from crossgaze.vision.listing import list_photos
from crossgaze.vision.photos import MAX_BYTES, Photo, PhotoError, read_photo
from crossgaze.vision.pipeline import Group, PixelBudget, extract_groups
from crossgaze.vision.settings import ExtractConfig
from crossgaze.vision.sources.base import RegionSource
from crossgaze.vision.sources.making import default_batch
from crossgaze.vision.sources.stored import StoredSource
from crossgaze.vision.taken import taken_at

if TYPE_CHECKING:
    from crossgaze.search.index import Index

COMMIT, SECONDS = 128, 5.0  # a batch is acknowledged with so many photographs, or after so long
GROUP = 8  # photographs that a thread takes at a time; as often one hears how far it is
UPDATED = 50_000  # entries that are written anew in one commit, with their vectors in memory
TIDY = 64  # batches after which the database is tidied


def bring_up_to_date(
    index: Index,
    photos: str | Path,
    *,
    tags: Sequence[str] = (),
    store: RegionStore | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> IndexReport:
    """Bring an index up to date with a folder; the caller is its only writer.

    What `on_progress` is told is how many photographs have been read, not how many have been
    acknowledged: that follows within a batch. Only when it hears of all of them are all in.
    """
    started = time.perf_counter()
    config = build(ExtractConfig, index.head.extract, source=str(index.folder))
    listing = list_photos(photos, follow_links=config.follow_links)
    root = os.path.realpath(listing.root)
    whole = Path(photos).is_dir()
    wanted = clean_tags(tags)
    plan = make_plan(index, listing, root, wanted, whole=whole)
    table = index.tables.photos
    for first in range(0, len(plan.touched), UPDATED):
        table.update(plan.touched[first : first + UPDATED])
    table.delete(plan.gone)
    done = _Adding(index, Path(root), plan, wanted, config, store)
    done.run(on_progress)
    # Not after Ctrl-C: it may take minutes, and the next run does it.
    changed = done.batches or plan.touched or plan.gone
    table.tidy("after" if changed else "unchanged")
    # A photograph that was indexed and cannot be read now stays as it was, tags and all: it may be
    # half written, or its disk away for a moment. It is looked at again by every run.
    if done.unreadable and not len(table):
        name, reason = done.unreadable[0]
        raise InputError(
            f"{photos}: none of the {len(listing)} photographs could be read; {name}: {reason}"
        )
    return IndexReport(
        found=len(listing),
        added=done.count - done.changed,
        changed=done.changed,
        touched=len(plan.touched),
        removed=len(plan.gone),
        unchanged=plan.unchanged,
        unreadable=tuple(done.unreadable),
        left_out=listing.left_out,
        seconds=round(time.perf_counter() - started, 3),
        busy=round(done.busy, 3),
        stored=done.stored,
    )


class _Adding:
    """Takes new photographs into an index, batch by batch."""

    def __init__(
        self,
        index: Index,
        root: Path,
        plan: Plan,
        tags: tuple[str, ...],
        config: ExtractConfig,
        store: RegionStore | None,
    ) -> None:
        self.index, self.root, self.plan, self.tags, self.config = index, root, plan, tags, config
        self.store, self.stored = store, 0
        self.unreadable: list[tuple[str, str]] = []
        self.count = self.changed = self.batches = 0
        self.busy = 0.0
        # (digest, second it was taken) by path, from the threads that read the files.
        self._read: dict[str, tuple[str, int | None]] = {}

    def run(self, on_progress: Callable[[int, int], None] | None) -> None:
        """Take all that is to be taken."""
        total, read = len(self.plan.todo), 0
        if not total:
            return
        tell = on_progress or (lambda done, total: None)
        tell(0, total)
        source: RegionSource = self.index.source
        if self.store is not None:
            source = StoredSource(source, self.store, self.root, self.config.fit)
        batch = self.config.batch or default_batch(source.device)
        groups = extract_groups(
            self.root,
            self.plan.todo,
            self._reader(source),
            source,
            group=max(GROUP, 4 * batch),
            workers=self.config.workers or cores(),
        )
        waiting: list[Group] = []
        last = time.perf_counter()
        with reopen_writer(self.index.folder / self.index.head.store) as writer:
            for group in groups:
                waiting.append(group)
                now = time.perf_counter()
                if sum(len(one.names) for one in waiting) >= COMMIT or now - last > SECONDS:
                    self._commit(waiting, writer, source)
                    waiting, last = [], time.perf_counter()
                read += len(group.names) + len(group.unreadable)
                if read < total:  # all are not done before all are acknowledged
                    tell(read, total)
            self._commit(waiting, writer, source)
        if isinstance(source, StoredSource):
            self.stored = source.taken
        tell(total, total)

    def _reader(self, source: RegionSource) -> Callable[[Path, PixelBudget], Photo]:
        def read(path: Path, budget: PixelBudget) -> Photo:
            # The bytes that are decoded are those that are digested, whoever writes meanwhile.
            if path.stat().st_size > MAX_BYTES:
                raise PhotoError(
                    str(path), f"is larger than {MAX_BYTES:,} bytes, wanted a photograph"
                )
            data = path.read_bytes()
            photo = read_photo(
                io.BytesIO(data),
                source.size,
                fit=self.config.fit,
                multiple=source.multiple,
                max_pixels=self.config.max_pixels,
                budget=budget,
            )
            self._read[str(path)] = digest_of(data), taken_at(data)
            return photo

        return read

    def _commit(self, groups: Sequence[Group], writer: RegionWriter, source: RegionSource) -> None:
        """Encode, write and acknowledge some groups: regions first, then entries."""
        started = time.perf_counter()
        self.unreadable += [one for group in groups for one in group.unreadable]
        names = [name for group in groups for name in group.names]
        if not names:
            return
        index, rows = self.index, len(writer)
        parts = [self._encode(group, source) for group in groups if group.names]
        arrays = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        vectors = arrays.pop("vectors")
        first = self._next_uid(writer)
        entries = self._entries(groups, first)
        writer.append([str(entry.uid) for entry in entries], arrays.pop("features"), **arrays)
        try:
            index.tables.photos.add(entries, vectors)
        except Exception:
            # Say, a full disk: its room is given back. Only if the database says that it has none
            # of them, and not after Ctrl-C, which may come when they are committed; rows that
            # nothing refers to do no harm.
            with suppress(InputError):
                if not index.tables.photos.get([entry.uid for entry in entries]):
                    writer.cut(rows)
            raise
        old = [self.plan.old[name].uid for name in names if name in self.plan.old]
        index.tables.photos.delete(old)
        self.count += len(names)
        self.changed += len(old)
        self.batches += 1
        if self.batches % TIDY == 0:
            index.tables.photos.tidy("during")
        self.busy += time.perf_counter() - started

    def _next_uid(self, writer: RegionWriter) -> int:
        if not self.batches:
            tops = [entry.uid for part in self.index.tables.photos.every() for entry in part]
            tops += [int(name) for name in writer.ids]
            self._uid = max(self.index.head.last_uid, max(tops, default=0)) + 1
        return self._uid

    def _entries(self, groups: Sequence[Group], uid: int) -> list[Entry]:
        entries: list[Entry] = []
        for group in groups:
            for name, stamp, size in zip(group.names, group.stamps, group.sizes, strict=True):
                path = str(self.root / name)
                digest, taken = self._read.pop(path)
                before = self.plan.old[name].tags if name in self.plan.old else ()
                entries.append(
                    Entry(
                        uid + len(entries),
                        path,
                        str(self.root),
                        int(stamp[0]),
                        int(stamp[1]),
                        wall_clock(int(stamp[1])) if taken is None else taken,
                        digest,
                        int(size[0]),
                        int(size[1]),
                        clean_tags([*before, *self.tags]),
                    )
                )
        self._uid = uid + len(entries)
        return entries

    def _encode(self, group: Group, source: RegionSource) -> dict[str, npt.NDArray[Any]]:
        """Return what is kept of a group: vectors, features and the other fields, padded."""
        count, k = len(group.names), source.regions
        regions = np.zeros((count, k, source.width), np.float32)
        counts = np.array([len(found.boxes) for found in group.found], np.int64)
        boxes = np.zeros((count, k, 4), np.float32)
        for row, found in enumerate(group.found):
            regions[row, : counts[row]] = found.features
            boxes[row, : counts[row]] = found.boxes * np.tile(group.sizes[row], 2)
        arrays: dict[str, npt.NDArray[Any]] = {"boxes": boxes, "counts": counts}
        for name in source.fields:
            kind = group.found[0].fields[name].dtype
            arrays[name] = np.zeros((count, k), kind)
            for row, found in enumerate(group.found):
                arrays[name][row, : counts[row]] = found.fields[name]
        ranker = self.index.reranker
        if ranker is not None and ranker.extra:
            # Row 0 is the whole image's, of which no field says anything.
            arrays = {
                key: value + 1 if key == "counts" else np.insert(value, 0, 0, axis=1)
                for key, value in arrays.items()
            }
        features = np.zeros((count, k, 1), np.float16)
        if ranker is not None:
            features = ranker.images(regions, counts)
        return arrays | {
            "sizes": group.sizes,
            "features": features,
            "vectors": self.index.embedder.images(regions, counts),
        }
