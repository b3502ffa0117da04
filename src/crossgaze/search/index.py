"""An index of photographs: made, opened, added to and searched."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crossgaze.config import build, to_dict
from crossgaze.errors import FileFormatError, InputError
from crossgaze.files import only_writer, sync_folder
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.matcher import Matcher
from crossgaze.search.defaults import default_embedder, default_reranker
from crossgaze.search.engines import Tables, find_folder, open_tables, parse_engine
from crossgaze.search.filters import Where
from crossgaze.search.head import FILE, Head, clear_leftovers, read_head, require_new, write_head
from crossgaze.search.kept import KeptRegions, copy_kept, open_writer
from crossgaze.search.lance import EXACT
from crossgaze.search.models import Embedder, Reranker, Stamp, load_model
from crossgaze.search.report import IndexReport
from crossgaze.search.results import Found, Hit, Look
from crossgaze.vision.settings import ExtractConfig
from crossgaze.vision.sources.base import RegionSource
from crossgaze.vision.sources.making import find_device, make_source

Model = str | Path | Matcher | Ensemble


class Index:
    """Photographs, and perhaps sentences, to be searched by sentence or by picture.

    `Index.create` makes one, `Index.open` opens one. One process writes at a time; any number may
    search, each seeing what was acknowledged when it opened the index or called `refresh`.

    Example:
        ```python
        index = Index.create("index/", embedder="vsrn/", reranker="scan/")
        index.add("photos/")
        for hit in index.search("two dogs playing in the snow", k=10).hits:
            print(hit.rank, hit.path, hit.score)
        ```
    """

    def __init__(
        self,
        folder: Path,
        head: Head,
        tables: Tables,
        embedder: Embedder,
        reranker: Reranker | None,
        source: RegionSource | None = None,
    ) -> None:
        self.folder, self.head, self.tables = folder, head, tables
        self.embedder, self.reranker = embedder, reranker
        self._source = source
        self._kept: KeptRegions | None = None

    # Making and opening -----------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        embedder: Model | None = None,
        reranker: Model | None = None,
        detector: str | ExtractConfig = "objects",
        engine: str = "lance",
        source: RegionSource | None = None,
    ) -> Index:
        """Make an empty index.

        Args:
            path: a new or empty folder.
            embedder: gives one vector a photograph; the default model if not given.
            reranker: compares regions with words; without one, vectors alone decide.
            detector: the region model, "objects" or a folder; or how else regions are made.
            engine: "lance"; "milvus" for Milvus Lite's file; "http://host:19530/name".
            source: a loaded source of regions instead of what `detector` names.
        """
        folder = Path(path)
        engine, name = parse_engine(engine)
        require_new(folder)
        if embedder is None:
            embedder, reranker = default_embedder(), reranker or default_reranker()
        model, stamp = load_model(embedder)
        first = Embedder(model)
        second, second_stamp = None, None
        if reranker is not None:
            model, second_stamp = load_model(reranker)
            second = Reranker(model)
        extract = (
            detector if isinstance(detector, ExtractConfig) else ExtractConfig(detector=detector)
        )
        if extract.boxes is not None:
            raise InputError(
                "boxes: a file of boxes knows no new photograph, wanted a region model"
            )
        source = source or _make_source(extract)
        for role, one in (("embedder", first), ("reranker", second)):
            if one is not None and one.region_width != source.width:
                raise InputError(
                    f"{role}: takes regions of width {one.region_width}, the detector's have "
                    f"{source.width}; wanted a model trained on these regions"
                )
        head = Head(
            uuid.uuid4().hex,
            engine,
            name,
            stamp,
            second_stamp,
            first.width,
            to_dict(extract),
            _plain(dict(source.made_by)),
        )
        folder.mkdir(parents=True, exist_ok=True)
        with only_writer(folder, "this index"):
            clear_leftovers(folder)
            tables = open_tables(folder, head, create=True)
            extra = second.extra if second else 0
            open_writer(
                folder / head.store,
                extra + source.regions,
                second.width if second else 1,
                source.fields,
                source.labels,
                {"index": head.id},
            ).close()
            write_head(folder, head)
            sync_folder(folder.parent)
        return cls(folder, head, tables, first, second, source)

    @classmethod
    def open(
        cls,
        path_or_url: str | Path,
        *,
        embedder: Model | None = None,
        reranker: Model | None = None,
        source: RegionSource | None = None,
        exact: int = EXACT,
    ) -> Index:
        """Open an index.

        Args:
            path_or_url: its folder, or "http://host:19530/name" of its Milvus.
            embedder: the model it was made with, where that now lies elsewhere.
            reranker: likewise.
            source: a loaded source of regions, the one it was made with.
            exact: entries up to which LanceDB's engine looks at every vector.
        """
        folder = find_folder(path_or_url)
        head = read_head(folder)
        first = Embedder(_load(folder, "embedder", head.embedder, embedder))
        second = None
        if head.reranker is not None:
            second = Reranker(_load(folder, "reranker", head.reranker, reranker))
        elif reranker is not None:
            raise InputError(f"{folder}: was made without a reranker; index again to have one")
        if first.width != head.vector_width:
            raise FileFormatError(folder / FILE, f"says vectors have {head.vector_width} numbers")
        return cls(folder, head, open_tables(folder, head, exact=exact), first, second, source)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of files and connections."""
        self._kept = None
        self.tables.close()

    def __len__(self) -> int:
        return len(self.tables.photos)

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r}: {len(self):,} photographs, {self.head.engine})"

    # What it holds ----------------------------------------------------------------------------

    @property
    def kept(self) -> KeptRegions:
        """The kept regions, opened when first wanted."""
        if self._kept is None:
            extra = self.reranker.extra if self.reranker else 0
            self._kept = KeptRegions(self.folder / self.head.store, extra)
        return self._kept

    @property
    def source(self) -> RegionSource:
        """What makes regions of photographs, loaded when first wanted."""
        if self._source is None:
            where = str(self.folder / FILE)
            self._source = _make_source(build(ExtractConfig, self.head.extract, source=where))
        made_by = _plain(dict(self._source.made_by))
        for what in sorted({*made_by, *self.head.made_by}):
            if made_by.get(what) != self.head.made_by.get(what):
                raise InputError(
                    f"{self.folder}: its regions were made with {what} = "
                    f"{self.head.made_by.get(what)!r}, now it is {made_by.get(what)!r}; index the "
                    "photographs again into a new folder"
                )
        return self._source

    def refresh(self) -> None:
        """See what other processes have added or removed."""
        self.head = read_head(self.folder)
        self.tables.photos.refresh()
        self.tables.sentences.refresh()
        self._kept = None

    def describe(self) -> dict[str, Any]:
        """Return what a table or JSON shows of the index."""
        photos = len(self)
        return {
            "folder": str(self.folder),
            "photographs": photos,
            "sentences": len(self.tables.sentences),
            "engine": self.head.engine,
            "embedder": to_dict(self.head.embedder),
            "reranker": None if self.head.reranker is None else to_dict(self.head.reranker),
            "vector_width": self.head.vector_width,
            "regions": f"{self.kept.features.shape[1]} x {self.kept.features.shape[2]}",
            "unused_regions": len(self.kept) - photos,
            "bytes": sum(p.stat().st_size for p in self.folder.rglob("*") if p.is_file()),
        }

    # Writing ----------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer for the block, with whatever a stopped one left repaired."""
        from crossgaze.search.repair import repair

        with only_writer(self.folder, "this index"):
            self.refresh()
            repair(self)
            try:
                yield
            finally:
                self._kept = None

    def add(
        self,
        photos: str | Path,
        *,
        tags: Sequence[str] = (),
        on_progress: Callable[[int, int], None] | None = None,
    ) -> IndexReport:
        """Bring the index up to date with a folder, or one photograph.

        Only what is new or changed is looked at; what is gone from the folder goes from the index.

        Args:
            photos: the folder.
            tags: words to give to every photograph in it.
            on_progress: called with (photographs acknowledged, photographs to do).
        """
        from crossgaze.search.adding import bring_up_to_date

        with self.writing():
            return bring_up_to_date(self, photos, tags=tags, on_progress=on_progress)

    def add_sentences(self, file: str | Path) -> IndexReport:
        """Bring the index up to date with a text file, one sentence a line."""
        from crossgaze.search.sentences import bring_sentences

        with self.writing():
            return bring_sentences(self, file)

    def remove(self, where: Where | Sequence[int]) -> int:
        """Remove photographs by filter or uid; returns how many."""
        with self.writing():
            photos = self.tables.photos
            if isinstance(where, Where):
                if not where:
                    raise InputError("where: is empty and would remove everything")
                uids = [entry.uid for part in photos.every(where) for entry in part]
            else:
                uids = [entry.uid for entry in photos.get([int(uid) for uid in where])]
            photos.delete(uids)
            return len(uids)

    def compact(self) -> int:
        """Give back the room of regions that nothing refers to; returns how many there were."""
        with self.writing():
            uids = np.array([e.uid for part in self.tables.photos.every() for e in part], np.int64)
            unused = len(self.kept) - len(uids)
            if unused:
                store = f"regions-{int(self.head.store[8:]) + 1}"
                copy_kept(self.kept, uids, self.folder / store)
                old, self.head = self.head.store, self.head.with_store(store)
                write_head(self.folder, self.head)
                shutil.rmtree(self.folder / old, ignore_errors=True)
            self.tables.photos.tidy()
            self.tables.sentences.tidy()
            return unused

    def watch(self, photos: str | Path, *, every: float = 5.0, **how: Any) -> Iterator[IndexReport]:  # noqa: ANN401
        """Bring the index up to date again and again, giving each report that says something."""
        from crossgaze.search.watching import watch

        return watch(self, photos, every=every, **how)

    # Searching --------------------------------------------------------------------------------

    def search(
        self,
        query: str | Path | npt.NDArray[np.uint8],
        k: int = 10,
        *,
        where: Where | None = None,
        candidates: int | None = None,
        exhaustive: bool = False,
    ) -> Found:
        """Find the best photographs for a sentence, or those like a picture.

        Args:
            query: a sentence (text); or a picture: a Path, or (h, w, 3) pixels.
            k: how many to return.
            where: which photographs may be returned.
            candidates: how many the vectors choose for the re-ranker; a measured default.
            exhaustive: re-rank every photograph.
        """
        from crossgaze.search.ranking import find_like, find_photos

        if isinstance(query, str):
            return find_photos(
                self, query, k, where=where, candidates=candidates, exhaustive=exhaustive
            )
        return find_like(self, query, k, where=where, candidates=candidates)

    def look(self, query: str, hit: Hit) -> tuple[Look, ...]:
        """Return where each word of a sentence looked in a photograph that was found."""
        if self.reranker is None:
            return ()
        (row,) = self.kept.rows([hit.uid])
        count = int(self.kept.counts[row])
        words, weights = self.reranker.attention(query, self.kept.features[row], count)
        return tuple(
            Look(word, tuple(map(float, row)), int(row.argmax()))
            for word, row in zip(words, weights, strict=True)
        )


def _load(folder: Path, role: str, stamp: Stamp, given: Model | None) -> Matcher | Ensemble:
    """Load one of an index's models and make sure that it is the one."""
    if given is None and not stamp.source:
        raise InputError(f"{folder}: was made with a {role} that had no folder, give it again")
    try:
        model, found = load_model(stamp.source if given is None else given)
    except InputError as error:
        raise InputError(
            f"{folder}: its {role} cannot be loaded ({error}); put the model back, or name where "
            f"it is now with --{role}"
        ) from None
    if found.digest != stamp.digest:
        raise InputError(
            f"{folder}: was made with the {role} {stamp.family} {stamp.digest} ({stamp.source}), "
            f"{found.source or 'the given one'} is {found.family} {found.digest}; take the first, "
            "or index the photographs again into a new folder"
        )
    return model


def _make_source(extract: ExtractConfig) -> RegionSource:
    return make_source(extract, find_device(extract.device))


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """Return values as JSON reads them back."""
    import json

    return dict(json.loads(json.dumps(value)))
