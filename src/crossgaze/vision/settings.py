"""How an extraction is to be done, and which part of a folder it takes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from crossgaze.errors import InputError
from crossgaze.vision.photos import MAX_PIXELS

KINDS = ("objects", "grid", "selective-search")


@dataclass(frozen=True)
class ExtractConfig:
    """How photographs become regions.

    Args:
        regions: "objects", what the region model finds; "grid", g x g cells; "selective-search".
        boxes: a file of boxes to take instead: COCO's JSON, or bottom-up-attention's TSV.
        whole: whether the whole image is one more region, the last; None takes it where regions
            are objects that the region model finds, and nowhere else.
        geometry: whether a feature ends with where the region lies: edges and area, 5 numbers.
        detector: the region model that ships, "objects", or a folder with another; it also gives
            the features of selective search and of given boxes.
        backbone: of a grid: "efficientnet-lite2" (or 0, 1), "vgg19", a folder or Hub id of a
            transformers backbone ("microsoft/resnet-152").
        weights: of a grid: the weights file, for vgg19.
        grid: g; an image becomes g x g regions.
        size: of a grid: input pixels; None takes one map cell a region, and an 8 x 8 map for g
            below 7.
        fit: of a grid: "stretch" to a square, or "keep" the photograph's proportions.
        dtype: how features are stored.
        batch: photographs a forward pass; None takes 2 on a CPU (its caches hold no more), else 32.
        workers: threads; None takes one a core.
        device: "cpu", "cuda", "cuda:1", "mps"; "auto" takes a GPU where there is one.
        max_pixels: photographs with more are refused before they are decoded.
        follow_links: whether symbolic links are followed, also out of the folder.
    """

    regions: Literal["objects", "grid", "selective-search"] = "objects"
    boxes: Path | None = None
    whole: bool | None = None
    geometry: bool = False
    detector: str = "objects"
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
            ("regions", self.regions, KINDS),
            ("fit", self.fit, ("stretch", "keep")),
            ("dtype", self.dtype, ("float16", "float32")),
        ):
            if text not in known:
                raise InputError(f"{name}: got {text!r}, wanted {' or '.join(known)}")
        self._require_used()

    @property
    def with_whole(self) -> bool:
        """Whether the whole image is one more region."""
        if self.whole is None:
            return self.regions == "objects" and self.boxes is None
        return self.whole

    def _require_used(self) -> None:
        """Refuse a setting that the kind of regions would pass over in silence."""
        if self.boxes is not None and self.regions != "objects":
            raise InputError(f"boxes: come instead of regions = {self.regions!r}, take one of them")
        of_a_grid = ("backbone", "weights", "grid", "size", "fit")
        unused = ("detector",) if self.regions == "grid" else of_a_grid
        defaults = {one.name: one.default for one in fields(self)}
        for name in unused:
            value = getattr(self, name)
            if value != defaults[name]:
                value = str(value) if isinstance(value, Path) else value
                raise InputError(
                    f"{name}: got {value!r}, which has no effect on regions = {self.regions!r}"
                    + ("" if self.regions == "grid" else "; wanted regions = 'grid' with it")
                )


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
