"""Which words of one sentence stand for which of another that was spelled or cut differently."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, product
from operator import itemgetter

# Nothing people wrote is longer, and the work grows with the square.
_LONG_WORD, _LONG_TEXT = 64, 1000

Links = list[tuple[int, int] | None]  # for each sentence word: the caption words [first, last)


@lru_cache(maxsize=1 << 16)
def fold(word: str) -> str:
    """Return the bare letters and digits of `word`: no case, accents, spaces or punctuation.

    Example:
        >>> fold("T-Shirt"), fold("café"), fold(".")
        ('tshirt', 'cafe', '')
    """
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKD", word).casefold())


@lru_cache(maxsize=1 << 16)
def _distance(left: str, right: str) -> float:
    """Return the letter edits (insert, delete, change) between two words over the longer length."""
    if max(len(left), len(right)) > _LONG_WORD:
        return float(left != right)
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        corner, row[0] = row[0], i
        for j, b in enumerate(right, start=1):
            corner, row[j] = row[j], min(corner + (a != b), row[j] + 1, row[j - 1] + 1)
    return row[-1] / max(len(left), len(right), 1)


def _joined(first: str, second: str, whole: str) -> float:
    """Return the cost of two words written as one, `whole`: twice the distance.

    It is infinite unless the two fit better together than one of them alone: else an article
    would be swallowed ("a woman" against "woman") where it should count as missing.
    """
    together = _distance(first + second, whole)
    alone = min(_distance(first, whole), _distance(second, whole))
    return 2 * together if together < alone else float("inf")


def link_words(left: Sequence[str], right: Sequence[str]) -> tuple[Links, float]:
    """Return the cheapest links in order between two lists of folded words, and a similarity.

    A word may be changed (cost: `_distance`), left out or put in (cost 1), or be written as two
    words (cost: see `_joined`). Words folded to nothing, that is punctuation, get no link, and
    a side without words or with over 1,000 has a similarity of 0 to anything else.

    Returns:
        links: for each word of `left`, the words [first, last) of `right`, or None.
        similarity: 1 - cost / number of words of the longer side, in 0..1.

    Example:
        >>> link_words(["a", "blond", "sheepdog"], ["a", "blonde", "sheep", "dog", ""])[0]
        [(0, 1), (1, 2), (2, 4)]
    """
    rows = [i for i, word in enumerate(left) if word]
    columns = [j for j, word in enumerate(right) if word]
    if rows and "".join(left) == "".join(right):
        return _same_letters(left, right), 1.0
    if not rows or not columns or max(len(rows), len(columns)) > _LONG_TEXT:
        return [None] * len(left), 0.0
    # best[i, j]: cost of the first i words against the first j, and how many of each came last.
    best = {(i, 0): (float(i), 1, 0) for i in range(len(rows) + 1)}
    best.update({(0, j): (float(j), 0, 1) for j in range(len(columns) + 1)})
    for i, j in product(range(1, len(rows) + 1), range(1, len(columns) + 1)):
        a, b = left[rows[i - 1]], right[columns[j - 1]]
        ways = [
            (best[i - 1, j - 1][0] + _distance(a, b), 1, 1),
            (best[i - 1, j][0] + 1, 1, 0),
            (best[i, j - 1][0] + 1, 0, 1),
        ]
        if i > 1:
            ways.append((best[i - 2, j - 1][0] + _joined(left[rows[i - 2]], a, b), 2, 1))
        if j > 1:
            ways.append((best[i - 1, j - 2][0] + _joined(right[columns[j - 2]], b, a), 1, 2))
        best[i, j] = min(ways, key=itemgetter(0))
    links: Links = [None] * len(left)
    i, j = len(rows), len(columns)
    similarity = 1 - best[i, j][0] / max(i, j)
    while i and j:
        _, down, along = best[i, j]
        i, j = i - down, j - along
        if down and along:
            span = (columns[j], columns[j + along - 1] + 1)
            links[rows[i]] = links[rows[i + down - 1]] = span
    return links, similarity


def _same_letters(left: Sequence[str], right: Sequence[str]) -> Links:
    """Return the links of words with the same letters in all, however they are cut into words."""
    owner = [j for j, word in enumerate(right) for _ in word]
    ends = accumulate(map(len, left))
    return [
        (owner[end - len(word)], owner[end - 1] + 1) if word else None
        for word, end in zip(left, ends, strict=True)
    ]
