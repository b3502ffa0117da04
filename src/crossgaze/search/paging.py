"""A query's answer as it arrives, and page by page however far one scrolls.

Photographs come in blocks of `CANDIDATES`: block 0 is what `Index.search` re-ranks, block 1 the
next best by vector, and so on. Each block is put into the exact order by itself, so that any
page costs at most one block and pages never contradict each other. An index that holds no
photograph has an empty block: whoever asks page by page may be waiting for the first.

    query = read_sentence(index, "two dogs")
    block = candidates(index, query, 0)          # there at once, in the order of vectors
    while not block.done:
        block = rank_part(index, query, block)   # some more are in the exact order
    hits = hits_of(index, *block.order())
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crossgaze.errors import InputError
from crossgaze.search.engine import Uids, Vectors, best, together
from crossgaze.search.filters import Where
from crossgaze.search.pictures import best_sentences, cosines, regions_of
from crossgaze.search.queries import require_words
from crossgaze.search.ranking import CANDIDATES, rerank_uids
from crossgaze.search.results import SentenceHit

if TYPE_CHECKING:
    from crossgaze.search.index import Index

PART = 125  # photographs re-ranked between two looks at what has been found


@dataclass(frozen=True, eq=False)
class Query:
    """A query that has been read.

    Args:
        vector: (D,) by the embedder.
        text: the sentence; "" for a picture.
        unknown: words that a model does not know.
        features: (1, extra + k, width) of a picture, for the re-ranker.
        counts: (1,) its regions.
    """

    vector: Vectors
    text: str = ""
    unknown: tuple[str, ...] = ()
    features: npt.NDArray[Any] | None = None
    counts: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class Block:
    """Some photographs on their way into the exact order.

    Args:
        uids: (n,) in the order of vectors.
        scores: (n,) both models' for the first `ranked`, the vectors' for the others.
        ranked: how many have their last score.
        first: photographs in the blocks before.
    """

    uids: Uids
    scores: Vectors
    ranked: int
    first: int = 0

    @property
    def done(self) -> bool:
        """Whether the order is the last one."""
        return self.ranked >= len(self.uids)

    def order(self) -> tuple[Uids, Vectors]:
        """Return uids and scores: those in exact order first, then the others as they came."""
        uids, scores = best(self.scores[: self.ranked], self.uids[: self.ranked], self.ranked)
        return (
            np.concatenate([uids, self.uids[self.ranked :]]),
            np.concatenate([scores, self.scores[self.ranked :]]),
        )


def read_sentence(index: Index, text: str) -> Query:
    """Read a sentence; refuses one that the models can make nothing of."""
    unknown = require_words(index, text)
    (vector,) = index.embedder.texts([text])
    return Query(vector, text, unknown)


def read_picture(index: Index, file: IO[bytes], *, max_pixels: int) -> Query:
    """Read a picture from an open file, of at most so many pixels."""
    regions, counts = regions_of(index, file, max_pixels=max_pixels)
    (vector,) = index.embedder.images(regions, counts)
    features = None if index.reranker is None else index.reranker.images(regions, counts)
    return Query(vector, features=features, counts=counts)


def read_photograph(index: Index, uid: int) -> Query:
    """Take a photograph of the index as the picture."""
    if not index.tables.photos.get([uid]):
        raise InputError(f"photograph {uid}: is not in the index")
    (vector,) = index.tables.photos.vectors([uid])
    (row,) = index.kept.rows([uid])
    if index.reranker is None or row < 0:
        return Query(vector)
    kept = index.kept
    return Query(vector, features=kept.features[row][None], counts=kept.counts[row : row + 1])


def candidates(index: Index, query: Query, block: int, where: Where | None = None) -> Block:
    """Return a block in the order of vectors; the end of the index is an empty one."""
    first = block * CANDIDATES
    uids, scores = index.tables.photos.search(query.vector, first + CANDIDATES, where)
    uids, scores = uids[first:], scores[first:]
    ready = index.reranker is None and bool(query.text)
    return Block(uids, scores, len(uids) if ready else 0, first)


def rank_part(index: Index, query: Query, block: Block) -> Block:
    """Return a block of which some more photographs have their last score.

    For a sentence that is both models' mean; for a picture, the cosine of vectors, as these need
    not have length 1.
    """
    if block.done:
        return block
    scores = block.scores.copy()
    if not query.text:
        rows = index.tables.photos.vectors(block.uids.tolist())
        return replace(block, scores=cosines(rows, query.vector), ranked=len(block.uids))
    end = min(block.ranked + PART, len(block.uids))
    part = slice(block.ranked, end)
    scores[part] = together(scores[part], rerank_uids(index, query.text, block.uids[part]))
    return replace(block, scores=scores, ranked=end)


def sentences_for(index: Index, query: Query, k: int) -> tuple[SentenceHit, ...]:
    """Return the best sentences of the index for a picture."""
    counts = np.ones(1, np.int64) if query.counts is None else query.counts
    return best_sentences(index, query.vector, query.features, counts, k)
