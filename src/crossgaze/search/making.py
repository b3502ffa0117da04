"""Making an index: its models, its head, its two tables and its region store, the head last."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crossgaze.config import to_dict
from crossgaze.errors import InputError
from crossgaze.files import LOCK, only_writer, sync_folder
from crossgaze.search.defaults import default_model
from crossgaze.search.engines import Tables, open_tables, parse_engine
from crossgaze.search.head import FILE, Head, write_head
from crossgaze.search.kept import open_writer
from crossgaze.search.milvus import MilvusEngine
from crossgaze.search.models import Embedder, Reranker, load_model
from crossgaze.search.places import begin_index, clear_leftovers, mark, require_new, unmark
from crossgaze.search.stamps import Model, made_by, open_source, share_loaded
from crossgaze.vision.settings import ExtractConfig
from crossgaze.vision.sources.base import RegionSource

if TYPE_CHECKING:
    from crossgaze.search.index import Index


def make_index(
    folder: Path,
    embedder: Model | None,
    reranker: Model | None,
    detector: str | ExtractConfig,
    engine: str,
    source: RegionSource | None,
) -> tuple[Path, Head, Tables, Embedder, Reranker | None, RegionSource]:
    """Make an empty index; see `crossgaze.search.index.Index.create`.

    Returns:
        What an `Index` is opened on: its folder, head, tables, models and source of regions.
    """
    engine, name = parse_engine(engine)
    require_new(folder)
    if embedder is None:
        embedder, reranker = default_model("embedder"), reranker or default_model("reranker")
    model, stamp = load_model(embedder)
    first = Embedder(model)
    second, second_stamp, models = None, None, [model]
    if reranker is not None:
        other, second_stamp = load_model(reranker)
        second = Reranker(other)
        models.append(other)
    share_loaded((embedder, reranker), *models)
    extract = detector if isinstance(detector, ExtractConfig) else ExtractConfig(detector=detector)
    if extract.boxes is not None:
        raise InputError("boxes: a file of boxes knows no new photograph, wanted a region model")
    source = source or open_source(extract)
    for role, one in (("embedder", first), ("reranker", second)):
        if one is not None and one.region_width != source.width:
            raise InputError(
                f"{role}: takes regions of width {one.region_width}, the detector's have "
                f"{source.width}; wanted a model trained on these regions"
            )
    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder, "this index"):
        head = Head(
            begin_index(folder),
            engine,
            name,
            stamp,
            second_stamp,
            first.width,
            to_dict(replace(extract, whole=extract.with_whole)),
            made_by(source),
        )
        tables = open_tables(folder, head, create=True)
        make_store(folder / head.store, head.id, source, second)
        write_head(folder, head)
        unmark(folder)
        sync_folder(folder.parent)
    return folder, head, tables, first, second, source


def make_store(folder: Path, index: str, source: RegionSource, reranker: Reranker | None) -> None:
    """Make the empty region store of an index.

    Args:
        folder: the store's.
        index: the index's id.
        source: what makes regions of photographs.
        reranker: what compares them with words, if anything does.
    """
    open_writer(
        folder,
        (reranker.extra if reranker else 0) + source.regions,
        reranker.width if reranker else 1,
        source.fields,
        source.labels,
        {"index": index},
    ).close()


def unmake_index(index: Index) -> None:
    """Remove an index that was just made and into which nothing came; it is closed then.

    Nothing is removed of one that holds a photograph or a sentence.
    """
    with only_writer(index.folder, "this index"):
        index.refresh()
        if len(index) or len(index.tables.sentences):
            return
        mark(index.folder, index.head.id)  # so that what a kill leaves of it can be cleared
        (index.folder / FILE).unlink()  # now: without it there is no index, whatever is left
        for table in (index.tables.photos, index.tables.sentences):
            if isinstance(table, MilvusEngine):
                table.drop()
        index.close()
        clear_leftovers(index.folder)
        unmark(index.folder)
        (index.folder / LOCK).unlink(missing_ok=True)
    with suppress(OSError):  # somebody else's file lies in it by now
        index.folder.rmdir()
