"""The one place that says which models an index is made with when nobody named any."""

from __future__ import annotations

from pathlib import Path

from crossgaze.errors import InputError
from crossgaze.models import finding

# Names of folders in `crossgaze/zoo/`, also what `crossgaze.load` takes. Put there, they are used.
NAMES = {"embedder": "default-embedder", "reranker": "default"}


def default_embedder() -> Path:
    """Return the folder of the model that gives one vector a photograph."""
    found = _shipped("embedder")
    if found is None:
        raise InputError(
            "no matching model ships with this crossgaze yet: name an embedding model that you "
            "trained or imported (vse++, vsrn, m-dan) with --embedder FOLDER, and a re-ranker "
            "(scan, bfan, mmca) with --reranker FOLDER"
        )
    return found


def default_reranker() -> Path | None:
    """Return the folder of the model that re-ranks by cross attention, if one ships."""
    return _shipped("reranker")


def _shipped(role: str) -> Path | None:
    # By its folder: a folder of the user's with the same name is not what nobody asked for.
    name = NAMES[role]
    return finding.ZOO / name if name in finding.zoo_models() else None
