"""Selective search's first 36 boxes, which need no training."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crossgaze.evaluation.baselines import require_selective_search, selective_search
from crossgaze.vision.photos import Photo


class SelectiveSearch:
    """Gives the boxes of a photograph, searched in the pixels that the region model sees."""

    regions = 36

    def __init__(self) -> None:
        require_selective_search()

    def __call__(self, photo: Photo, name: str) -> npt.NDArray[np.float32]:
        """Return (n, 4) boxes as shares of the photograph's sides."""
        return selective_search(photo.pixels, self.regions)
