"""Where each word of a sentence looked in a photograph that was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crossgaze.errors import InputError
from crossgaze.search.ranking import MissingRegionsError
from crossgaze.search.results import Hit, Look

if TYPE_CHECKING:
    from crossgaze.search.index import Index


def look_at(index: Index, query: str, hit: Hit) -> tuple[Look, ...]:
    """Return one look a word, by the re-ranker's attention; none without a re-ranker.

    Words are whole, also where the model reads pieces of them.
    """
    if not isinstance(hit, Hit):
        raise InputError(f"hit: got {hit!r}, wanted one of a search's hits")
    if index.reranker is None:
        return ()
    kept = index.kept
    (row,) = kept.rows([hit.uid])
    if row < 0:
        raise MissingRegionsError(kept.folder, f"has no regions of {hit.path} now; search again")
    count = int(kept.counts[row])
    words, weights = index.reranker.attention(query, kept.features[row], count)
    return tuple(
        # No region may have answered a word: of BFAN's focal attention, or of regions that look.
        Look(word, tuple(map(float, one)), int(one.argmax()) if one.any() else None)
        for word, one in zip(words, weights, strict=True)
    )
