"""How much of what people name do an image's regions cover?

The rules, for Flickr30k Entities:

* a box counts once in its image, however many entities share it;
* a box is covered at t if some region has IoU >= t with it;
* a phrase counts every time it occurs, if its entity has at least one box; with several boxes it
  is the smallest box around them all ("counted by their union") that must be covered;
* a phrase has its types ("people", "clothing", ...); a box has those of all phrases that name it,
  and "unnamed" where none does;
* sizes are shares of the image's area.

B. A. Plummer et al. Flickr30k Entities. ICCV 2015 (one region a phrase, boxes merged).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crossgaze.data.entities.annotations import EntityImage
from crossgaze.errors import InputError

Array = npt.NDArray[np.float32]
THRESHOLDS = (0.5, 0.7)
SIZES = ((0.0, 0.01), (0.01, 0.05), (0.05, 0.2), (0.2, 1.0))


@dataclass(frozen=True, eq=False)
class Annotated:
    """What is to be covered in one image; boxes are shares of its width and height.

    Args:
        boxes: (n, 4), each once.
        box_types: of each box.
        phrases: (m, 4), the box around each phrase's boxes.
        phrase_types: of each phrase.
        members: for each phrase the rows of `boxes` that are its own.
        texts: of each phrase.
        scenes: phrases whose entity is the whole setting, and that have no box.
    """

    boxes: Array
    box_types: tuple[tuple[str, ...], ...]
    phrases: Array
    phrase_types: tuple[tuple[str, ...], ...]
    members: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...]
    scenes: tuple[str, ...]


def annotated(image: EntityImage) -> Annotated:
    """Return what an annotated image asks for.

    Example:
        >>> box = {"4": np.array([[0, 0, 50, 100]], np.float32)}
        >>> found = annotated(EntityImage("1", 100, 100, (), box, frozenset(), frozenset()))
        >>> found.boxes.tolist(), found.box_types
        ([[0.0, 0.0, 0.5, 1.0]], (('unnamed',),))
    """
    size = np.array([image.width, image.height] * 2, np.float32)
    rows: dict[tuple[float, ...], int] = {}
    of_entity: dict[str, tuple[int, ...]] = {}
    for entity, boxes in image.boxes.items():
        found = [rows.setdefault(tuple(box), len(rows)) for box in boxes.tolist()]
        of_entity[entity] = tuple(dict.fromkeys(found))
    types: dict[int, dict[str, None]] = defaultdict(dict)
    all_boxes = np.array(list(rows), np.float32).reshape(-1, 4) / size
    phrases, phrase_types, members, texts, scenes = [], [], [], [], []
    for phrase in (p for sentence in image.sentences for p in sentence.phrases):
        own = of_entity.get(phrase.entity)
        if own is None:
            if phrase.entity in image.scenes:
                scenes.append(phrase.text)
            continue
        mine = all_boxes[list(own)]
        phrases.append(np.concatenate([mine[:, :2].min(0), mine[:, 2:].max(0)]))
        phrase_types.append(phrase.types)
        members.append(own)
        texts.append(phrase.text)
        for row in own:
            types[row].update(dict.fromkeys(phrase.types))
    return Annotated(
        boxes=all_boxes,
        box_types=tuple(tuple(types[row]) or ("unnamed",) for row in range(len(rows))),
        phrases=np.array(phrases, np.float32).reshape(-1, 4),
        phrase_types=tuple(phrase_types),
        members=tuple(members),
        texts=tuple(texts),
        scenes=tuple(scenes),
    )


def box_iou(a: npt.ArrayLike, b: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """IoU of every pair, (n, 4) and (m, 4) -> (n, m)."""
    one = np.asarray(a, np.float64).reshape(-1, 1, 4)
    two = np.asarray(b, np.float64).reshape(1, -1, 4)
    side = np.minimum(one[..., 2:], two[..., 2:]) - np.maximum(one[..., :2], two[..., :2])
    both = side.clip(0).prod(-1)
    areas = [(x[..., 2:] - x[..., :2]).prod(-1) for x in (one, two)]
    return np.asarray(both / np.maximum(areas[0] + areas[1] - both, 1e-12))


class Coverage:
    """Counts images one by one; `shares` tells the result in percent."""

    def __init__(self, thresholds: Sequence[float] = THRESHOLDS) -> None:
        self.thresholds = tuple(thresholds)
        self.images = 0
        self._total: dict[tuple[str, ...], int] = defaultdict(int)
        self._hit: dict[tuple[str, ...], int] = defaultdict(int)

    def add(self, wanted: Annotated, regions: npt.ArrayLike) -> None:
        """Count one image with its regions, (n, 4), shares of its width and height."""
        given = np.asarray(regions, np.float64)
        if given.ndim != 2 or given.shape[1:] != (4,) or not len(given):
            raise InputError(f"regions: shape {given.shape}, wanted (n, 4) with n at least 1")
        if not np.isfinite(given).all() or given.min() < -1e-6 or given.max() > 1 + 1e-6:
            raise InputError("regions: wanted finite shares of the image, from 0 to 1")
        self.images += 1
        pairs = (
            ("boxes", wanted.boxes, wanted.box_types),
            ("phrases", wanted.phrases, wanted.phrase_types),
        )
        for what, boxes, types in pairs:
            best = box_iou(boxes, given).max(1) if len(boxes) else np.empty(0)
            areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
            for overlap, size, kinds in zip(best.tolist(), areas.tolist(), types, strict=True):
                groups = [(what,), (what, "size", _size(size))]
                groups += [(what, "type", kind) for kind in kinds]
                for group in groups:
                    self._total[group] += 1
                    for threshold in self.thresholds:
                        # Boxes are 32-bit: one that overlaps by exactly t must not miss by a bit.
                        self._hit[*group, f"{threshold}"] += overlap >= threshold - 1e-6

    def share(self, what: str, threshold: float) -> float:
        """Return the covered share of "boxes" or "phrases", in percent; 0 of none is 0."""
        return 100 * self._hit[what, f"{threshold}"] / max(self._total[what,], 1)

    def shares(self) -> dict[str, object]:
        """Return everything for JSON: counts and percentages, in all, by type and by size."""
        out: dict[str, object] = {"images": self.images}
        for what in ("boxes", "phrases"):
            out[what] = {
                "all": self._row((what,)),
                "by type": self._rows(what, "type"),
                "by size": self._rows(what, "size"),
            }
        return out

    def _rows(self, what: str, by: str) -> dict[str, dict[str, float]]:
        groups = sorted(group for group in self._total if group[:2] == (what, by))
        return {group[2]: self._row(group) for group in groups}

    def _row(self, group: tuple[str, ...]) -> dict[str, float]:
        total = self._total[group]
        row: dict[str, float] = {"count": total}
        for threshold in self.thresholds:
            hits = self._hit[*group, f"{threshold}"]
            row[f"covered at {threshold}"] = hits
            row[f"IoU {threshold}"] = round(100 * hits / max(total, 1), 2)
        return row


def measure(pairs: Iterable[tuple[Annotated, npt.ArrayLike]]) -> Coverage:
    """Count many images: what each asks for, and its regions."""
    coverage = Coverage()
    for wanted, regions in pairs:
        coverage.add(wanted, regions)
    return coverage


def _size(area: float) -> str:
    low, high = next((s for s in SIZES if area < s[1]), SIZES[-1])
    return f"{low * 100:02.0f}-{high * 100:.0f} %"
