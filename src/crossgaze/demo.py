"""The demonstration: real photographs that come inside Python packages, made into regions.

It needs no data and no network. What it shows grows with the library; today it is photographs to
regions, and which photographs look alike.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import InputError, MissingExtraError
from crossgaze.vision.extract import ExtractConfig, ExtractReport, extract

# (package, folder inside it, file, the name in the gallery)
PHOTOGRAPHS = (
    ("skimage", "data", "astronaut.png", "astronaut.png"),
    ("skimage", "data", "chelsea.png", "cat.png"),
    ("skimage", "data", "coffee.png", "coffee.png"),
    ("skimage", "data", "rocket.jpg", "rocket.jpg"),
    ("skimage", "data", "motorcycle_left.png", "motorcycle-left.png"),
    ("skimage", "data", "motorcycle_right.png", "motorcycle-right.png"),
    ("skimage", "data", "camera.png", "photographer.png"),
    ("skimage", "data", "coins.png", "coins.png"),
    ("skimage", "data", "grass.png", "grass.png"),
    ("skimage", "data", "gravel.png", "gravel.png"),
    ("skimage", "data", "brick.png", "brick.png"),
    ("skimage", "data", "moon.png", "moon.png"),
    ("skimage", "data", "hubble_deep_field.jpg", "galaxies.jpg"),
    ("sklearn", "datasets/images", "china.jpg", "temple.jpg"),
    ("sklearn", "datasets/images", "flower.jpg", "flower.jpg"),
    ("matplotlib", "mpl-data/sample_data", "grace_hopper.jpg", "officer.jpg"),
)


@dataclass(frozen=True)
class Alike:
    """A photograph and the one that looks most like it."""

    photograph: str
    most_like: str
    cosine: float


def build_gallery(folder: Path) -> list[Path]:
    """Copy the packages' photographs into `folder`; those of other versions may lack a few."""
    found = []
    for package, inside, file, name in PHOTOGRAPHS:
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtraError("the demonstration", package, "demo")
        source = Path(spec.submodule_search_locations[0]) / inside / file
        if source.is_file():
            found.append((source, folder / name))
    if not found:
        raise InputError("demo: none of the packages carries its photographs")
    folder.mkdir(parents=True, exist_ok=True)
    for source, target in found:
        shutil.copyfile(source, target)
        shutil.copystat(source, target)  # the same file twice is the same photograph
    return [target for _, target in found]


def most_alike(store: RegionStore) -> list[Alike]:
    """Return each photograph's nearest by the cosine of their mean regions."""
    counts = np.asarray(store.counts, np.float32)  # the rest of the k regions is zero
    means = np.asarray(store.features, np.float32).sum(axis=1) / counts[:, None]  # (N, d)
    means -= means.mean(axis=0)
    means /= np.linalg.norm(means, axis=1, keepdims=True).clip(min=1e-8)
    cosines = means @ means.T
    np.fill_diagonal(cosines, -2)
    return [
        Alike(name, store.ids[int(row.argmax())], round(float(row.max()), 3))
        for name, row in zip(store.ids, cosines, strict=True)
    ]


def run_demo(
    folder: str | Path, *, on_progress: Callable[[int, int], None] | None = None
) -> tuple[ExtractReport, RegionStore, list[Alike]]:
    """Build the gallery in `folder`, extract its regions, and find which photographs are alike."""
    folder = Path(folder)
    build_gallery(folder / "photos")
    report = extract(
        folder / "photos", folder / "regions", ExtractConfig(), on_progress=on_progress
    )
    store = RegionStore(folder / "regions")
    return report, store, most_alike(store)
