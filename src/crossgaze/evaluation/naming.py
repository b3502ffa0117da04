"""How often is a region called what people call it?

Of every annotated box that some region covers at IoU 0.5, the region that overlaps it most is
asked: its likeliest noun (attribute) is right if a phrase about the box uses it. Boxes whose
phrases use no word of the list are not counted. The oftenest word of all, said of every box, is
the figure to compare with.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.evaluation.coverage import Annotated, box_iou
from crossgaze.vision.objects.words import Words


class Naming:
    """Counts images one by one; `shares` tells the result in percent.

    Args:
        words: the nouns and attributes that regions may have.
    """

    def __init__(self, words: Words) -> None:
        self.words = words
        self._asked = {"nouns": 0, "attributes": 0}
        self._right = {"nouns": 0, "attributes": 0}
        self._said: dict[str, Counter[int]] = {"nouns": Counter(), "attributes": Counter()}

    def add(
        self,
        wanted: Annotated,
        boxes: npt.ArrayLike,
        nouns: npt.NDArray[np.int64],
        attributes: npt.NDArray[np.int64],
    ) -> None:
        """Count one image.

        Args:
            wanted: what people say.
            boxes: (n, 4) of its regions, shares of width and height.
            nouns: (n,) the likeliest of each.
            attributes: (n,) likewise.
        """
        if not len(wanted.boxes):
            return
        used: dict[str, list[set[int]]] = {
            kind: [set() for _ in wanted.boxes] for kind in self._asked
        }
        for members, text in zip(wanted.members, wanted.texts, strict=True):
            noun, described = self.words.parse(text)
            for member in members:
                used["nouns"][member].update(() if noun is None else (noun,))
                used["attributes"][member].update(described)
        overlap = box_iou(wanted.boxes, boxes)  # (boxes, n)
        for row, best in enumerate(overlap.argmax(1).tolist()):
            if overlap[row, best] < 0.5:
                continue
            for kind, guesses in (("nouns", nouns), ("attributes", attributes)):
                if right := used[kind][row]:
                    self._asked[kind] += 1
                    self._right[kind] += int(guesses[best]) in right
                    self._said[kind].update(right)

    def shares(self) -> dict[str, dict[str, Any]]:
        """Return for nouns and attributes: boxes asked, percent right, and of the oftenest word."""
        out = {}
        for kind, asked in self._asked.items():
            oftenest = self._said[kind].most_common(1)
            names = getattr(self.words, kind)
            out[kind] = {
                "boxes": asked,
                "right": round(100 * self._right[kind] / max(asked, 1), 1),
                "oftenest": names[oftenest[0][0]] if oftenest else "",
                "oftenest right": round(100 * oftenest[0][1] / asked, 1) if oftenest else 0.0,
            }
        return out
