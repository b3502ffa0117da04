"""The index as the service uses it: one thread asks it, and what it said is remembered.

Everything here but `card` and `entry_if_known` runs in the models' lane, a single thread: engines
and kept regions are not made for several. What another process (or the job that adds a folder)
writes is seen by the dates of the index's files, before the next thing that is asked.
"""

from __future__ import annotations

import io
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from crossgaze.errors import FileFormatError, InputError
from crossgaze.explain.naming import spoken, sure_names
from crossgaze.search.engine import Uids, Vectors
from crossgaze.search.entries import Entry
from crossgaze.search.filters import Where
from crossgaze.search.head import FILE
from crossgaze.search.index import Index
from crossgaze.search.paging import (
    Block,
    Query,
    candidates,
    rank_part,
    read_photograph,
    read_picture,
    read_sentence,
    sentences_for,
)
from crossgaze.search.ranking import CANDIDATES
from crossgaze.search.results import Region
from crossgaze.web.metrics import Metrics
from crossgaze.web.problems import RequestError
from crossgaze.web.recent import Recent
from crossgaze.web.schemas import Hit, Photograph, Sentence

SHOWS = 3  # regions that are named of a photograph in a list
SENTENCES = 5
TAGS = 40
REMOTE = 5.0  # seconds that an index in a Milvus is taken to be as it was


@dataclass(frozen=True)
class Wanted:
    """What is searched for.

    Args:
        kind: "sentence", "picture" (one that was sent) or "like" (a photograph of the index).
        value: the sentence, the picture's handle, or the photograph's id.
        where: the filter.
    """

    kind: str
    value: str | int
    where: Where


@dataclass(frozen=True, eq=False)
class Begun:
    """A search of which at least the candidates are there.

    Args:
        query: as it was read.
        block: as far as it is ranked.
        generation: of the index that the candidates are from.
    """

    query: Query
    block: Block
    generation: int


class Library:
    """An index that is being served.

    Args:
        index: open.
        metrics: where steps are counted.
    """

    def __init__(self, index: Index, metrics: Metrics) -> None:
        self.index, self.metrics = index, metrics
        self.generation = 0
        self._seen = self._stamp()
        self._queries: Recent[str, Query] = Recent(256)
        self._pictures: Recent[str, Query] = Recent(64)
        self._blocks: Recent[tuple[Wanted, int], Block] = Recent(256)
        self._lists: Recent[Where, Uids] = Recent(8)
        self._entries: Recent[int, Entry] = Recent(20_000)
        self._cards: Recent[int, Photograph] = Recent(20_000)
        self._tags: tuple[str, ...] | None = None
        self.photographs, self.sentences = len(index), len(index.tables.sentences)

    # What is new ------------------------------------------------------------------------------

    def _stamp(self) -> tuple[int, ...]:
        """Return what changes whenever somebody has written to the index."""
        folder = self.index.folder
        places = [folder / FILE, folder / "milvus.db"]
        places += [
            folder / "database" / f"{name}.lance/_versions" for name in ("photos", "sentences")
        ]
        found = [path.stat().st_mtime_ns if path.exists() else 0 for path in places]
        # A server's collections have no date here: what is remembered of them is so for a while.
        remote = self.index.head.engine != "lance"
        return (*found, int(time.monotonic() // REMOTE)) if remote else tuple(found)

    def see(self) -> None:
        """See what has been written since."""
        if (stamp := self._stamp()) != self._seen:
            self.refresh()
            self._seen = stamp

    def refresh(self) -> None:
        """Read the index again and forget what was remembered of it."""
        self.index.refresh()
        self.generation += 1
        for kept in (self._blocks, self._lists, self._entries, self._cards):
            kept.clear()
        self._tags = None
        self.photographs, self.sentences = len(self.index), len(self.index.tables.sentences)

    # Searching --------------------------------------------------------------------------------

    def keep_picture(self, data: bytes, max_pixels: int) -> str:
        """Read a picture and remember it by a handle."""
        self.see()
        started = time.perf_counter()
        query = read_picture(self.index, io.BytesIO(data), max_pixels=max_pixels)
        handle = secrets.token_urlsafe(12)
        self._pictures.put(handle, query)
        self.metrics.step("picture", time.perf_counter() - started)
        return handle

    def begin(self, wanted: Wanted, offset: int) -> Begun:
        """Return the candidates of the block that a page lies in, or the block's exact order."""
        self.see()
        started = time.perf_counter()
        query = self._query(wanted)
        number = offset // CANDIDATES
        block = self._blocks.get((wanted, number))
        if block is None:
            block = candidates(self.index, query, number, wanted.where or None)
        self.metrics.step("candidates", time.perf_counter() - started)
        return Begun(query, block, self.generation)

    def go_on(self, wanted: Wanted, begun: Begun) -> Begun:
        """Put some more of a block into the exact order."""
        started, generation = time.perf_counter(), begun.generation
        try:
            block = rank_part(self.index, begun.query, begun.block)
        except FileFormatError:
            # Another process has removed photographs or compacted the index meanwhile: the
            # re-ranker misses regions, a picture's comparison vectors, LanceDB perhaps a file.
            self.refresh()
            generation = self.generation
            first = begun.block.first // CANDIDATES
            block = candidates(self.index, begun.query, first, wanted.where or None)
            block = rank_part(self.index, begun.query, block)
        # Somebody else's request may have read the index again between two steps of this one.
        if block.done and generation == self.generation:
            self._blocks.put((wanted, block.first // CANDIDATES), block)
        self.metrics.step("rank", time.perf_counter() - started)
        return Begun(begun.query, block, generation)

    def _query(self, wanted: Wanted) -> Query:
        if wanted.kind == "like":
            return read_photograph(self.index, self.entry(int(wanted.value)).uid)
        text = str(wanted.value)
        if wanted.kind == "picture":
            picture = self._pictures.get(text)
            if picture is None:
                raise RequestError(410, "this picture is no longer known here; send it again")
            return picture
        query = self._queries.get(text)
        if query is None:
            query = read_sentence(self.index, text)
            self._queries.put(text, query)
        return query

    def hits(self, uids: Uids, scores: Vectors, first: int) -> tuple[Hit, ...]:
        """Return what a page shows; of a photograph that is just being replaced, once."""
        cards = self.cards(uids.tolist())
        replaced = self._replaced(cards)
        found = []
        for place, (uid, score) in enumerate(zip(uids.tolist(), scores.tolist(), strict=True)):
            if uid in cards and uid not in replaced:
                found.append(Hit(**dict(cards[uid]), rank=first + place + 1, score=round(score, 5)))
        return tuple(found)

    def _replaced(self, cards: dict[int, Photograph]) -> set[int]:
        """Return those of a page that a newer entry of the same photograph replaces."""
        names = Counter(card.name for card in cards.values())
        same = [uid for uid, card in cards.items() if names[card.name] > 1]
        if not same:
            return set()
        # The same name may also be that of two photographs, in two folders.
        entries = self.index.tables.photos.get(same)
        newest = {entry.key: entry.uid for entry in sorted(entries, key=lambda one: one.uid)}
        return {entry.uid for entry in entries if newest[entry.key] != entry.uid}

    # Photographs ------------------------------------------------------------------------------

    def newest(self, where: Where) -> Uids:
        """Return all photographs that a filter admits, those taken last first."""
        self.see()
        found = self._lists.get(where)
        if found is None:
            parts = self.index.tables.photos.every(where or None)
            pairs = [(entry.taken, entry.uid) for part in parts for entry in part]
            pairs.sort(key=lambda pair: (-pair[0], pair[1]))
            found = np.array([uid for _, uid in pairs], np.int64)
            self._lists.put(where, found)
        return found

    def cards(self, uids: Sequence[int]) -> dict[int, Photograph]:
        """Return what a list shows of photographs, by id and in that order, without those gone."""
        found = {uid: card for uid in uids if (card := self._cards.get(uid)) is not None}
        missing = [uid for uid in uids if uid not in found]
        for entry in self.index.tables.photos.get(missing) if missing else ():
            card = found[entry.uid] = self._card(entry)
            self._cards.put(entry.uid, card)
            self._entries.put(entry.uid, entry)
        # In the order that was asked for: what was kept from before comes no sooner.
        return {uid: found[uid] for uid in uids if uid in found}

    def _card(self, entry: Entry) -> Photograph:
        regions = sorted(self.regions(entry.uid), key=lambda one: -one.confidence)
        named = (spoken(one.noun, one.attribute) for one in regions if one.noun)
        return Photograph(
            id=entry.uid,
            name=shown_name(entry),
            width=entry.width,
            height=entry.height,
            version=entry.digest[:16],
            shows=tuple(dict.fromkeys(named))[:SHOWS],
            tags=entry.tags,
        )

    def entry_if_known(self, uid: int) -> Entry | None:
        """Return an entry that some list has shown, unless it may be gone; from any thread."""
        return self._entries.get(uid) if self._stamp() == self._seen else None

    def entry(self, uid: int) -> Entry:
        """Return an entry, or say that there is none."""
        self.see()
        found = self.index.tables.photos.get([uid])
        if not found:
            raise RequestError(404, f"photograph {uid} is not in the index")
        self._entries.put(uid, found[0])
        return found[0]

    def regions(self, uid: int) -> tuple[Region, ...]:
        """Return where the regions of a photograph are, with the names that are sure."""
        kept = self.index.kept
        if not (regions := kept.regions(uid)):
            return ()
        (row,) = kept.rows([uid])
        real = slice(kept.extra, kept.extra + len(regions))
        sure = [
            [None] * len(regions) if given is None else given[row, real].tolist()
            for given in map(kept.store.field, ("class_confidence", "attribute_confidence"))
        ]
        named = []
        for one, *how in zip(regions, *sure, strict=True):
            noun, attribute = sure_names(one.noun, one.attribute, *how)
            named.append(replace(one, noun=noun, attribute=attribute))
        return tuple(named)

    def sentences_of(self, uid: int) -> tuple[Sentence, ...]:
        """Return the best sentences of the index for a photograph of it."""
        return self.sentences_like(read_photograph(self.index, self.entry(uid).uid))

    def sentences_like(self, query: Query) -> tuple[Sentence, ...]:
        """Return the best sentences of the index for a picture that was read."""
        if not self.sentences:
            return ()
        found = sentences_for(self.index, query, SENTENCES)
        return tuple(Sentence(text=one.text, score=round(one.score, 5)) for one in found)

    def tags(self) -> tuple[str, ...]:
        """Return the most frequent tags."""
        self.see()
        if self._tags is None:
            counts: dict[str, int] = {}
            for part in self.index.tables.photos.every():
                for tag in (tag for entry in part for tag in entry.tags):
                    counts[tag] = counts.get(tag, 0) + 1
            self._tags = tuple(sorted(counts, key=lambda tag: (-counts[tag], tag))[:TAGS])
        return self._tags


def shown_name(entry: Entry) -> str:
    """Return a photograph's path inside the folder that was indexed.

    Example:
        >>> shown_name(Entry(1, "/home/me/photos/2024/a.jpg", "/home/me/photos"))
        '2024/a.jpg'
    """
    with suppress(ValueError):
        return str(Path(entry.key).relative_to(entry.source))
    return entry.key


def filter_of(
    path: str | None,
    since: str | None,
    until: str | None,
    larger: str | None,
    smaller: str | None,
    tags: Sequence[str],
) -> Where:
    """Return a filter from a request's texts; an empty one is as if it had not been given."""
    if path is not None and not path.isprintable():
        raise InputError("path: wanted a pattern that can be printed, such as '2024/*'")
    return Where.of(
        path=path or None,
        since=since or None,
        until=until or None,
        larger=larger or None,
        smaller=smaller or None,
        tags=[tag for tag in tags if tag.strip()],
    )
