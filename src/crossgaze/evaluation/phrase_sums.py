"""What attention did on each image: sums over its phrases, small enough to keep with a result.

Intervals draw whole images (`crossgaze.evaluation.bootstrap`), so the sum over an image's phrases
and their number are all that a mean over phrases and its interval need, and all that the difference
of two models needs: some thousand numbers where every phrase by itself would be a hundred thousand.
No word of a caption and no image's name is part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crossgaze.errors import InputError
from crossgaze.evaluation.attention_quality import AttentionQuality
from crossgaze.evaluation.bootstrap import BootstrapConfig, Counts, ratio_draws
from crossgaze.evaluation.runs import Drawn

# A phrase that no region fits adds 0 to the first three, whichever way it is counted.
_SUMMED = {
    "precision": "precision_all",
    "recall": "recall_all",
    "f1": "f1_all",
    "pointing": "pointing",
    "covered": "covered",
}
_OF_COVERED = ("precision", "recall", "f1")


@dataclass(frozen=True, eq=False)
class PhraseSums:
    """Sums of attention's measures over the phrases of each image.

    Args:
        phrases: (N,) how many phrases.
        sums: {measure: (N,)} of precision, recall, f1, pointing and covered.
    """

    phrases: Counts
    sums: Mapping[str, npt.NDArray[Any]]

    @classmethod
    def of(cls, quality: AttentionQuality) -> PhraseSums:
        """Sum what was measured."""
        images = quality.images
        sums = {
            name: np.bincount(quality.image, quality.values[measure], images)
            for name, measure in _SUMMED.items()
        }
        return cls(np.bincount(quality.image, minlength=images), sums)

    def to_dict(self) -> dict[str, list[int | float]]:
        """Return it for JSON, to four digits."""
        sums = {name: [_short(value) for value in sums] for name, sums in self.sums.items()}
        return {"phrases": self.phrases.tolist(), **sums}

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> PhraseSums:
        """Read what `to_dict` gave."""
        wanted = ("phrases", *_SUMMED)
        if missing := [name for name in wanted if name not in tree]:
            raise InputError(f"sums over phrases: has no {', '.join(missing)}")
        if len({len(tree[name]) for name in wanted}) != 1:
            raise InputError("sums over phrases: not a number for each image in every list")
        sums = {name: np.array(tree[name], np.float64) for name in _SUMMED}
        return cls(np.array(tree["phrases"], np.int64), sums)

    def drawn(self, config: BootstrapConfig) -> Drawn:
        """Return the means over phrases on every draw, by `MEASURES`' names."""
        shares: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]
        shares = {name: (self.sums[name], self.sums["covered"]) for name in _OF_COVERED}
        shares |= {_SUMMED[name]: (self.sums[name], self.phrases) for name in _SUMMED}
        return Drawn(
            {name: float(sums.sum() / max(n.sum(), 1)) for name, (sums, n) in shares.items()},
            {name: ratio_draws(sums, n, config) for name, (sums, n) in shares.items()},
            self.phrases,
        )


def _short(value: float) -> int | float:
    short = round(float(value), 4)
    return int(short) if short.is_integer() else short
