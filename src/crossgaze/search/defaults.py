"""The one place that says which models an index is made with when nobody named any."""

from __future__ import annotations

from pathlib import Path

from crossgaze.models import finding

# Names of folders in `crossgaze/zoo/`, also what `crossgaze.load` takes.
NAMES = {"embedder": "default-embedder", "reranker": "default"}


def default_model(role: str) -> Path:
    """Return the folder of the model that ships for a role: "embedder" or "reranker".

    By its folder: a folder of the user's with the same name is not what nobody asked for.
    """
    return finding.ZOO / NAMES[role]
