"""What a model made of one photograph and one sentence, with every weight it gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crossgaze.errors import InputError, nearest
from crossgaze.explain.maps import Rule
from crossgaze.vision.photos import Photo

Floats = npt.NDArray[np.float32]
Kind = Literal["words", "steps", "regions", "none"]
MEAN = "mean of the heads"
MARKS = ("<start>", "<end>", "<pad>", "<unk>", "[CLS]", "[SEP]", "[PAD]", "[UNK]")

# Words that say little by where they look; the service's page has the same (`static/photo.js`).
SMALL = frozenset(
    (
        *("a", "an", "the", "of", "in", "on", "at", "by", "to", "and", "or", "with", "is", "are"),
        *("be", "for", "from", "it", "its", "his", "her", "their", "as", "this", "that", "there"),
        *("who", "while", "front", "behind", "next", "near", "over", "under", "between", "into"),
        *("top", "side"),
    )
)


def is_word(word: str) -> bool:
    """Return whether this is a word and neither a mark of the model nor punctuation.

    Example:
        >>> [is_word(word) for word in ("dog", "<start>", ".")]
        [True, False, False]
    """
    return word not in MARKS and any(map(str.isalnum, word))


@dataclass(frozen=True, eq=False)
class Explanation:
    """Where a model looked.

    Args:
        sentence: as it was given.
        model: what the model is called here.
        family: what kind it is, "scan".
        score: the similarity of photograph and sentence.
        photo: the photograph, upright, in its own size.
        words: (n,) as the model reads them, whole also where it reads pieces of words
            (`crossgaze.models.pieces`), its marks of beginning and end among them.
        boxes: (k, 4) the regions, x1, y1, x2, y2 as shares of width and height.
        labels: (k,) what the region model calls them, "" where it says nothing or is not sure
            (`crossgaze.explain.naming`).
        names: of the maps: a direction ("t-i", "i-t"), heads ("head 1"), steps ("step 1").
        weights: (maps, n, k) of each word and region; None where the model relates no two of them.
        region_weights: (maps, k) how much each region counted by itself, or None.
        word_weights: (maps, n) how much each word counted by itself, or None.
        meaning: what the weights are, in one line.
        unknown: words that the model does not know.
        notes: what the user should be told.
        relevances: (n,) how much each word agrees with the regions that it looked at, the cosine
            R(e_j, a_j) of SCAN's eq. 4; None where words do not look at regions.
    """

    sentence: str
    model: str
    family: str
    score: float
    photo: Photo
    words: tuple[str, ...]
    boxes: Floats
    labels: tuple[str, ...]
    names: tuple[str, ...]
    weights: Floats | None
    region_weights: Floats | None
    word_weights: Floats | None
    meaning: str
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    relevances: Floats | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the photograph."""
        return self.photo.width, self.photo.height

    @property
    def kind(self) -> Kind:
        """What there is to show.

        "words": each word has regions (SCAN, BFAN, MMCA, Sum-Max); "steps": regions and words,
        each by themselves, step by step (m-DAN); "regions": regions alone (VSRN); "none": VSE++.
        """
        if self.region_weights is not None:
            return "regions" if self.word_weights is None else "steps"
        return "none" if self.weights is None or not self.names else "words"

    @property
    def rule(self) -> Rule:
        """How weights of regions that overlap become a pixel's; VSRN says that they add up."""
        return "sum" if self.kind == "regions" else "strongest"

    @property
    def shown(self) -> tuple[int, ...]:
        """Numbers of the words that are words, without marks and punctuation."""
        return tuple(number for number, word in enumerate(self.words) if is_word(word))

    @property
    def views(self) -> tuple[str, ...]:
        """What `view` takes, the first by default: the maps, and the mean where they are heads."""
        heads = len(self.names) > 1 and all(name.startswith("head ") for name in self.names)
        return (MEAN, *self.names) if heads else self.names

    def view(self, name: str | None = None) -> Floats:
        """Return one map of words and regions, (n, k).

        Args:
            name: one of `views`; the first if not given.
        """
        if self.weights is None:
            raise InputError(f"{self.family}: has no map of words and regions")
        name = self.require_view(name)
        found: Floats = (
            self.weights.mean(0) if name == MEAN else self.weights[self.names.index(name)]
        )
        return found

    def require_view(self, name: str | None) -> str:
        """Return the name of a map that is there, the first if none is named."""
        if name is None:
            return self.views[0]
        if name not in self.views:
            known = ", ".join(self.views) or "no map"
            raise InputError(
                f"map: got {name!r}{nearest(name, self.views)}, this model has {known}"
            )
        return name

    def importance(self, name: str | None = None) -> Floats | None:
        """Return how much each word counted, (n,): a share of the sentence's most relevant word.

        SCAN's figure 4 lights a panel by region and by word. A word that agrees with nothing has
        0; marks and punctuation have no panel and set no scale. None where a map is not of words
        that look ("t-i"), and where no word agrees with anything.
        """
        if self.relevances is None or self.require_view(name) != "t-i" or not self.shown:
            return None
        most = float(self.relevances[list(self.shown)].max())
        return None if most <= 0 else np.clip(self.relevances / most, 0, 1)

    def label(self, region: int) -> str:
        """Return what a region is called, for people: never empty."""
        x1, y1, x2, y2 = self.boxes[region].tolist()
        if (x2 - x1) * (y2 - y1) > 0.999:
            return "whole image"
        return self.labels[region] or f"region {region + 1}"

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON: boxes in pixels, weights of each map by word and region."""
        size = np.array(self.size * 2, np.float32)
        maps = []
        for number, name in enumerate(self.names):
            parts = {
                "weights": self.weights,
                "regions": self.region_weights,
                "words": self.word_weights,
            }
            given = {
                key: None if part is None else np.round(part[number].astype(np.float64), 6).tolist()
                for key, part in parts.items()
            }
            maps.append({"name": name, **given})
        return {
            "model": self.model,
            "family": self.family,
            "sentence": self.sentence,
            "score": round(self.score, 6),
            "meaning": self.meaning,
            "width": self.size[0],
            "height": self.size[1],
            "words": list(self.words),
            "unknown": list(self.unknown),
            "relevances": None
            if self.relevances is None
            else np.round(self.relevances.astype(np.float64), 6).tolist(),
            "regions": [
                {"box": box, "label": label}
                for box, label in zip(
                    np.round(self.boxes * size, 1).tolist(), self.labels, strict=True
                )
            ],
            "maps": maps,
            "notes": list(self.notes),
        }
