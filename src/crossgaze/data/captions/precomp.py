"""The `*_precomp` folders of SCAN, VSRN, BFAN and kin: captions by position, features by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.left_out import LeftOut
from crossgaze.data.npyfiles import map_npy
from crossgaze.data.textfiles import name_problem, read_lines, sentence_problem
from crossgaze.errors import FileFormatError, InputError, nearest, require_folder

SPLITS = ("train", "dev", "test", "testall")
PER_IMAGE = 5
COMPARED = 20  # images looked at to see that each is stored five times


@dataclass(frozen=True)
class PrecompLayout:
    """How one split's captions and feature rows belong together.

    Args:
        split: its name.
        images: N, how many images.
        captions: 5 N, how many captions; those of image i are 5 i to 5 i + 4.
        rows: N or 5 N, how many feature rows; 0 when there is no features file.
        row_step: image i is at feature row i * row_step; 5 when each image is stored five times.
        features: the file of features, if there is one.
        shape: the shape of its array, rows first: (rows, 36, 2048) in the public data.
        dtype: the type of its numbers.
    """

    split: str
    images: int
    captions: int
    rows: int
    row_step: int
    features: Path | None = None
    shape: tuple[int, ...] | None = None
    dtype: np.dtype[np.generic] | None = None


def read_precomp(
    folder: str | Path,
    splits: str | Sequence[str] | None = None,
    first: int | None = None,
) -> CaptionedImages:
    r"""Read `{split}_caps.txt`, five lines an image; features are looked at, never loaded.

    Image ids are the lines of `{split}_ids.txt` (one an image, or one a caption) if there is such
    a file, else "split/row". Without `{split}_ims.npy` five captions an image are taken on trust,
    which `notes` says. With as many rows as captions, each image must be stored five times: some
    twenty images spread over the file are compared.

    Args:
        folder: a folder such as f30k_precomp.
        splits: which to read; by default those of train, dev and test that are there, and testall
            only where test is missing, because MS-COCO's testall contains test.
        first: keep this many images of dev and of test (the public code cuts Flickr30K's dev,
            which has 1,014, to 1,000); train and testall stay whole.

    Example:
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> _ = (folder / "dev_caps.txt").write_text("one\ntwo\nthree\nfour\nfive\n" * 2)
        >>> read_precomp(folder).images
        ('dev/0', 'dev/1')
    """
    folder = require_folder(folder, "a folder with e.g. train_caps.txt")
    if first is not None and first < 1:
        raise InputError(f"first is {first}, wanted at least 1")
    captions: dict[str, list[str]] = {}
    split_of: dict[str, str] = {}
    cut: list[str] = []
    wanted = _wanted(folder, splits)
    notes, left_out = _not_read(folder, wanted) if splits is None else ([], ())
    for split in wanted:
        lines = _captions(folder, split)
        layout = _layout(folder, split, len(lines))
        if layout.features is None:
            notes.append(
                f"{folder} has no {split}_ims.npy, so {split} is taken to have five captions an "
                f"image: {layout.images:,} images"
            )
        if layout.row_step != 1:
            notes.append(
                f"{layout.features}: each image is stored five times; every fifth row is used"
            )
        for row, image in enumerate(_ids(folder, layout)):
            if image in split_of:
                raise InputError(
                    f"{folder}: image {image!r} is in {split_of[image]} and in {split}, read one "
                    "of the two"
                )
            if first is not None and split in ("dev", "test") and row >= first:
                cut.append(image)
                continue
            split_of[image] = split
            captions[image] = lines[row * PER_IMAGE : (row + 1) * PER_IMAGE]
    return CaptionedImages.group(
        folder.resolve().name,
        captions,
        split_of,
        left_out=left_out + LeftOut.of(f"images past the first {first} of their split", cut),
        notes=tuple(notes),
    )


def precomp_layout(folder: str | Path, split: str) -> PrecompLayout:
    """Return how the captions and feature rows of one split belong together.

    Of the features file only the header is read, and some rows where there are five an image.
    """
    folder = require_folder(folder, "a folder with e.g. train_caps.txt")
    (split,) = _wanted(folder, split)
    return _layout(folder, split, len(_captions(folder, split)))


def _wanted(folder: Path, splits: str | Sequence[str] | None) -> list[str]:
    """Return the splits to read, each of which has a caption file."""
    there = [split for split in SPLITS if (folder / f"{split}_caps.txt").is_file()]
    if not there:
        wanted = ", ".join(f"{split}_caps.txt" for split in SPLITS)
        raise InputError(f"{folder}: has none of {wanted}")
    if splits is None:
        return [split for split in there if split != "testall" or "test" not in there]
    asked = [splits] if isinstance(splits, str) else list(splits)
    for split in asked:
        if split not in there:
            alone = f" (its {split}_ims.npy has no captions)" if split in _alone(folder) else ""
            raise InputError(
                f"{folder}: no {split}_caps.txt{alone or nearest(split, there)}, it has the splits "
                f"{there}"
            )
    if len(set(asked)) < len(asked) or not asked:
        raise InputError(f"splits is {asked}, wanted at least one and each once")
    return asked


def _alone(folder: Path) -> list[str]:
    """Return the splits that have features but no captions."""
    splits = sorted(path.name.removesuffix("_ims.npy") for path in folder.glob("*_ims.npy"))
    return [split for split in splits if not (folder / f"{split}_caps.txt").is_file()]


def _not_read(folder: Path, wanted: list[str]) -> tuple[list[str], tuple[LeftOut, ...]]:
    """Return what to say of the files that reading the default splits does not look at."""
    notes = []
    if "testall" not in wanted and (folder / "testall_caps.txt").is_file():
        notes.append(
            f"{folder}: testall was left out, for MS-COCO's contains test; ask for it with "
            "splits='testall', or name the file testall_caps.txt"
        )
    alone = [f"{split}_ims.npy" for split in _alone(folder)]
    return notes, LeftOut.of("feature files without a file of captions", alone)


def _captions(folder: Path, split: str) -> list[str]:
    path = folder / f"{split}_caps.txt"
    lines = read_lines(path, "captions, one a line")
    for number, line in enumerate(lines, start=1):
        if problem := sentence_problem(line):
            hint = ", and leaving it out would shift all that follow" if not line.strip() else ""
            raise FileFormatError(path, f"the caption {problem}{hint}", line=number)
    if not lines:
        raise FileFormatError(path, "holds no caption")
    return [line.strip() for line in lines]


def _layout(folder: Path, split: str, captions: int) -> PrecompLayout:
    path = folder / f"{split}_ims.npy"
    if not path.exists():
        if captions % PER_IMAGE:
            raise FileFormatError(
                folder / f"{split}_caps.txt",
                f"has {captions:,} captions, wanted a multiple of {PER_IMAGE} "
                f"({path.name} is not there to say otherwise)",
            )
        return PrecompLayout(split, captions // PER_IMAGE, captions, rows=0, row_step=1)
    array = _open(path)
    rows = len(array)
    if captions == PER_IMAGE * rows:
        step = 1
    elif captions == rows and rows % PER_IMAGE == 0:
        step = PER_IMAGE
        _require_repeated(path, array)
    else:
        raise FileFormatError(
            path,
            f"has {rows:,} rows for the {captions:,} captions of {split}_caps.txt, wanted one row "
            f"for each {PER_IMAGE} captions, or one for each caption and a multiple of {PER_IMAGE}",
        )
    return PrecompLayout(split, rows // step, captions, rows, step, path, array.shape, array.dtype)


def _require_repeated(path: Path, array: npt.NDArray[np.floating[Any]]) -> None:
    """Compare rows 5 i to 5 i + 4 of some images; rows that differ belong to different images."""
    images = len(array) // PER_IMAGE
    for image in np.unique(np.linspace(0, images - 1, COMPARED).astype(np.int64)):
        start = int(image) * PER_IMAGE
        first = array[start].tobytes()
        for row in range(start + 1, start + PER_IMAGE):
            if array[row].tobytes() != first:
                raise FileFormatError(
                    path,
                    f"has a row for each caption, but rows {start} and {row} differ; wanted each "
                    f"image {PER_IMAGE} times (rows {start} to {start + PER_IMAGE - 1} alike), or "
                    f"one row for each {PER_IMAGE} captions",
                )


def _open(path: Path) -> npt.NDArray[np.floating[Any]]:
    """Return the features of a .npy file, mapped."""
    array = map_npy(path)
    if array.ndim < 2 or array.dtype.kind != "f":
        raise FileFormatError(
            path,
            f"holds {array.dtype} of shape {array.shape}, wanted floating-point numbers of shape "
            "(rows, regions, features)",
        )
    return array


def _ids(folder: Path, layout: PrecompLayout) -> list[str]:
    """Return the id of each image of the split."""
    path = folder / f"{layout.split}_ids.txt"
    if not path.exists():
        return [f"{layout.split}/{row}" for row in range(layout.images)]
    lines = [line.strip() for line in read_lines(path, "image ids, one a line")]
    if len(lines) not in (layout.images, layout.captions):
        raise FileFormatError(
            path,
            f"has {len(lines):,} ids, wanted one for each of the {layout.images:,} images or one "
            f"for each of the {layout.captions:,} captions",
        )
    step = len(lines) // layout.images
    first_line: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if problem := name_problem(line):
            raise FileFormatError(path, f"the id {problem}", line=number)
        start = (number - 1) // step * step + 1  # the first line of this image's ids
        if line != lines[start - 1]:
            raise FileFormatError(
                path, f"is {line!r}, but its image has {lines[start - 1]!r}", line=number
            )
        if first_line.setdefault(line, start) != start:
            raise FileFormatError(
                path, f"the id {line!r} was already given on line {first_line[line]}", line=number
            )
    return lines[::step]
