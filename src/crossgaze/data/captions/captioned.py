"""The one in-memory type for a set of captioned images, whatever file it was read from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from crossgaze.data.left_out import LeftOut
from crossgaze.errors import InputError, nearest, require_folder

# What files call a split, and what it is called here.
SPLIT_NAMES = {"": "", "train": "train", "test": "test"} | dict.fromkeys(
    ("dev", "val", "valid", "validation"), "dev"
)
IMAGE_SUFFIXES = frozenset(
    (".bmp", ".gif", ".jfif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
)


@dataclass(frozen=True, eq=False)
class CaptionedImages:
    """Images, their captions, and which caption belongs to which image.

    Args:
        name: what the set is called, for tables and messages.
        images: (N,) image ids, unique; a file name relative to `folder` where there are files.
        captions: (M,) sentences as their authors wrote them.
        image_of: (M,) int64, `images[image_of[j]]` is the image that `captions[j]` describes.
        splits: (N,) the split of each image: "train", "dev", "test", or "" for none (and
            "restval" or "testall" where a reader was asked to keep those apart).
        folder: where the image files lie, if there are any.
        left_out: what the reader did not take, and why.
        notes: what the reader had to assume, each in a sentence.

    Example:
        >>> owners = np.array([0, 0])
        >>> pair = CaptionedImages("toy", ("a.jpg",), ("a cat", "a dog"), owners, ("train",))
        >>> pair.captions_of(0)
        ('a cat', 'a dog')
    """

    name: str
    images: tuple[str, ...]
    captions: tuple[str, ...]
    image_of: npt.NDArray[np.int64]
    splits: tuple[str, ...]
    folder: Path | None = None
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = np.asarray(self.image_of)
        if given.size and given.dtype.kind not in "iu":
            raise InputError(f"{self.name}: image_of has type {given.dtype}, wanted whole numbers")
        owners = given.astype(np.int64)  # a copy, so that locking it does not lock the caller's
        owners.flags.writeable = False
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

    @classmethod
    def group(
        cls,
        name: str,
        captions: Mapping[str, Sequence[str]],
        splits: Mapping[str, str],
        *,
        left_out: tuple[LeftOut, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> CaptionedImages:
        """Return the set of these images: the captions and the split of each, by image id.

        Example:
            >>> CaptionedImages.group("toy", {"a.jpg": ["a cat", "a dog"]}, {}).splits
            ('',)
        """
        return cls(
            name=name,
            images=tuple(captions),
            captions=tuple(caption for of_image in captions.values() for caption in of_image),
            image_of=np.repeat(np.arange(len(captions)), _lengths(list(captions.values()))),
            splits=tuple(splits.get(image, "") for image in captions),
            left_out=left_out,
            notes=notes,
        )

    def __len__(self) -> int:
        return len(self.images)

    @cached_property
    def _by_image(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(M,) captions in the order of their images, (N + 1,) where each image's begin."""
        order = np.argsort(self.image_of, kind="stable").astype(np.int64)
        starts = np.searchsorted(self.image_of[order], np.arange(len(self) + 1))
        return order, starts.astype(np.int64)

    def captions_of(self, image: int) -> tuple[str, ...]:
        """Return the captions of image number `image`, in the order they were read."""
        if not 0 <= image < len(self):
            raise InputError(f"{self.name}: no image {image}, it has {len(self)} images")
        order, starts = self._by_image
        return tuple(self.captions[j] for j in order[starts[image] : starts[image + 1]])

    def split(self, *names: str) -> CaptionedImages:
        """Return the images of these splits with their captions.

        Example:
            >>> toy = CaptionedImages.group("toy", {"a": ["x"], "b": ["y"]}, {"b": "test"})
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
        if count < 1:
            raise InputError(f"{self.name}: first is {count}, wanted at least 1")
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

    def in_folder(
        self,
        folder: str | Path,
        *,
        missing: Literal["leave-out", "error"] = "leave-out",
        count_unnamed: bool = False,
        silent: Collection[str] = (),
    ) -> CaptionedImages:
        """Return the images that have a file in `folder`, which becomes the set's folder.

        Args:
            folder: what the image ids are relative to.
            missing: images without a file are left out and counted, or are an error.
            count_unnamed: also count image files that no id names, in `folder` and in the folders
                below it that ids name.
            silent: images that a reader has counted already because they have no caption.

        Example:
            >>> toy = CaptionedImages.group("toy", {"a.jpg": ["a cat"]}, {})
            >>> toy.in_folder("no/such")
            Traceback (most recent call last):
            crossgaze.errors.InputError: no/such: no such folder, wanted the folder of images
        """
        folder = require_folder(folder, "the folder of images")
        there = _files_beside(self.images, folder)
        rows = [i for i, name in enumerate(self.images) if name in there]
        absent = [name for name in self.images if name not in there]
        if absent and (missing == "error" or not rows):
            raise InputError(
                f"{folder}: {len(absent):,} of the {len(self):,} images of {self.name} have no "
                f"file there, the first is {absent[0]!r}"
            )
        left_out = LeftOut.of(f"images without a file in {folder}", absent)
        if count_unnamed:
            extra = sorted(
                name
                for name in there.difference(self.images, silent)
                if Path(name).suffix.lower() in IMAGE_SUFFIXES
            )
            left_out += LeftOut.of(f"image files in {folder} that no caption names", extra)
        kept = self._keep(rows) if absent else self
        return replace(kept, folder=folder, left_out=self.left_out + left_out)

    def _keep(self, rows: Sequence[int]) -> CaptionedImages:
        """Return the images at `rows`, captions in the order of their images."""
        order, starts = self._by_image
        spans = [order[starts[row] : starts[row + 1]] for row in rows]
        captions = np.concatenate(spans) if spans else np.empty(0, dtype=np.int64)
        return replace(
            self,
            images=tuple(self.images[row] for row in rows),
            captions=tuple(self.captions[j] for j in captions),
            image_of=np.repeat(np.arange(len(rows)), _lengths(spans)),
            splits=tuple(self.splits[row] for row in rows),
        )

    def describe(self) -> dict[str, object]:
        """Return counts for a table or JSON: images and captions by split, what is left out."""
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
            "notes": list(self.notes),
        }


def _lengths(groups: Sequence[Sequence[object] | npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """(N,) how many each group holds; whole numbers even when there is no group."""
    return np.array([len(group) for group in groups], dtype=np.int64)


def _file_names(folder: Path) -> set[str]:
    """Return the names of the files directly in `folder`, none when there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries if entry.is_file()}
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed: {error.strerror}") from error


def _files_beside(images: Sequence[str], folder: Path) -> set[str]:
    """Return the files, named from `folder`, of it and of every folder in which an image lies."""
    there = _file_names(folder)
    for parent in {name.rpartition("/")[0] for name in images} - {""}:
        there.update(f"{parent}/{name}" for name in _file_names(folder / parent))
    return there
