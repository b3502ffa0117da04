"""Regions that a store holds already, so that a photograph is not looked at twice.

A store's regions are taken for a photograph whose file has the name, the size and the date that it
was extracted from; any other goes to the source itself. Features come back as the store kept them,
by default in half precision.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import InputError
from crossgaze.files import stamp_of
from crossgaze.vision.photos import Photo
from crossgaze.vision.sources.base import Found, RegionSource, Stop


class StoredSource:
    """A source of regions that asks a store first.

    Args:
        source: makes the regions that the store lacks.
        store: what `crossgaze extract` made, with the same settings.
        root: the folder that the photographs' names are relative to.
        fit: how photographs are resized, see `ExtractConfig`.

    Attributes:
        taken: how many photographs' regions came from the store.
    """

    def __init__(self, source: RegionSource, store: RegionStore, root: Path, fit: str) -> None:
        wanted = {**json.loads(json.dumps(dict(source.made_by))), "fit": fit}
        found = store.head.made_by
        for what in sorted({*wanted, *found}):
            if found.get(what) != wanted.get(what):
                raise InputError(
                    f"{store.folder}: its regions were made with {what} = {found.get(what)!r}, "
                    f"wanted {wanted.get(what)!r}, as the index has it"
                )
        for name in ("boxes", "sizes", "stamps", *source.fields):
            if store.head.field(name) is None:
                raise InputError(
                    f"{store.folder}: has no {name}, wanted a store that crossgaze extract made"
                )
        self._source, self._store, self._root = source, store, root
        self.regions, self.width = source.regions, source.width
        self.size, self.multiple = source.size, source.multiple
        self.fields, self.labels, self.made_by = source.fields, source.labels, source.made_by
        self.device = source.device
        self.taken = 0
        self._counting = threading.Lock()

    def __call__(self, photos: Sequence[Photo], names: Sequence[str], go_on: Stop) -> list[Found]:
        """Return the regions of some photographs, from the store where it has them."""
        known = {
            number: row
            for number, (photo, name) in enumerate(zip(photos, names, strict=True))
            if (row := self._row(photo, name)) is not None
        }
        others = [number for number in range(len(photos)) if number not in known]
        found = {number: self._read(row) for number, row in known.items()}
        if others:
            made = self._source([photos[n] for n in others], [names[n] for n in others], go_on)
            found |= dict(zip(others, made, strict=True))
        with self._counting:
            self.taken += len(known)
        return [found[number] for number in range(len(photos))]

    def _row(self, photo: Photo, name: str) -> int | None:
        """Return the store's row of a photograph, None if it has none or one of another file."""
        if name not in self._store:
            return None
        (row,) = self._store.rows([name]).tolist()
        stamps, sizes = self._store.field("stamps"), self._store.sizes
        assert stamps is not None
        assert sizes is not None
        try:
            stamp = stamp_of((self._root / name).stat())
        except OSError:  # it went away since it was read
            return None
        same = tuple(stamps[row].tolist()) == stamp
        return row if same and sizes[row].tolist() == [photo.width, photo.height] else None

    def _read(self, row: int) -> Found:
        read = self._store.read(np.array([row]))
        count = int(read.counts[0])
        assert read.boxes is not None
        assert read.sizes is not None
        return Found(
            read.features[0, :count].astype(np.float32),
            np.divide(read.boxes[0, :count], np.tile(read.sizes[0], 2), dtype=np.float32),
            {name: read.other[name][0, :count] for name in self._source.fields},
        )
