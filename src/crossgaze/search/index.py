"""An index of photographs: made, opened, added to and searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from crossgaze.config import build, to_dict
from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import FileFormatError, InputError, require_path
from crossgaze.files import bytes_in, only_writer
from crossgaze.search.engines import Tables, find_folder, open_tables
from crossgaze.search.filters import Where, require_uids, require_where
from crossgaze.search.head import FILE, Head, read_head
from crossgaze.search.kept import KeptRegions
from crossgaze.search.models import Embedder, Reranker
from crossgaze.search.report import IndexReport, join_reports
from crossgaze.search.results import Found, Hit, Look
from crossgaze.search.stamps import (
    Model,
    load_pair,
    open_source,
    require_same_source,
)
from crossgaze.vision.settings import ExtractConfig
from crossgaze.vision.sources.base import RegionSource

if TYPE_CHECKING:
    from crossgaze.search.ranking import RankBy


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
        from crossgaze.search.making import make_index

        folder = require_path("index", path)
        made = make_index(folder, embedder, reranker, detector, engine, source)
        return cls(*made)

    @classmethod
    def open(
        cls,
        path_or_url: str | Path,
        *,
        embedder: Model | None = None,
        reranker: Model | None = None,
        source: RegionSource | None = None,
        exact: int | None = None,
    ) -> Index:
        """Open an index.

        Args:
            path_or_url: its folder, or "http://host:19530/name" of its Milvus.
            embedder: the model it was made with, where that now lies elsewhere.
            reranker: likewise.
            source: a loaded source of regions, the one it was made with.
            exact: entries up to which LanceDB's engine looks at every vector; by default as many as
                fit into some 660 MB, 250,000 with vectors of 512.
        """
        folder = find_folder(path_or_url)
        head = read_head(folder)
        model, other = load_pair(folder, head, embedder, reranker)
        first, second = Embedder(model), Reranker(other) if other is not None else None
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
        return self._kept if self._kept is not None else self.reopen_kept()

    def reopen_kept(self) -> KeptRegions:
        """Open the kept regions anew, with what has been added meanwhile."""
        extra = self.reranker.extra if self.reranker else 0
        try:
            kept = KeptRegions(self.folder / self.head.store, extra)
        except (InputError, OSError):
            head = read_head(self.folder)
            if head.store == self.head.store:
                raise
            self.head = head  # another process has compacted the index meanwhile
            kept = KeptRegions(self.folder / head.store, extra)
        self._kept = kept
        return kept

    @property
    def source(self) -> RegionSource:
        """What makes regions of photographs, loaded when first wanted."""
        if self._source is None:
            where = str(self.folder / FILE)
            self._source = open_source(build(ExtractConfig, self.head.extract, source=where))
        require_same_source(self.folder, self.head, self._source)
        return self._source

    def refresh(self) -> None:
        """See what other processes have added or removed."""
        self.head = read_head(self.folder)
        self.tables.photos.refresh()
        self.tables.sentences.refresh()
        # A service over Milvus looks every few seconds, and opening reads every photograph's id.
        if self._kept is not None and not self._is_current(self._kept):
            self._kept = None

    def _is_current(self, kept: KeptRegions) -> bool:
        return kept.folder == self.folder / self.head.store and kept.current

    def describe(self) -> dict[str, Any]:
        """Return what a table or JSON shows of the index."""
        from crossgaze.search.damage import require_held

        require_held(self.folder, self.tables)
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
            "bytes": bytes_in(self.folder),
        }

    # Writing ----------------------------------------------------------------------------------

    @contextmanager
    def writing(self, *, remake: bool = False) -> Iterator[None]:
        """Be the only writer for the block, with whatever a stopped one left repaired.

        An index that is damaged is refused before anything is changed.

        Args:
            remake: whether the block makes regions for photographs that have none, so that a region
                store that was taken away is begun anew.
        """
        from crossgaze.search.damage import (
            forget_held,
            note_held,
            require_held,
            require_sound_regions,
        )
        from crossgaze.search.repair import repair

        with only_writer(self.folder, "this index"):
            self.refresh()
            require_held(self.folder, self.tables)
            require_sound_regions(self, remake=remake)
            forget_held(self.folder)
            repair(self)
            try:
                yield
            except InputError:
                with suppress(Exception):  # the first error is the one to tell
                    note_held(self.folder, self.tables)
                raise
            finally:
                self._kept = None
            note_held(self.folder, self.tables)

    def add(
        self,
        photos: str | Path | Sequence[str | Path],
        *,
        tags: Sequence[str] = (),
        store: str | Path | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> IndexReport:
        """Bring the index up to date with a folder, or one photograph, or several of them.

        Only what is new or changed is looked at; what is gone from the folder goes from the index.

        Args:
            photos: the folder; several are taken one after the other.
            tags: words to give to every photograph in it.
            store: a region store that `extract` made of the same folder with the index's settings:
                regions of photographs that it holds unchanged are taken from there.
            on_progress: called with (photographs read, photographs to do): with 0 at first, then
                after every few, and with all of them once all have been acknowledged.
        """
        from crossgaze.search.adding import bring_up_to_date
        from crossgaze.search.planning import left_behind, paths_of

        reports, paths = [], paths_of(photos)
        known = None if store is None else RegionStore(require_path("store", store))
        with self.writing(remake=True):
            for path in paths:
                try:
                    report = bring_up_to_date(
                        self, path, tags=tags, store=known, on_progress=on_progress
                    )
                except InputError as error:
                    if not (stays := left_behind(self, path)):
                        raise
                    raise InputError(f"{error}{stays}") from None
                reports.append(report)
        return join_reports(reports)

    def add_sentences(self, file: str | Path) -> IndexReport:
        """Bring the index up to date with a text file, one sentence a line."""
        from crossgaze.search.sentences import bring_sentences

        path = require_path("sentences", file)
        with self.writing():
            return bring_sentences(self, path)

    def forget_sentences(self, file: str | Path) -> int:
        """Take out the sentences of a file, also of one that is gone; returns how many went.

        Those that another file gave, too, stay.
        """
        from crossgaze.search.sentences import forget_sentences

        path = require_path("sentences", file)
        with self.writing():
            return forget_sentences(self, path)

    def remove(self, where: Where | Sequence[int]) -> int:
        """Remove photographs by filter or uid; returns how many."""
        wanted = [] if isinstance(where, Where) else require_uids(where)
        if isinstance(where, Where) and not where:
            raise InputError("where: is empty and would remove everything")
        with self.writing():
            photos = self.tables.photos
            if isinstance(where, Where):
                uids = [entry.uid for part in photos.every(where) for entry in part]
            else:
                uids = [entry.uid for entry in photos.get(wanted)]
            photos.delete(uids)
            photos.tidy("after" if uids else "unchanged")
            return len(uids)

    def compact(self) -> int:
        """Give back the room of regions that nothing refers to; returns how many there were."""
        from crossgaze.search.compacting import compact

        with self.writing():
            return compact(self)

    def watch(
        self,
        photos: str | Path | Sequence[str | Path],
        *,
        every: float = 5.0,
        tags: Sequence[str] = (),
        stop: Callable[[], bool] = lambda: False,
        on_trouble: Callable[[str], None] = lambda line: None,
    ) -> Iterator[IndexReport]:
        """Bring the index up to date every few seconds; see `crossgaze.search.watching`."""
        from crossgaze.search.watching import watch

        return watch(self, photos, every=every, tags=tags, stop=stop, on_trouble=on_trouble)

    # Searching --------------------------------------------------------------------------------

    def search(
        self,
        query: str | Path | npt.NDArray[np.uint8],
        k: int = 10,
        *,
        where: Where | None = None,
        candidates: int | None = None,
        exhaustive: bool = False,
        rank_by: RankBy = "both",
    ) -> Found:
        """Find the best photographs for a sentence, or those like a picture.

        Args:
            query: a sentence (text); or a picture: a Path, or (h, w, 3) pixels.
            k: how many to return.
            where: which photographs may be returned.
            candidates: how many the vectors choose for the re-ranker.
            exhaustive: re-rank every photograph.
            rank_by: for a sentence, "both" for the mean of the embedder's and the re-ranker's
                similarity, "reranker" for the latter alone.
        """
        from crossgaze.search.ranking import find_like, find_photos

        require_where(where)
        if isinstance(query, str):
            return find_photos(
                self,
                query,
                k,
                where=where,
                candidates=candidates,
                exhaustive=exhaustive,
                rank_by=rank_by,
            )
        if not isinstance(query, Path | np.ndarray) and not hasattr(query, "read"):
            raise InputError(
                f"query: got {type(query).__name__}, wanted a sentence, a picture's Path or its "
                "(h, w, 3) pixels, such as np.asarray(image.convert('RGB'))"
            )
        if rank_by != "both":
            raise InputError("rank_by: is for a sentence, pictures are compared by vectors")
        if exhaustive:
            raise InputError("exhaustive: is for a sentence, pictures are compared by vectors")
        return find_like(self, query, k, where=where, candidates=candidates)

    def look(self, query: str, hit: Hit) -> tuple[Look, ...]:
        """Return where each word of a sentence looked in a photograph that was found."""
        from crossgaze.search.looking import look_at

        return look_at(self, query, hit)
