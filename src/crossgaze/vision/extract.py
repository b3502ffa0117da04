"""From a folder of photographs to a region store.

Threads take groups of photographs from file to features, batched by shape inside a group, while
this one writes what they finish in the order of the names, so the store comes out the same whatever
finished first. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from crossgaze import __version__
from crossgaze.config import to_dict
from crossgaze.data.left_out import LeftOut
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import InputError
from crossgaze.files import write_json
from crossgaze.threads import cores
from crossgaze.vision.backbones import Backbone, load_backbone
from crossgaze.vision.listing import list_photos
from crossgaze.vision.objects.detector import load_detector
from crossgaze.vision.photos import MAX_PIXELS, Photo, read_photo
from crossgaze.vision.pipeline import GROUP, Group, PixelBudget, extract_groups
from crossgaze.vision.sources.base import RegionSource
from crossgaze.vision.sources.given import read_boxes
from crossgaze.vision.sources.grid import GridSource
from crossgaze.vision.sources.objects import REGIONS, BoxSource, ObjectSource
from crossgaze.vision.sources.selective import SelectiveSearch

FIELDS = ("counts", "boxes", "sizes", "stamps")


@dataclass(frozen=True)
class ExtractConfig:
    """How photographs become regions.

    Args:
        regions: "objects", what the region model finds; "grid", g x g cells; "selective-search".
        detector: the region model that ships, "objects", or a folder with another.
        boxes: a file of boxes to take instead: COCO's JSON, or bottom-up-attention's TSV.
        backbone: of a grid: "efficientnet-lite2" (or 0, 1), "vgg19", a folder or Hub id of a
            transformers backbone ("microsoft/resnet-152").
        weights: the weights file, for vgg19.
        grid: g; an image becomes g x g regions.
        size: input pixels; None takes one map cell a region, and an 8 x 8 map for g below 7.
        fit: "stretch" to a square, or "keep" the photograph's proportions.
        dtype: how features are stored.
        batch: photographs a forward pass; None takes 2 on a CPU (its caches hold no more), else 32.
        workers: threads; None takes one a core.
        device: "cpu", "cuda", "cuda:1", "mps"; "auto" takes a GPU where there is one.
        max_pixels: photographs with more are refused before they are decoded.
        follow_links: whether symbolic links are followed, also out of the folder.
    """

    regions: Literal["objects", "grid", "selective-search"] = "objects"
    detector: str = "objects"
    boxes: Path | None = None
    backbone: str = "efficientnet-lite2"
    weights: Path | None = None
    grid: int = 6
    size: int | None = None
    fit: Literal["stretch", "keep"] = "stretch"
    dtype: Literal["float16", "float32"] = "float16"
    batch: int | None = None
    workers: int | None = None
    device: str = "auto"
    max_pixels: int = MAX_PIXELS
    follow_links: bool = False

    def __post_init__(self) -> None:
        bounds: dict[str, tuple[int | None, int, int]] = {
            "grid": (self.grid, 1, 64),
            "size": (self.size, 32, 4096),
            "batch": (self.batch, 1, 4096),
            "workers": (self.workers, 1, 256),
        }
        for name, (value, low, high) in bounds.items():
            if value is not None and not low <= value <= high:
                raise InputError(f"{name}: got {value}, wanted {low} to {high}")
        for name, text, known in (
            ("regions", self.regions, ("objects", "grid", "selective-search")),
            ("fit", self.fit, ("stretch", "keep")),
            ("dtype", self.dtype, ("float16", "float32")),
        ):
            if text not in known:
                raise InputError(f"{name}: got {text!r}, wanted {' or '.join(known)}")
        if self.regions != "grid" and (self.size is not None or self.fit != "stretch"):
            raise InputError("size, fit: are a grid's; the region model takes its own size")


@dataclass(frozen=True)
class Shard:
    """One of `total` equal parts of a folder; which part a photograph is in depends on its name.

    Example:
        >>> Shard.parse("2/4")
        Shard(number=2, total=4)
    """

    number: int = 1
    total: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read "i/n", counted from 1."""
        number, sign, total = text.partition("/")
        if sign and number.isdecimal() and total.isdecimal():
            shard = cls(int(number), int(total))
            if 1 <= shard.number <= shard.total:
                return shard
        raise InputError(f"shard: got {text!r}, wanted i/n from 1/n to n/n, such as 2/4")

    def __contains__(self, name: str) -> bool:
        return zlib.crc32(name.encode()) % self.total == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"


@dataclass(frozen=True)
class ExtractReport:
    """What an extraction did; the same is in the store's `report.json`.

    Args:
        photos: photographs found (in this shard).
        extracted: made into regions by this run.
        already: in the store before.
        unreadable: (name, reason) of those that could not be read.
        changed: in the store, but the file is another one now; their old regions are kept.
        gone: in the store, but no longer in the folder.
        left_out: files that are not photographs, links, hidden files.
        seconds: time spent decoding, computing and writing.
        finished: whether the run came to its end.
        shard: "i/n", or "" for the whole.
    """

    photos: int
    extracted: int = 0
    already: int = 0
    unreadable: tuple[tuple[str, str], ...] = ()
    changed: tuple[str, ...] = ()
    gone: int = 0
    left_out: tuple[LeftOut, ...] = ()
    seconds: float = 0.0
    finished: bool = False
    shard: str = ""
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def images_per_second(self) -> float:
        """Photographs made into regions a second."""
        return self.extracted / self.seconds if self.seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON holds it."""
        rate = round(self.images_per_second, 2)
        return asdict(self) | {"images_per_second": rate, "crossgaze": __version__}

    def save(self, folder: Path) -> None:
        """Write `report.json`."""
        write_json(folder / "report.json", self.to_dict())


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
        backbone: a loaded backbone, instead of loading what `config` names.
        on_progress: called with (photographs done, photographs in all).

    Example:
        ```python
        report = extract("photos/", "regions/", ExtractConfig(grid=7))
        store = RegionStore("regions/")
        ```
    """
    config = config or ExtractConfig()
    shard = shard or Shard()
    listing = list_photos(photos, follow_links=config.follow_links)
    names = [name for name in listing.names if name in shard]
    device = _device(config.device)
    source = make_source(config, device, backbone)
    _require_same_shard(Path(out), shard)
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
            left_out=listing.left_out,
            shard=str(shard) if shard.total > 1 else "",
            config=settings,
        )
        report.save(Path(out))
        todo = [name for name in names if name not in already]

        def read(path: Path, budget: PixelBudget) -> Photo:
            return read_photo(
                path,
                source.size,
                fit=config.fit,
                multiple=source.multiple,
                max_pixels=config.max_pixels,
                budget=budget,
            )

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
            report = replace(
                report,
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


def make_source(
    config: ExtractConfig, device: torch.device, backbone: Backbone | None = None
) -> RegionSource:
    """Load what makes the regions that a configuration asks for.

    Args:
        config: the configuration.
        device: where it computes.
        backbone: a loaded backbone for a grid, instead of loading what `config` names.
    """
    batch = config.batch or default_batch(device)
    if config.regions == "grid" and config.boxes is None:
        model = (backbone or load_backbone(config.backbone, config.weights)).to(device).eval()
        return GridSource(model, config.grid, config.size, batch)
    detector = load_detector(config.detector, device=device)
    if config.boxes is not None:
        given = read_boxes(config.boxes)
        made_by = {"regions": "given boxes", "boxes": given.fingerprint}
        return BoxSource(detector, given, given.most, made_by, batch)
    if config.regions == "selective-search":
        return BoxSource(detector, SelectiveSearch(), REGIONS, SelectiveSearch.made_by, batch)
    return ObjectSource(detector, batch)


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
        # -1 is no class and no attribute.
        arrays[name] = np.full((count, source.regions), -1 if kind.kind == "i" else 0, kind)
    for row, found in enumerate(group.found):
        n = len(found.boxes)
        arrays["features"][row, :n] = found.features
        arrays["boxes"][row, :n] = found.boxes * np.tile(group.sizes[row], 2)
        for name in source.fields:
            arrays[name][row, :n] = found.fields[name]
    return arrays


def default_batch(device: torch.device) -> int:
    """Return how many photographs a forward pass takes best."""
    return 2 if device.type == "cpu" else 32


def _device(name: str) -> torch.device:
    if name == "auto":
        gpus = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        name = next((gpu for gpu, there in gpus.items() if there), "cpu")
    try:
        torch.zeros(1, device=name).cpu()
        return torch.device(name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first = str(error).splitlines()[0]
        raise InputError(f"device: {name!r} cannot be used here: {first}") from None


def _require_same_shard(out: Path, shard: Shard) -> None:
    """Refuse to put one shard into the store of another."""
    try:
        found = json.loads((out / "report.json").read_text("utf-8"))["shard"] or "1/1"
    except (OSError, ValueError, KeyError, TypeError):
        return
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
            if (status.st_size, status.st_mtime_ns) != tuple(stamps[row].tolist()):
                changed.append(name)
    return tuple(changed)
