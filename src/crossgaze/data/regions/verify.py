"""Looking for damage in a region store: truncation, flipped bits, values that make no sense."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossgaze.data.regions.store import Commit, Field, Head, RegionStore, read_head, read_log
from crossgaze.data.regions.writer import BY_REGION, require_sound_log
from crossgaze.errors import InputError, require_folder

BLOCK = 256  # rows read at once, so that a store larger than memory can be checked


@dataclass(frozen=True)
class Verification:
    """What `verify` found.

    Args:
        folder: the store.
        images: how many images its log lists.
        problems: one line for each thing that is wrong; empty if the store is sound.
        notes: what could not be checked, and why.
    """

    folder: Path
    images: int
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(
    folder: str | Path, *, on_progress: Callable[[int, int], None] | None = None
) -> Verification:
    """Read a whole store and say what is wrong with it; the store is not changed.

    Args:
        folder: the store.
        on_progress: called with (images checked, images in all).
    """
    folder = require_folder(folder, "a region store")
    try:
        head = read_head(folder)
        commits, used = read_log(folder)
    except InputError as error:
        return Verification(folder, 0, (str(error),))
    images = sum(commit.rows for commit in commits)
    problems, notes = [], []
    repeated = [n for n, c in Counter(i for b in commits for i in b.ids).items() if c > 1]
    problems += [f"{folder}: image id {name!r} is in the log more than once" for name in repeated]
    short = list(_sizes(head, images))
    problems += short
    if not short:
        done = 0
        for commit in commits:
            problems += _checksums(head, commit)
            done += commit.rows
            if on_progress:
                on_progress(done, images)
        problems += _values(RegionStore(folder))
        problems += _log(folder, head, images)
    left = (folder / "log.jsonl").stat().st_size - used
    if left:
        notes.append(f"{left} bytes of an unfinished batch at the end of log.jsonl, not counted")
    if any(field.external and not _has_checksum(commits, field) for field in head.fields):
        notes.append("the mapped file has no checksums; its size and values were checked")
    return Verification(folder, images, tuple(problems), tuple(notes))


def _log(folder: Path, head: Head, images: int) -> Iterator[str]:
    """Say if the log lists fewer images than the store was given."""
    if head.external:
        return
    try:
        require_sound_log(folder, head, images)
    except InputError as error:
        yield str(error)


def _has_checksum(commits: list[Commit], field: Field) -> bool:
    return all(field.name in commit.crc for commit in commits)


def _sizes(head: Head, images: int) -> Iterator[str]:
    for field in head.fields:
        try:
            field.check(images)
        except InputError as error:
            yield str(error)


def _checksums(head: Head, commit: Commit) -> Iterator[str]:
    """Compare the bytes of one batch with the checksums its log line gave."""
    last = commit.start + commit.rows
    for field in head.fields:
        if field.name not in commit.crc:
            continue
        array, checksum = field.map(last), 0
        for start in range(commit.start, last, BLOCK):
            block = np.ascontiguousarray(array[start : min(start + BLOCK, last)])
            checksum = zlib.crc32(block.tobytes(), checksum)
        if checksum != commit.crc[field.name]:
            yield (
                f"{field.path}: images {commit.start:,} to {last - 1:,} "
                f"({commit.ids[0]!r} ...) differ from their checksum"
            )


def _values(store: RegionStore) -> Iterator[str]:
    """Check what the numbers must satisfy whoever wrote them."""
    k = store.head.regions
    for start in range(0, len(store), BLOCK):
        stop = min(start + BLOCK, len(store))
        counts = np.asarray(store.counts[start:stop])
        for row in np.flatnonzero((counts < 1) | (counts > k)):
            yield f"{store.ids[start + row]!r}: has {counts[row]} regions, wanted 1 to {k}"
        padding = np.arange(k) >= counts[:, None]  # (B, k)
        for field in store.head.fields:
            block = np.asarray(store.field(field.name)[start:stop])  # type: ignore[index]
            flat = block.reshape(len(block), -1)
            if block.dtype.kind == "f":
                for row in np.flatnonzero(~np.isfinite(flat).all(axis=1)):
                    yield f"{store.ids[start + row]!r}: {field.name} are not all finite"
            if field.name in BY_REGION and padding.any():
                used = (block.reshape(len(block), k, -1) != 0).any(axis=2) & padding
                for row in np.flatnonzero(used.any(axis=1)):
                    yield f"{store.ids[start + row]!r}: {field.name} go on past its last region"
        if store.boxes is not None:
            boxes = np.asarray(store.boxes[start:stop])
            turned = (boxes[..., 2] < boxes[..., 0]) | (boxes[..., 3] < boxes[..., 1])
            for row in np.flatnonzero((turned & ~padding).any(axis=1)):
                yield f"{store.ids[start + row]!r}: a box ends before it begins"
