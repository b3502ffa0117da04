"""WUPS: accuracy that forgives a near word, for DAQUAR.

M. Malinowski, M. Fritz, A Multi-World Approach to Question Answering about Real-World Scenes based
on Uncertain Input, NeurIPS 2014: for a question with answers T and the model's answers A,

    min( prod_{a in A} max_{t in T} WUP(a, t),  prod_{t in T} max_{a in A} WUP(a, t) ),

where WUP is the Wu-Palmer similarity of the two words' nearest senses, times 0.1 where that is
below a threshold. At 0.9 only near-synonyms count, at 0.0 everything does; equal words are 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from crossgaze.evaluation.wordnet import Nouns

DOWN = 0.1  # what a similarity below the threshold is worth


def answer_parts(answer: str) -> tuple[str, ...]:
    """Return the answers that a DAQUAR answer line is made of.

    Example:
        >>> answer_parts("table, night_stand")
        ('table', 'night_stand')
    """
    return tuple(part.strip() for part in answer.split(",") if part.strip())


class Wups:
    """Scores answers with WordNet.

    Args:
        nouns: WordNet's nouns.
    """

    def __init__(self, nouns: Nouns) -> None:
        self.nouns = nouns
        self._near = lru_cache(maxsize=1 << 16)(self._nearest)

    def __call__(self, said: Sequence[str], wanted: Sequence[str], threshold: float) -> float:
        """Return the score of one question's answers, 0 to 1."""
        if not said or not wanted:
            return float(not said and not wanted)
        rows = [[self.word(one, other, threshold) for other in wanted] for one in said]
        left = math.prod(max(row) for row in rows)
        right = math.prod(max(column) for column in zip(*rows, strict=True))
        return float(min(left, right))

    def word(self, one: str, other: str, threshold: float) -> float:
        """Return the score of two words; those that WordNet does not have are equal or 0."""
        if one == other:
            return 1.0
        near: float = self._near(*sorted((one, other)))
        return near if near >= threshold else DOWN * near

    def _nearest(self, one: str, other: str) -> float:
        pairs = ((a, b) for a in self._synsets(one) for b in self._synsets(other))
        return max((self.nouns.wup(a, b) for a, b in pairs), default=0.0)

    def _synsets(self, word: str) -> tuple[int, ...]:
        return self.nouns.synsets(word.replace(" ", "_"))
