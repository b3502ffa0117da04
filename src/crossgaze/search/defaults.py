"""The one place that says which models an index is made with when nobody named any."""

from __future__ import annotations

from crossgaze.errors import InputError

EMBEDDER: str | None = None  # what `crossgaze.load` takes; None until a model ships
RERANKER: str | None = None


def default_embedder() -> str:
    """Return the model that gives one vector a photograph."""
    if EMBEDDER is None:
        raise InputError(
            "no matching model ships with this crossgaze yet: name an embedding model that you "
            "trained or imported (vse++, vsrn, m-dan) with --embedder FOLDER, and a re-ranker "
            "(scan, bfan, mmca) with --reranker FOLDER"
        )
    return EMBEDDER


def default_reranker() -> str | None:
    """Return the model that re-ranks by cross attention, if one ships."""
    return RERANKER
