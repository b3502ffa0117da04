"""A query's way: candidates by their vectors, then the exact order by cross attention."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from crossgaze.data.textfiles import sentence_problem
from crossgaze.errors import FileFormatError, InputError
from crossgaze.models.checks import require_whole
from crossgaze.search.engine import Uids, Vectors, best
from crossgaze.search.filters import Where
from crossgaze.search.models import unknown_words
from crossgaze.search.results import Found, Hit, SentenceHit
from crossgaze.vision.photos import MAX_PIXELS, Photo, read_photo

if TYPE_CHECKING:
    from crossgaze.search.index import Index

CANDIDATES = 500  # photographs that are re-ranked; to be chosen by tools/two_stage_curve.py
SENTENCES = 200  # sentences that are re-ranked, each of which must be encoded again
LONGEST = 2000  # signs of a query
PICTURE = "picture"


class MissingRegionsError(FileFormatError):
    """Entries have no regions: what was opened is out of date, or damaged."""


class _Clock:
    """Milliseconds by step."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.taken[step] = round(1e3 * (now - self._last), 3)
        self._last = now


def find_photos(
    index: Index,
    query: str,
    k: int,
    *,
    where: Where | None = None,
    candidates: int | None = None,
    exhaustive: bool = False,
) -> Found:
    """Find the best photographs for a sentence."""
    how = where, candidates, exhaustive
    try:
        return _find_photos(index, query, k, *how)
    except MissingRegionsError:
        # Another process may have removed photographs and compacted the index since it was opened.
        index.refresh()
        return _find_photos(index, query, k, *how)


def _find_photos(
    index: Index,
    query: str,
    k: int,
    where: Where | None,
    candidates: int | None,
    exhaustive: bool,
) -> Found:
    clock = _Clock()
    total = require_filled(index, k)
    if candidates is not None:
        require_whole("candidates", candidates, most=1 << 31)
    unknown = require_words(index, query, exhaustive=exhaustive)
    if exhaustive and index.reranker is None:
        raise InputError(f"{index.folder}: has no reranker, wanted one for an exhaustive search")
    if exhaustive:
        uids, stages = _all(index, where), "exhaustive"
        scores = np.zeros(len(uids), np.float32)
    else:
        (vector,) = index.embedder.texts([query])
        clock.lap("encode")
        ranked = index.reranker is not None
        count = max(k, candidates or CANDIDATES) if ranked else k
        uids, scores = index.tables.photos.search(vector, count, where)
        stages = "two stages" if ranked else "vectors only"
    clock.lap("candidates")
    looked_at = len(uids)
    if index.reranker is not None and len(uids):
        scores = rerank_uids(index, query, uids)
    uids, scores = best(scores, uids, k)
    clock.lap("re-rank")
    hits = hits_of(index, uids, scores)
    clock.lap("read")
    return Found(
        query,
        hits=hits,
        stages=stages,
        looked_at=looked_at,
        total=total,
        unknown=unknown,
        notes=_notes(index, k, total, len(hits), where, unknown),
        milliseconds=clock.taken,
    )


def rerank_uids(index: Index, query: str, uids: Uids) -> Vectors:
    """Return the re-ranker's similarity of photographs with a sentence, (uids,)."""
    assert index.reranker is not None
    kept = index.kept
    rows = kept.rows(uids)
    if (rows < 0).any():
        kept.refresh()  # another process may have added them since
        rows = kept.rows(uids)
    if (rows < 0).any():
        raise MissingRegionsError(
            kept.folder,
            f"lacks the regions of {int((rows < 0).sum())} photographs; index the folder again to "
            "repair it",
        )
    kept.will_read(rows)
    found = index.reranker.score([query], kept.features, rows, kept.counts)
    kept.was_read(len(rows))
    return found[:, 0]


def find_like(
    index: Index,
    picture: str | Path | npt.NDArray[np.uint8],
    k: int,
    *,
    where: Where | None = None,
    candidates: int | None = None,
) -> Found:
    """Find photographs like a picture, and sentences for it where the index holds some."""
    clock = _Clock()
    total = len(index)
    if not total and not len(index.tables.sentences):
        require_filled(index, k)
    require_whole("k", k)
    regions, counts = regions_of(index, picture)
    clock.lap("regions")
    (vector,) = index.embedder.images(regions, counts)
    # Vectors need not have length 1, and what is like a picture is so by direction.
    uids, _ = index.tables.photos.search(vector, max(k, candidates or CANDIDATES), where)
    looked_at = len(uids)
    uids, scores = best(cosines(index.tables.photos.vectors(uids.tolist()), vector), uids, k)
    hits = hits_of(index, uids, scores)
    clock.lap("photographs")
    sentences = _sentences(index, vector, regions, counts, k, candidates or SENTENCES)
    clock.lap("sentences")
    return Found(
        str(picture) if isinstance(picture, str | Path) else PICTURE,
        picture=True,
        hits=hits,
        sentences=sentences,
        stages="vectors only",
        looked_at=looked_at,
        total=total,
        notes=_notes(index, k, total, len(hits), where, ()) if total else (),
        milliseconds=clock.taken,
    )


def regions_of(
    index: Index,
    picture: str | Path | IO[bytes] | npt.NDArray[np.uint8],
    *,
    max_pixels: int = MAX_PIXELS,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return a picture's regions, (1, n, d), and how many they are."""
    source = index.source
    if isinstance(picture, np.ndarray):
        if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8:
            raise InputError(f"query: got {picture.shape} {picture.dtype}, wanted (h, w, 3) uint8")
        import io

        from PIL import Image

        file = io.BytesIO()
        Image.fromarray(picture).save(file, "PNG")  # then it is read as any photograph is
        file.seek(0)
        photo = _read(index, file, max_pixels)
    else:
        photo = _read(index, picture, max_pixels)
    (found,) = source([photo], [PICTURE], lambda: None)
    return found.features[None], np.array([len(found.boxes)])


def _read(index: Index, file: str | Path | IO[bytes], max_pixels: int) -> Photo:
    source, extract = index.source, index.head.extract
    return read_photo(
        file,
        source.size,
        fit=str(extract.get("fit", "stretch")),
        multiple=source.multiple,
        max_pixels=max_pixels,
    )


def _sentences(
    index: Index,
    vector: Vectors,
    regions: npt.NDArray[np.float32],
    counts: npt.NDArray[np.int64],
    k: int,
    candidates: int,
) -> tuple[SentenceHit, ...]:
    """Return the best sentences for a picture's regions."""
    features = None
    if index.reranker is not None and len(index.tables.sentences):
        features = index.reranker.images(regions, counts)
    return best_sentences(index, vector, features, counts, k, candidates)


def best_sentences(
    index: Index,
    vector: Vectors,
    features: npt.NDArray[Any] | None,
    counts: npt.NDArray[np.int64],
    k: int,
    candidates: int = SENTENCES,
) -> tuple[SentenceHit, ...]:
    """Return the best sentences of the index for one image, in two stages as well.

    Args:
        index: the index.
        vector: (D,) of the image.
        features: (1, extra + k, width) what the re-ranker compares; None without one.
        counts: (1,) real regions.
        k: how many.
        candidates: how many are re-ranked.
    """
    table = index.tables.sentences
    if not len(table):
        return ()
    ranked = index.reranker is not None and features is not None
    uids, scores = table.search(vector, max(k, candidates) if ranked else k, None)
    entries = {entry.uid: entry for entry in table.get(uids.tolist())}
    if index.reranker is not None and features is not None:
        texts = [entries[uid].key for uid in uids.tolist()]
        scores = index.reranker.score(texts, features, np.zeros(1, np.int64), counts)[0]
    uids, scores = best(scores, uids, k)
    return tuple(
        SentenceHit(rank, float(score), entries[uid].key, uid, entries[uid].source)
        for rank, (uid, score) in enumerate(zip(uids.tolist(), scores, strict=True), 1)
    )


def hits_of(index: Index, uids: Uids, scores: Vectors) -> tuple[Hit, ...]:
    """Return what is shown of photographs; of one that has just been replaced, the newer."""
    entries = {entry.uid: entry for entry in index.tables.photos.get(uids.tolist())}
    hits: dict[str, Hit] = {}
    for uid, score in zip(uids.tolist(), scores, strict=True):
        entry = entries.get(uid)
        if entry is None or (entry.key in hits and hits[entry.key].uid > uid):
            continue
        hits[entry.key] = Hit(
            0,
            float(score),
            entry.key,
            uid,
            entry.tags,
            entry.width,
            entry.height,
            index.kept.regions(uid),
        )
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits.values(), 1))


def cosines(rows: Vectors, vector: Vectors) -> Vectors:
    """Return the cosines of (N, D) with (D,)."""
    with torch.inference_mode():
        both = torch.from_numpy(rows), torch.from_numpy(vector)[None]
        return torch.nn.functional.cosine_similarity(*both).numpy()


def _all(index: Index, where: Where | None) -> Uids:
    parts = index.tables.photos.every(where)
    return np.array([entry.uid for part in parts for entry in part], np.int64)


def require_filled(index: Index, k: int) -> int:
    """Return how many photographs there are, at least one."""
    require_whole("k", k)
    total = len(index)
    if not total:
        raise InputError(
            f"{index.folder}: holds no photograph yet; crossgaze index PHOTOS --into {index.folder}"
        )
    return total


def require_words(index: Index, query: str, *, exhaustive: bool) -> tuple[str, ...]:
    """Return the query's unknown words; refuse a query that holds nothing a model can read."""
    if not query.strip():
        raise InputError("query: is empty, wanted a sentence such as 'two dogs in the snow'")
    problem = sentence_problem(query)
    if problem is not None:
        raise InputError(f"query: {problem}")
    if len(query) > LONGEST:
        raise InputError(f"query: has {len(query):,} characters, {LONGEST:,} are the most")
    members = [] if exhaustive else list(index.embedder.members)
    members += index.reranker.members if index.reranker is not None else []
    if not any(sign.isalnum() for sign in query):
        raise InputError(f"query: {query!r} has no word in it")
    unknown, lost = unknown_words(members, query)
    if lost:
        raise InputError(
            f"query: the model knows none of its words ({', '.join(unknown)}); try other words"
        )
    return unknown


def _notes(
    index: Index, k: int, total: int, found: int, where: Where | None, unknown: tuple[str, ...]
) -> tuple[str, ...]:
    """Return what the user should be told."""
    notes = []
    if unknown:
        notes.append(f"words that the model does not know: {', '.join(unknown)}")
    if k > total:
        notes.append(f"{k} photographs were asked for, the index holds {total}")
    if found < min(k, total) and where:
        notes.append(f"{found} photographs pass the filter, {k} were asked for")
    return tuple(notes)
