"""What a writer that was stopped may have left, and how the next one mends it.

A batch is acknowledged in this order: regions on disk, then entries in the database, then the
entries that they replace removed. Stopped in between, it leaves

- regions that no entry refers to: left until `compact`. They are not cut off, although they would
  be easy to cut: another process may have the file mapped, and reading behind its end kills it;
- two entries for one photograph: the older is removed;
- region stores that `compact` did not finish or had replaced: removed, by their names, which are
  `regions-` and a number;
- the marker of `crossgaze.search.places` beside a whole index: removed.

Entries without regions can only come from damage (see `crossgaze.search.damage`). They stay, tags
and all, and their regions are made again when their folder is indexed.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from crossgaze.search.engine import Engine
from crossgaze.search.head import STORE
from crossgaze.search.places import unmark

if TYPE_CHECKING:
    from crossgaze.search.index import Index


def newest_entries(table: Engine) -> tuple[dict[str, int], list[int]]:
    """Return the newest uid for each key, and the uids that a newer one replaces."""
    newest: dict[str, int] = {}
    older: list[int] = []
    for part in table.every():
        for entry in part:
            other = newest.get(entry.key)
            if other is not None:
                older.append(min(other, entry.uid))
            newest[entry.key] = max(entry.uid, other or 0)
    return newest, older


def repair(index: Index) -> None:
    """Mend an index; the caller is its only writer."""
    unmark(index.folder)
    for left in index.folder.glob("regions-*"):
        if STORE.fullmatch(left.name) and left.name != index.head.store:
            shutil.rmtree(left, ignore_errors=True)
    for table in (index.tables.photos, index.tables.sentences):
        _, older = newest_entries(table)
        table.delete(older)
