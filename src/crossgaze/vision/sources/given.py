"""Boxes from a user's own detector, for the photographs of a folder.

A photograph is found in the file by its path, its name, or its name without the ending; and where
the file has COCO's numbers, by the number that a name ends in (`COCO_val2014_000000391895.jpg`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from crossgaze.data.left_out import LeftOut
from crossgaze.errors import InputError
from crossgaze.vision.photos import Photo, PhotoError
from crossgaze.vision.sources.box_files import BoxFile, ImageBoxes, read_box_file

MOST = 100  # boxes of a photograph that are taken, the surest first
# COCO's own way: the number alone, or in twelve digits behind the name of the set.
_NUMBERED = re.compile(r"(?:.*_(?=\d{12}$))?0*(\d+)", re.ASCII)
Floats = npt.NDArray[np.float32]


class GivenBoxes:
    """The boxes of a file, by photograph.

    Args:
        file: what was read.
        names: the photographs.
        most: boxes that a photograph gets.
    """

    def __init__(self, file: BoxFile, names: Sequence[str], most: int = MOST) -> None:
        self.path, self.fingerprint = file.path, file.fingerprint
        self._of = _matched(file, names)
        if names and not self._of:
            shown = ", ".join(repr(name) for name in list(file.images)[:3])
            raise InputError(
                f"{self.path}: has boxes for none of the {len(names)} photographs, such as "
                f"{names[0]!r}; its images are {shown} ..."
            )
        self._most = most
        self.scored = any(image.scores is not None for image in file.images.values())
        # By the file alone: a store must have room for photographs that come later.
        self.regions = min(most, max(len(image.boxes) for image in file.images.values()))
        used = {id(image) for image in self._of.values()}
        strangers = [name for name, image in file.images.items() if id(image) not in used]
        self.strangers = LeftOut.of(f"images of {self.path} that are no photograph", strangers)

    def __call__(self, photo: Photo, name: str) -> Floats:
        """Return a photograph's boxes as shares of its sides, (n, 4), perhaps none."""
        return self._usable(name, photo.width, photo.height)[: self._most]

    def confidence(self, photo: Photo, name: str) -> Floats:
        """Return how sure the detector was of those boxes, (n,)."""
        image = self._of.get(name)
        if image is None or image.scores is None:
            return np.zeros(len(self(photo, name)), np.float32)
        _, extent = self._shares(image, photo.width, photo.height)
        return image.scores[extent][: self._most].astype(np.float32)

    def require_fitting(self, photo: Photo, name: str) -> None:
        """Refuse a photograph of other proportions than the file says: its boxes lie elsewhere."""
        image = self._of.get(name)
        if image is None or image.size is None:
            return
        width, height = image.size
        if not 0.98 < (width * photo.height) / (height * photo.width) < 1.02:
            raise PhotoError(
                name,
                f"is {photo.width} x {photo.height} pixels upright, its boxes in "
                f"{self.path.name} are of {width} x {height}",
            )

    def unused(
        self, names: Sequence[str], sizes: npt.NDArray[np.integer]
    ) -> tuple[tuple[str, ...], tuple[LeftOut, ...]]:
        """Say what did not become a region.

        Args:
            names: photographs that were extracted.
            sizes: (N, 2) their widths and heights.

        Returns:
            The photographs without a box, and boxes outside or past the most that are taken.
        """
        without, empty, cut = [], dict[str, int](), dict[str, int]()
        for name, (width, height) in zip(names, sizes.tolist(), strict=True):
            image, good = self._of.get(name), self._usable(name, width, height)
            if not len(good):
                without.append(name)
            if image is not None and len(image.boxes) > len(good):
                empty[name] = len(image.boxes) - len(good)
            if len(good) > self._most:
                cut[name] = len(good) - self._most
        kinds = (
            ("boxes outside their photograph or without an extent", empty),
            (f"boxes past the first {self._most} of a photograph", cut),
        )
        said = [LeftOut(why, sum(of.values()), tuple(of)[:3]) for why, of in kinds if of]
        return tuple(without), tuple(said)

    def _usable(self, name: str, width: int, height: int) -> Floats:
        """Return the boxes with an extent inside the photograph, as shares."""
        image = self._of.get(name)
        if image is None:
            return np.empty((0, 4), np.float32)
        shares, extent = self._shares(image, width, height)
        return np.ascontiguousarray(shares[extent])

    @staticmethod
    def _shares(image: ImageBoxes, width: int, height: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return all boxes as shares of the photograph, and which have an extent inside it."""
        # The file's own size, where it says one: the photograph may be a smaller copy.
        size = np.array(image.size or (width, height), np.float64)
        shares = (image.boxes / np.tile(size, 2)).clip(0, 1).astype(np.float32)
        return shares, np.asarray((shares[:, 2:] > shares[:, :2]).all(axis=1))


def read_boxes(path: str | Path, names: Sequence[str], most: int = MOST) -> GivenBoxes:
    """Read a file of boxes, COCO's JSON or bottom-up-attention's TSV, for some photographs.

    Args:
        path: the file.
        names: the photographs, as `list_photos` names them.
        most: boxes that a photograph gets, the surest first.
    """
    return GivenBoxes(read_box_file(path), names, most)


def _matched(file: BoxFile, names: Sequence[str]) -> dict[str, ImageBoxes]:
    """Return each photograph's entry in the file; one that has none is left out."""
    found: dict[str, str] = {}
    # The surest kind of name first: what it settles is no question for the others.
    for kind in ("path", "name", "stem", "number"):
        photos, images = dict[str, list[str]](), dict[str, list[str]]()
        for name in names:
            if name not in found:
                photos.setdefault(_called(name, kind), []).append(name)
        settled = set(found.values())
        for image in file.images:
            if image not in settled:
                also = {PurePosixPath(image).name} if kind == "stem" else set()  # an id with a dot
                for called in also | {_called(image, kind)}:
                    images.setdefault(called, []).append(image)
        for called in photos.keys() & images.keys() - {""}:
            mine, theirs = photos[called], images[called]
            if len(mine) > 1 or len(theirs) > 1:
                raise InputError(
                    f"{file.path}: {theirs[0]!r} could be {mine[-1]!r}, and {theirs[-1]!r} could "
                    f"be {mine[0]!r}; wanted the photographs' paths as they are in the folder"
                )
            found[mine[0]] = theirs[0]
    return {name: file.images[image] for name, image in found.items()}


def _called(name: str, kind: str) -> str:
    """Return a photograph's or an image's name as another kind of name, "" if it has none."""
    path = PurePosixPath(name)
    if kind == "number":
        digits = _NUMBERED.fullmatch(path.stem)
        return digits[1] if digits else ""
    return {"path": name, "name": path.name, "stem": path.stem}[kind]
