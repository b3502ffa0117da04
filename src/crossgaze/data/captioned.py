"""The one in-memory type for a set of captioned images, whatever file it was read from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crossgaze.errors import InputError, nearest


@dataclass(frozen=True)
class LeftOut:
    """Something a reader met and did not take, counted so that it can be said.

    Args:
        reason: why, in words a user understands.
        count: how many.
        examples: the first few, by name.
    """

    reason: str
    count: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = ", ".join(self.examples)
        more = ", ..." if self.count > len(self.examples) else ""
        return f"{self.count:,} {self.reason}" + (f" ({shown}{more})" if shown else "")

    @classmethod
    def of(cls, reason: str, names: Sequence[str], show: int = 3) -> tuple[LeftOut, ...]:
        """Return one entry for `names`, or none when there are no names."""
        return (cls(reason, len(names), tuple(names[:show])),) if names else ()


@dataclass(frozen=True, eq=False)
class CaptionedImages:
    """Images, their captions, and which caption belongs to which image.

    Args:
        name: what the set is called, for tables and messages.
        images: (N,) image ids, unique; a file name relative to `folder` where there are files.
        captions: (M,) sentences as their authors wrote them.
        image_of: (M,) int64, `images[image_of[j]]` is the image that `captions[j]` describes.
        splits: (N,) the split of each image: "train", "dev", "test", or "" for none.
        folder: where the image files lie, if there are any.
        left_out: what the reader did not take, and why.

    Example:
        >>> pair = CaptionedImages("toy", ("a.jpg",), ("a cat", "a dog"), [0, 0], ("train",))
        >>> pair.captions_of(0)
        ('a cat', 'a dog')
    """

    name: str
    images: tuple[str, ...]
    captions: tuple[str, ...]
    image_of: npt.NDArray[np.int64]
    splits: tuple[str, ...]
    folder: Path | None = None
    left_out: tuple[LeftOut, ...] = field(default=())

    def __post_init__(self) -> None:
        owners = np.asarray(self.image_of, dtype=np.int64)
        object.__setattr__(self, "image_of", owners)
        if len(self.splits) != len(self.images):
            raise InputError(
                f"{self.name}: splits has {len(self.splits)} entries, wanted one for each of "
                f"the {len(self.images)} images"
            )
        if owners.shape != (len(self.captions),):
            raise InputError(
                f"{self.name}: image_of has shape {owners.shape}, wanted ({len(self.captions)},)"
            )
        if owners.size and not (owners.min() >= 0 and owners.max() < len(self.images)):
            raise InputError(
                f"{self.name}: image_of points outside the {len(self.images)} images "
                f"(from {owners.min()} to {owners.max()})"
            )
        repeated = [name for name, count in Counter(self.images).items() if count > 1]
        if repeated:
            raise InputError(f"{self.name}: image id {repeated[0]!r} occurs more than once")
        silent = np.setdiff1d(np.arange(len(self.images)), owners)
        if silent.size:
            raise InputError(
                f"{self.name}: {silent.size} images have no caption, "
                f"the first is {self.images[silent[0]]!r}"
            )

    def __len__(self) -> int:
        return len(self.images)

    def captions_of(self, image: int) -> tuple[str, ...]:
        """Return the captions of image number `image`, in the order they were read."""
        return tuple(self.captions[j] for j in np.flatnonzero(self.image_of == image))

    def split(self, *names: str) -> CaptionedImages:
        """Return the images of these splits with their captions.

        Example:
            >>> toy = CaptionedImages("t", ("a", "b"), ("x", "y"), [0, 1], ("train", "test"))
            >>> toy.split("test").captions
            ('y',)
        """
        known = sorted(set(self.splits))
        for name in names:
            if name not in known:
                raise InputError(
                    f"{self.name}: no split {name!r}{nearest(name, known)}, it has {known}"
                )
        return self._keep([i for i, split in enumerate(self.splits) if split in names])

    def first(self, count: int) -> CaptionedImages:
        """Return the first `count` images (the public code's cut of Flickr30K dev to 1,000)."""
        return self._keep(list(range(min(count, len(self)))))

    def select(self, images: Sequence[str]) -> CaptionedImages:
        """Return the images with these ids, in this order, with their captions."""
        place = {name: i for i, name in enumerate(self.images)}
        missing = [name for name in images if name not in place]
        if missing:
            raise InputError(
                f"{self.name}: {len(missing)} of the asked images are not in it, "
                f"the first is {missing[0]!r}"
            )
        return self._keep([place[name] for name in images])

    def _keep(self, rows: Sequence[int]) -> CaptionedImages:
        """Return the images at `rows`, captions in the order of their images."""
        order = np.argsort(self.image_of, kind="stable")
        starts = np.searchsorted(self.image_of[order], np.arange(len(self) + 1))
        spans = [order[starts[row] : starts[row + 1]] for row in rows]
        captions = np.concatenate(spans) if spans else np.empty(0, dtype=np.int64)
        return CaptionedImages(
            name=self.name,
            images=tuple(self.images[row] for row in rows),
            captions=tuple(self.captions[j] for j in captions),
            image_of=np.repeat(np.arange(len(rows)), [len(span) for span in spans]),
            splits=tuple(self.splits[row] for row in rows),
            folder=self.folder,
            left_out=self.left_out,
        )

    def describe(self) -> dict[str, object]:
        """Return counts for a table or JSON: images and captions, by split, and what is left out."""
        per_image = np.bincount(self.image_of, minlength=len(self))
        splits = {}
        for split in sorted(set(self.splits)):
            rows = np.array([s == split for s in self.splits])
            splits[split or "(none)"] = {
                "images": int(rows.sum()),
                "captions": int(per_image[rows].sum()),
            }
        return {
            "name": self.name,
            "images": len(self),
            "captions": len(self.captions),
            "splits": splits,
            "left_out": [str(entry) for entry in self.left_out],
        }
