"""The demonstration's index: kept from run to run, and made anew once the models are others."""

from __future__ import annotations

from pathlib import Path

from crossgaze.files import only_writer
from crossgaze.search.defaults import default_model
from crossgaze.search.engines import open_tables
from crossgaze.search.head import FILE, Head, read_head
from crossgaze.search.index import Index
from crossgaze.search.models import load_model
from crossgaze.search.places import clear_leftovers, mark, unmark
from crossgaze.search.stamps import Model, made_by, open_source
from crossgaze.vision.settings import ExtractConfig
from crossgaze.vision.sources.base import RegionSource


def open_index(
    place: Path,
    photos: Path,
    embedder: Model | None = None,
    reranker: Model | None = None,
    source: RegionSource | None = None,
) -> Index:
    """Open the demonstration's index, or make it where there is none or it is of other models.

    An index that holds anything but the demonstration's photographs is somebody's: it is opened as
    any index, which refuses other models, and never removed.

    Args:
        place: the index.
        photos: the demonstration's photographs.
        embedder: instead of the one that ships.
        reranker: likewise; with an embedder of one's own there is none if not given.
        source: what makes regions, instead of the region model that ships.
    """
    if embedder is None:
        embedder, reranker = default_model("embedder"), reranker or default_model("reranker")
    source = source or open_source(ExtractConfig())
    if (place / FILE).is_file():
        head = read_head(place)
        first, stamp = load_model(embedder)
        second, other = (None, None) if reranker is None else load_model(reranker)
        digests = [one and one.digest for one in (stamp, other, head.embedder, head.reranker)]
        if (digests[:2] == digests[2:] and head.made_by == made_by(source)) or not _is_own(
            place, head, photos
        ):
            return Index.open(place, embedder=first, reranker=second, source=source)
        _remove(place, head)
    # By name, not as they were loaded: the index says where they lie.
    return Index.create(place, embedder=embedder, reranker=reranker, source=source)


def _is_own(place: Path, head: Head, photos: Path) -> bool:
    """Tell whether an index holds photographs of the demonstration and nothing else."""
    if head.engine != "lance":
        return False
    tables, folder = open_tables(place, head), photos.resolve()
    try:
        keys = [entry.key for part in tables.photos.every() for entry in part]
        return not len(tables.sentences) and all(Path(key).parent == folder for key in keys)
    finally:
        tables.close()


def _remove(place: Path, head: Head) -> None:
    """Remove an index, and no file that is none of its own; a stopped removal is ended later."""
    with only_writer(place, "this index"):
        mark(place, head.id)
        (place / FILE).unlink()
        clear_leftovers(place)
        unmark(place)
