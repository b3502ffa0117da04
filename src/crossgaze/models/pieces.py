"""Word pieces put together again: people read whole words, whatever a BERT cut them into.

A BERT reads "snowboarder" as `snow ##board ##er`, three tokens with attention of their own. What is
told of a word is made of its pieces in one of two ways, so that the weights stay what they were:

- *mean*, where each piece looks at the regions: weights that sum to 1 still do, and a word that
  was cut into many pieces counts no more than one that was not. The largest would favour long
  words: of three looks one is stronger by chance.
- *sum*, where something looks at the words: what it gave to the pieces it gave to the word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
INSIDE = "##"  # begins a piece that goes on with the word before it


def join_pieces(pieces: Sequence[str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the words, and where each begins among the pieces.

    Words that are not cut stay as they are, so this is also for models that know no pieces.

    Example:
        >>> join_pieces(["[CLS]", "a", "snow", "##board", "##er", "[SEP]"])
        (('[CLS]', 'a', 'snowboarder', '[SEP]'), (0, 1, 2, 5))
    """
    words: list[str] = []
    starts: list[int] = []
    for place, piece in enumerate(pieces):
        if place and piece.startswith(INSIDE) and len(piece) > len(INSIDE):
            words[-1] += piece[len(INSIDE) :]
        else:
            words.append(piece)
            starts.append(place)
    return tuple(words), tuple(starts)


def mean_of_pieces(weights: Floats, starts: Sequence[int]) -> Floats:
    """Return (..., pieces, k) weights over regions as (..., words, k)."""
    ends = np.append(np.asarray(starts[1:], np.int64), weights.shape[-2])
    counts = (ends - np.asarray(starts)).astype(np.float32)
    found: Floats = np.add.reduceat(weights, starts, axis=-2) / counts[:, None]
    return found


def sum_of_pieces(weights: Floats, starts: Sequence[int], axis: int = -1) -> Floats:
    """Return weights over pieces, along one axis, as weights over words."""
    found: Floats = np.add.reduceat(weights, starts, axis=axis)
    return found
