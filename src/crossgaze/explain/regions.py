"""The regions that a model looks at in one photograph: made anew, or taken from a store."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.asking.ask import source_of
from crossgaze.data.regions.store import RegionStore
from crossgaze.devices import find_device
from crossgaze.errors import InputError
from crossgaze.explain.naming import spoken, sure_names
from crossgaze.models.matcher import Matcher
from crossgaze.vision.photos import read_photo
from crossgaze.vision.settings import ExtractConfig
from crossgaze.vision.sources.base import RegionSource
from crossgaze.vision.sources.making import make_source

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of one photograph.

    Args:
        features: (k, d).
        boxes: (k, 4) as shares of width and height.
        labels: (k,) what they are called, "" where nobody says or where it is not sure.
        notes: what the user should be told.
    """

    features: Floats
    boxes: Floats
    labels: tuple[str, ...]
    notes: tuple[str, ...] = ()


def source_for(
    model: Matcher,
    config: ExtractConfig | None = None,
    *,
    detector: str = "objects",
    weights: str | Path | None = None,
    device: str = "auto",
) -> tuple[RegionSource, str, tuple[str, ...]]:
    """Return what makes a model's regions, how photographs fit it, and what a user should know.

    Args:
        model: one that remembers how its regions were made; for others it is the region model that
            ships, and a note says so.
        config: how regions are made, whatever the model remembers.
        detector: the region model's folder, if it was not the one that ships.
        weights: of VGG-19, if that was the backbone.
        device: where it computes.
    """
    if config is not None:
        return make_source(config, find_device(device)), config.fit, ()
    made = model.origin.get("regions")
    if isinstance(made, Mapping) and "regions" in made:
        return *source_of(model, detector=detector, weights=weights, device=device), ()
    taken = ExtractConfig(detector=detector)
    note = (
        "the model does not say how its regions were made; taken here: objects and the whole "
        "image (--regions and --no-whole say otherwise)"
    )
    return make_source(taken, find_device(device)), taken.fit, (note,)


def make_regions(
    model: Matcher, image: str | os.PathLike[str], source: RegionSource | None, fit: str
) -> Regions:
    """Make the regions of a photograph."""
    notes: tuple[str, ...] = ()
    if source is None:
        source, fit, notes = source_for(model)
    small = read_photo(image, source.size, fit=fit, multiple=source.multiple)
    (found,) = source([small], [Path(image).name], lambda: None)
    labels = _labels(found.fields, source.labels, len(found.boxes))
    return Regions(found.features, found.boxes, labels, notes)


def stored_regions(store: RegionStore | str | Path, image: str | os.PathLike[str]) -> Regions:
    """Read the regions of a photograph from a store, by its path, its name or its stem."""
    store = store if isinstance(store, RegionStore) else RegionStore(store)
    path = Path(image)
    known = next((name for name in (str(path), path.name, path.stem) if name in store), None)
    if known is None:
        raise InputError(f"{store.folder}: has no image {path.name!r}, wanted one that is in it")
    if store.boxes is None or store.sizes is None:
        raise InputError(f"{store.folder}: has no boxes or no sizes, wanted regions with places")
    (row,) = store.rows([known])
    count = int(store.counts[row])
    size = np.tile(np.asarray(store.sizes[row], np.float32), 2)
    named = {}
    for field in ("classes", "attributes", "class_confidence", "attribute_confidence"):
        if (numbers := store.field(field)) is not None:
            named[field] = numbers[row, :count]
    return Regions(
        np.array(store.features[row, :count], np.float32),
        np.clip(np.array(store.boxes[row, :count], np.float32) / size, 0, 1),
        _labels(named, store.head.labels, count),
    )


def _labels(
    fields: Mapping[str, npt.NDArray[Any]], labels: Mapping[str, Sequence[str]], count: int
) -> tuple[str, ...]:
    """Return what regions are called, "" where nobody says or where it is not sure."""
    nouns, attributes = (
        _names(fields.get(field), labels.get(field, ()), count)
        for field in ("classes", "attributes")
    )
    sure = [
        [None] * count if given is None else np.asarray(given, np.float64).tolist()
        for given in (fields.get("class_confidence"), fields.get("attribute_confidence"))
    ]
    every = zip(nouns, attributes, *sure, strict=True)
    return tuple(spoken(*sure_names(*one)) for one in every)


def _names(numbers: npt.ArrayLike | None, labels: Sequence[str], count: int) -> list[str]:
    """Return the names behind numbers; "" where there is none."""
    if numbers is None:
        return [""] * count
    wanted = np.asarray(numbers, np.int64).tolist()
    return [labels[n] if 0 <= n < len(labels) else "" for n in wanted]
