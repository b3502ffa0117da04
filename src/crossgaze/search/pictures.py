"""A picture as a query: its regions, what is near its vector, the best sentences for it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from crossgaze.errors import InputError
from crossgaze.search.engine import Vectors, all_of, best, together
from crossgaze.search.results import SentenceHit
from crossgaze.vision.photos import MAX_PIXELS, Photo, read_photo

if TYPE_CHECKING:
    from crossgaze.search.index import Index

SENTENCES = 200  # sentences that are re-ranked, each of which must be encoded again
PICTURE = "picture"


def regions_of(
    index: Index,
    picture: str | Path | IO[bytes] | npt.NDArray[np.uint8],
    *,
    max_pixels: int = MAX_PIXELS,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return a picture's regions, (1, n, d), and how many they are, (1,)."""
    source = index.source
    if isinstance(picture, np.ndarray):
        kind = picture.ndim == 3 and picture.shape[2] == 3 and picture.dtype == np.uint8
        if not kind or not picture.size:
            raise InputError(f"query: got {picture.shape} {picture.dtype}, wanted (h, w, 3) uint8")
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


def cosines(rows: Vectors, vector: Vectors) -> Vectors:
    """Return the cosine of each of (N, D) rows with a vector (D,)."""
    with torch.inference_mode():
        both = torch.from_numpy(rows), torch.from_numpy(vector)[None]
        return torch.nn.functional.cosine_similarity(*both).numpy()


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
    there = {entry.uid: entry for entry in table.get(uids.tolist())}
    entries = dict(zip(uids.tolist(), all_of(there, uids.tolist(), index.folder), strict=True))
    if index.reranker is not None and features is not None:
        texts = [entry.key for entry in entries.values()]
        second = index.reranker.score(texts, features, np.zeros(1, np.int64), counts)[0]
        scores = together(scores, second)
    uids, scores = best(scores, uids, k)
    return tuple(
        SentenceHit(rank, float(score), entries[uid].key, uid, entries[uid].source)
        for rank, (uid, score) in enumerate(zip(uids.tolist(), scores, strict=True), 1)
    )
