"""A query's way: candidates by their vectors, then the exact order with cross attention.

The order is by s = (e + r) / 2, the mean of the embedder's similarity e and the re-ranker's r, as
an ensemble of the two has it: the first stage has computed e, and two models that look differently
are wrong about different photographs. Ranked by the re-ranker alone, s = r.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from crossgaze.errors import FileFormatError, InputError
from crossgaze.search.damage import require_held, require_sound_regions
from crossgaze.search.engine import OutOfDateError, Uids, Vectors, best, together
from crossgaze.search.filters import Where
from crossgaze.search.pictures import PICTURE, SENTENCES, best_sentences, cosines, regions_of
from crossgaze.search.queries import (
    Clock,
    notes_on,
    require_candidates,
    require_filled,
    require_k,
    require_words,
)
from crossgaze.search.results import Found, Hit

if TYPE_CHECKING:
    from crossgaze.search.index import Index

CANDIDATES = 200  # photographs that are re-ranked; why so many: docs/search.md, Numbers
RankBy = Literal["both", "reranker"]
RANKINGS = get_args(RankBy)
PRODUCTS = 8192  # vectors read at a time
SPARE = 16  # hits read beyond those asked for, in case some have just been replaced


class MissingRegionsError(OutOfDateError):
    """Entries have no regions: what was opened is out of date, or damaged."""


def find_photos(
    index: Index,
    query: str,
    k: int,
    *,
    where: Where | None = None,
    candidates: int | None = None,
    exhaustive: bool = False,
    rank_by: RankBy = "both",
) -> Found:
    """Find the best photographs for a sentence."""
    both = _both(rank_by)
    return _look_again(
        index,
        lambda: _find_photos(index, query, k, where, candidates, exhaustive=exhaustive, both=both),
    )


def _both(rank_by: str) -> bool:
    if rank_by not in RANKINGS:
        raise InputError(f"rank_by: got {rank_by!r}, wanted one of {', '.join(RANKINGS)}")
    return rank_by == "both"


def find_like(
    index: Index,
    picture: str | Path | npt.NDArray[np.uint8],
    k: int,
    *,
    where: Where | None = None,
    candidates: int | None = None,
) -> Found:
    """Find photographs like a picture, and sentences for it where the index holds some."""
    return _look_again(index, lambda: _find_like(index, picture, k, where, candidates))


def _look_again(index: Index, find: Callable[[], Found]) -> Found:
    """Search, and where what was opened does not fit together, open it anew and search again.

    Another process may have removed photographs, compacted the index, or tidied away the files of
    a database that was opened long ago.
    """
    try:
        return find()
    except FileFormatError:
        index.refresh()
        return find()


def _find_photos(
    index: Index,
    query: str,
    k: int,
    where: Where | None,
    candidates: int | None,
    *,
    exhaustive: bool,
    both: bool,
) -> Found:
    clock = Clock()
    if not len(index):
        require_held(index.folder, index.tables)
    total = require_filled(index, k)
    given, k = k, min(require_k(k), total)
    require_candidates(candidates)
    unknown = require_words(index, query, embedded=both or not exhaustive)
    if index.reranker is None and (exhaustive or not both):
        wanted = "an exhaustive search" if exhaustive else "a ranking by it"
        raise InputError(f"{index.folder}: has no reranker, wanted one for {wanted}")
    if both or not exhaustive:
        (vector,) = index.embedder.texts([query])
    clock.lap("encode")
    ranked, asked = index.reranker is not None, 0
    if exhaustive:
        uids, stages = _all(index, where), "exhaustive"
        scores = products_of(index, vector, uids) if both else np.zeros(len(uids), np.float32)
    else:
        asked = max(k, candidates or CANDIDATES) if ranked else k
        count = asked if ranked else k + SPARE
        uids, scores = index.tables.photos.search(vector, count, where)
        stages = "two stages" if ranked else "vectors only"
    clock.lap("candidates")
    looked_at = len(uids) if ranked else min(len(uids), k)
    if ranked and len(uids):
        second = rerank_uids(index, query, uids)
        scores = together(scores, second) if both else second
    clock.lap("re-rank")
    hits = hits_of(index, uids, scores, k)
    clock.lap("read")
    return Found(
        query,
        hits=hits,
        stages=stages,
        ranked_by=("both models" if both else "the re-ranker") if ranked else "vectors",
        looked_at=looked_at,
        total=total,
        unknown=unknown,
        notes=notes_on(
            given,
            total,
            len(hits),
            where,
            unknown,
            asked=asked,
            most=index.tables.photos.most,
        ),
        milliseconds=clock.taken,
    )


def products_of(index: Index, vector: Vectors, uids: Uids) -> Vectors:
    """Return e, the inner products of photographs' vectors with a sentence's, (uids,)."""
    found = np.empty(len(uids), np.float32)
    for start in range(0, len(uids), PRODUCTS):
        part = slice(start, start + PRODUCTS)
        found[part] = index.tables.photos.vectors(uids[part].tolist()) @ vector
    return found


def rerank_uids(index: Index, query: str, uids: Uids) -> Vectors:
    """Return r, the re-ranker's similarity of photographs with a sentence, (uids,).

    They are read in the order they lie in, some at a time: a search of everything goes through the
    file once and holds a part of it. And two searches of the same photographs, whatever order those
    came in, give the same r.
    """
    assert index.reranker is not None
    kept = index.kept
    rows = kept.rows(uids)
    if (rows < 0).any():
        kept = index.reopen_kept()  # another process may have added them since
        rows = kept.rows(uids)
    if (rows < 0).any():
        require_sound_regions(index, remake=False)  # where that is why, it says what to do
        lost = uids[rows < 0].tolist()
        first = "".join(f" (one is {entry.key})" for entry in index.tables.photos.get(lost[:1]))
        raise MissingRegionsError(
            kept.folder,
            f"lacks the regions of {len(lost):,} photographs; index their folders again to repair "
            f"it{first}",
        )
    said = index.reranker.texts([query])
    scores = np.empty(len(rows), np.float32)
    order = np.argsort(rows, kind="stable")
    for start in range(0, len(rows), kept.part):
        places = order[start : start + kept.part]
        counts = kept.counts[rows[places]]
        found = index.reranker.score_texts(
            said, kept.read(rows[places]), np.arange(len(places)), counts
        )
        scores[places] = found[:, 0]
    kept.require_finite(scores, "the similarities that its features give")
    # Of equal photographs the last bits differ with what they were compared beside; see `together`.
    return np.round(scores, 6)


def _find_like(
    index: Index,
    picture: str | Path | npt.NDArray[np.uint8],
    k: int,
    where: Where | None,
    candidates: int | None,
) -> Found:
    clock = Clock()
    total = len(index)
    if not total:
        require_held(index.folder, index.tables)
    if not total and not len(index.tables.sentences):
        require_filled(index, k)
    given, k = k, min(require_k(k), max(total, len(index.tables.sentences)))
    require_candidates(candidates)
    regions, counts = regions_of(index, picture)
    clock.lap("regions")
    (vector,) = index.embedder.images(regions, counts)
    # Vectors need not have length 1, and what is like a picture is so by direction.
    asked = max(k, candidates or CANDIDATES)
    uids, _ = index.tables.photos.search(vector, asked, where)
    looked_at = len(uids)
    scores = cosines(index.tables.photos.vectors(uids.tolist()), vector)
    hits = hits_of(index, uids, scores, k)
    clock.lap("photographs")
    features = None
    if index.reranker is not None and len(index.tables.sentences):
        features = index.reranker.images(regions, counts)
    sentences = best_sentences(index, vector, features, counts, k, candidates or SENTENCES)
    clock.lap("sentences")
    return Found(
        str(picture) if isinstance(picture, str | Path) else PICTURE,
        picture=True,
        hits=hits,
        sentences=sentences,
        stages="vectors only",
        looked_at=looked_at,
        total=total,
        notes=notes_on(given, total, len(hits), where, asked=asked, most=index.tables.photos.most)
        if total
        else (),
        milliseconds=clock.taken,
    )


def hits_of(index: Index, uids: Uids, scores: Vectors, k: int | None = None) -> tuple[Hit, ...]:
    """Return what is shown of the best photographs, at most k; all if not given.

    Of a photograph that is just being replaced there are two entries: the newer counts.
    """
    if not np.isfinite(scores).all():  # they could not be put into an order
        raise FileFormatError(
            index.folder,
            "its database is damaged: the similarities that its vectors give are not numbers; put "
            "it back from a copy, or index the photographs into a new folder",
        )
    uids, scores = best(scores, uids, len(uids) if k is None else k + SPARE)
    entries = {entry.uid: entry for entry in index.tables.photos.get(uids.tolist())}
    newest: dict[str, int] = {}
    for entry in entries.values():
        newest[entry.key] = max(entry.uid, newest.get(entry.key, 0))
    kept = index.kept
    hits: list[Hit] = []
    for uid, score in zip(uids.tolist(), scores.tolist(), strict=True):
        found = entries.get(uid)
        if found is None or newest[found.key] != uid:
            continue
        if k is not None and len(hits) == k:
            break
        shown = found.tags, found.width, found.height, kept.regions(uid)
        hits.append(Hit(len(hits) + 1, score, found.key, uid, *shown))
    return tuple(hits)


def _all(index: Index, where: Where | None) -> Uids:
    parts = index.tables.photos.every(where)
    return np.array([entry.uid for part in parts for entry in part], np.int64)
