"""`index.json`: what an index was made with, written last when one is made.

An index is a folder of

- `index.json`: this;
- `database/`: LanceDB's files, or `milvus.db`; with a Milvus server, nothing;
- `regions-N/`: a region store of what the re-ranker compares, with boxes and words;
- `held.json`: how much it held when its last writer ended; see `crossgaze.search.damage`.

While it is made, or unmade, a marker lies beside them; see `crossgaze.search.places`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crossgaze import __version__
from crossgaze.config import build, to_dict
from crossgaze.data.textfiles import parse_head
from crossgaze.errors import FileFormatError, InputError, require_folder
from crossgaze.files import write_json
from crossgaze.search.models import Stamp

FORMAT, VERSION = "crossgaze-index", 1
FILE = "index.json"
HELD = "held.json"
STORE = re.compile(r"regions-[0-9]+")  # the name of a region store


@dataclass(frozen=True)
class Head:
    """What an index is.

    Args:
        id: its own, by which a Milvus collection is known to be its.
        engine: "lance", "milvus" (Milvus Lite's file) or a server's URL.
        name: how its collections' names begin.
        embedder: the model that gives vectors.
        reranker: the model that compares regions and words, if any.
        vector_width: numbers in a vector.
        extract: the settings by which photographs become regions.
        made_by: what decides those regions, as their source says.
        store: the folder of the region store.
        last_uid: the largest that `compact` has seen, so that none is ever given twice.
        crossgaze: the version that made it.
    """

    id: str
    engine: str
    name: str
    embedder: Stamp
    reranker: Stamp | None
    vector_width: int
    extract: Any
    made_by: Any
    store: str = "regions-1"
    last_uid: int = 0
    crossgaze: str = __version__

    def __post_init__(self) -> None:
        for name in ("extract", "made_by"):
            if not isinstance(getattr(self, name), Mapping):
                raise InputError(f"{name}: is not keys and values")
        if not STORE.fullmatch(self.store):
            raise InputError(f"store: is {self.store!r}, wanted regions- and a number")

    def with_store(self, store: str, last_uid: int) -> Head:
        """Return the head that names another region store."""
        return replace(self, store=store, last_uid=last_uid)


def write_head(folder: Path, head: Head) -> None:
    """Write `index.json`; the old or the new is there, whole."""
    write_json(folder / FILE, {"format": FORMAT, "version": VERSION, **to_dict(head)})


def read_head(folder: Path) -> Head:
    """Read and check `index.json`."""
    require_folder(folder, "an index")
    path = folder / FILE
    if not path.is_file():
        raise InputError(f"{folder}: is not an index, it has no {FILE}")
    try:
        raw = parse_head(path, "an index's head")
        found, version, by = raw.pop("format"), raw.pop("version"), raw.get("crossgaze")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileFormatError(path, f"does not read as an index's head: {error!r}") from None
    if found != FORMAT:
        raise FileFormatError(path, f"format is {found!r}, wanted {FORMAT!r}")
    if version != VERSION:
        raise FileFormatError(
            path,
            f"is version {version!r} of an index, made by crossgaze {by}; this crossgaze reads "
            f"version {VERSION}: index the photographs again into a new folder",
        )
    return build(Head, raw, source=str(path))
