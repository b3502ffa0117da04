"""Does attention look where the words point? Precision, recall and F1, and the pointing game.

Chen, Y. et al.: More Than Just Attention: Learning Cross-Modal Attentions with Contrastive
Constraints (CCR/CCS), section 3.4. For word t_j of a phrase that Flickr30k Entities has boxes for:

| paper | code |
| --- | --- |
| R_j, relevant: IoU of region and the phrase's box > T_IoU | `relevant` (k,) |
| A_j, attended: attention weight > T_Att | `attended` (w, k) |
| T_IoU | `AttentionConfig.overlap`, 0.5 |
| T_Att, 1/36 (1/k) for SCAN, 0 for BFAN | `AttentionConfig.limit` |
| AP_j, AR_j, AF_j, eq. 10 | `word_quality` (w,) each |

Words are measured one by one, the largest value within a phrase (of each measure by itself) is the
phrase's, and phrases are averaged. Only words that look at regions are measured (map "t-i").

What the paper leaves open, and what is done here:

* Eq. 10 prints AF = AP AR / (AP + AR), half the harmonic mean. Its table 4 cannot have been made
  so: with AR <= 1 the printed form stays at or below AP / (AP + 1), a mean of 0.167 for SCAN's mean
  AP of 0.201, and the table says 0.305. The factor 2 of an F1 is put back.
* A phrase with several boxes: a region is relevant if it fits any one of them
  (`several="union"`: the smallest box around them all).
* A phrase that no region fits has no recall (0 / 0). It is left out of `precision`, `recall` and
  `f1`; `covered` tells the share that is left, and `precision_all`, `recall_all` and `f1_all` count
  it as 0. Compare different regions by those: poor regions must not gain by what they miss.
* A word that attends to nothing (all weights equal, so none above 1/k) has precision 0.
* Phrases without a box (scenes, "not visual") are not measured.

The pointing game (J. Zhang et al., Top-down Neural Attention by Excitation Backprop, ECCV 2016, on
regions): a phrase is a hit if the centre of the region that its words look at most, on the mean of
their weights, lies in one of its boxes; regions that share the largest weight must all hit.
`pointing_any_word` is a hit if any of the words hits, as the largest value of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from crossgaze.errors import InputError
from crossgaze.evaluation.bootstrap import BootstrapConfig, Estimate, estimate, mean_draws
from crossgaze.evaluation.coverage import box_iou
from crossgaze.models.cross_attention import UNIFORM

Numbers = npt.NDArray[np.float64]
Several = Literal["any", "union"]
MEASURES = (
    *("precision", "recall", "f1", "precision_all", "recall_all", "f1_all"),
    *("pointing", "pointing_any_word", "pointing_chance", "f1_everything", "covered"),
)


@dataclass(frozen=True)
class AttentionConfig:
    """What counts as relevant and as attended.

    Args:
        overlap: T_IoU; a region is relevant above it.
        threshold: T_Att; None takes 0 for a model that sets weights to 0 itself, as BFAN does
            (`Attention.dense`), and 1/k for every other, k the image's number of regions.
        several: a phrase with several boxes takes "any" of them or their "union".
        map: which of the model's maps.
    """

    overlap: float = 0.5
    threshold: float | None = None
    several: Several = "any"
    map: str = "t-i"

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < 1:
            raise InputError(f"overlap: got {self.overlap}, wanted 0 or more and less than 1")
        if self.threshold is not None and not 0 <= self.threshold < 1:
            raise InputError(f"threshold: got {self.threshold}, wanted 0 or more and less than 1")
        if self.several not in get_args(Several):
            raise InputError(f"several: got {self.several!r}, wanted any or union")

    def limit(self, regions: int, *, drops: bool) -> float:
        """Return T_Att for attention over so many regions, as CCR and CCS draw the line.

        Args:
            regions: k.
            drops: whether the model itself sets weights to 0.
        """
        if self.threshold is not None:
            return self.threshold
        return 0.0 if drops else 1 / regions


@dataclass(frozen=True, eq=False)
class AttentionQuality:
    """Every measured phrase, {measure: (P,)} (`MEASURES`), NaN where it has no value.

    Args:
        values: the measures.
        image: (P,) the image of each phrase.
        images: N, how many images there are.
        notes: what was left out.
    """

    values: Mapping[str, Numbers]
    image: npt.NDArray[np.int64]
    images: int
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.image)

    def figures(self) -> dict[str, float]:
        """Return the mean of each measure over phrases, from 0 to 1."""
        return {name: _mean(values) for name, values in self.values.items()}

    def estimates(self, config: BootstrapConfig) -> dict[str, Estimate]:
        """Return the means with their intervals, by drawing images."""
        value = self.figures()
        return {
            name: estimate(
                value[name], mean_draws(values, self.image, self.images, config), config.level
            )
            for name, values in self.values.items()
        }


def word_quality(
    attended: npt.NDArray[np.bool_], relevant: npt.NDArray[np.bool_]
) -> tuple[Numbers, Numbers, Numbers]:
    """Return precision, recall and F1 of each word, (w,) each.

    Eq. 10 of CCR/CCS, with the factor 2 of an F1 (see above).

    Args:
        attended: (w, k), A_j of each word.
        relevant: (k,), R_j, at least one.

    Example:
        >>> word_quality(np.array([[True, True, False]]), np.array([True, False, False]))[0]
        array([0.5])
    """
    both = (attended & relevant).sum(1)  # (w,)
    precision = both / np.maximum(attended.sum(1), 1)
    recall = both / max(int(relevant.sum()), 1)
    total = precision + recall
    return precision, recall, 2 * precision * recall / np.where(total > 0, total, 1)


def phrase_quality(
    weights: npt.NDArray[Any],
    regions: npt.NDArray[Any],
    boxes: npt.NDArray[Any],
    threshold: float,
    config: AttentionConfig,
) -> dict[str, float]:
    """Return every measure of one phrase; NaN for what it has not.

    Args:
        weights: (w, k), how much each of the phrase's words looks at each region.
        regions: (k, 4) boxes of the regions.
        boxes: (n, 4) boxes of the phrase, in the same pixels.
        threshold: T_Att.
        config: T_IoU, and what several boxes mean.
    """
    wanted = np.asarray(boxes, np.float64)
    if config.several == "union":
        wanted = np.concatenate([wanted[:, :2].min(0), wanted[:, 2:].max(0)])[None]
    relevant = np.asarray((box_iou(regions, wanted) > config.overlap).any(1))  # (k,)
    covered = bool(relevant.any())
    best = [0.0, 0.0, 0.0]
    everything = 0.0
    if covered:
        # By more than rounding: float32's 1/36 is above 1/36, and uniform attention has no large.
        attended = weights > (1 + UNIFORM) * threshold
        best = [float(values.max()) for values in word_quality(attended, relevant)]
        everything = float(word_quality(np.ones((1, len(regions)), bool), relevant)[2][0])
    left = best if covered else [np.nan] * 3
    middle = (np.asarray(regions, np.float64)[:, :2] + regions[:, 2:]) / 2  # (k, 2)
    inside = (middle[:, None] >= wanted[:, :2]) & (middle[:, None] <= wanted[:, 2:])  # (k, n, 2)
    hits = inside.all(2).any(1)  # (k,)
    values = (
        *left,
        *best,
        _points(weights.mean(0), hits),
        max(_points(row, hits) for row in weights),
        hits.mean(),
        everything if covered else np.nan,
        covered,
    )
    return {name: float(value) for name, value in zip(MEASURES, values, strict=True)}


def _points(weights: npt.NDArray[Any], hits: npt.NDArray[np.bool_]) -> bool:
    return bool(hits[weights == weights.max()].all())


def _mean(values: Numbers) -> float:
    real = values[~np.isnan(values)]
    return float(real.mean()) if len(real) else 0.0
