"""Damage of an index's own files, which a writer notices before it changes anything.

What a stopped writer leaves is mended by `crossgaze.search.repair`. What none leaves is damage: a
region store whose log, state and arrays do not fit together, or a table that is empty although it
was not when the last writer ended. Then nothing is written, because a writer would take entries or
regions for left over that only look so.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from crossgaze.data.textfiles import parse_head
from crossgaze.errors import FileFormatError, InputError
from crossgaze.search.engines import Tables
from crossgaze.search.head import HELD
from crossgaze.search.kept import way_out

if TYPE_CHECKING:
    from crossgaze.search.index import Index

TABLES = {"photos": "photographs", "sentences": "sentences"}


def require_sound_regions(index: Index, *, remake: bool) -> None:
    """Refuse an index whose kept regions are damaged, and say how to go on.

    Args:
        index: the index; the caller is its only writer.
        remake: whether to make an empty store where it was taken away, because the caller makes
            regions of photographs that have none.
    """
    store = index.folder / index.head.store
    if remake and not os.path.lexists(store):
        from crossgaze.search.making import make_store

        make_store(store, index.head.id, index.source, index.reranker)
    try:
        index.kept.require_sound()
    except InputError as error:
        raise InputError(f"{error}; {way_out(store)}") from error


def require_held(folder: Path, tables: Tables) -> None:
    """Refuse tables that have lost all that they held when the last writer ended."""
    try:
        held = parse_head(folder / HELD, "what an index held")
        counts = {name: int(held[name]) for name in TABLES}
    except (InputError, ValueError, KeyError, TypeError, RecursionError):
        return  # a writer was stopped, or none has ended yet: nobody knows
    for name, what in TABLES.items():
        if counts[name] and not len(getattr(tables, name)):
            raise FileFormatError(
                folder,
                f"its database may be damaged: it holds no {what}, and held {counts[name]:,} when "
                "it was last written; put it back from a copy, or index into a new folder (if it "
                f"was emptied on purpose, remove {folder / HELD})",
            )


def note_held(folder: Path, tables: Tables) -> None:
    """Write down how much the tables hold, as the last thing that a writer does."""
    counts = {name: len(getattr(tables, name)) for name in TABLES}
    if any(counts.values()):
        with suppress(OSError):  # all else is on disk, and without it only less is noticed
            (folder / HELD).write_text(json.dumps(counts) + "\n", "utf-8")


def forget_held(folder: Path) -> None:
    """Forget it, as the first thing that a writer does: it may remove everything and be killed."""
    (folder / HELD).unlink(missing_ok=True)
