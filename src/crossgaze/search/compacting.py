"""Giving back the room of regions that nothing refers to any more."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np

from crossgaze.search.head import write_head
from crossgaze.search.kept import copy_kept

if TYPE_CHECKING:
    from crossgaze.search.index import Index


def compact(index: Index) -> int:
    """Copy what is used into a new region store, name that in the head, remove the old.

    Whenever this is stopped, the head names a whole store; the next writer removes the other. The
    caller is the index's only writer.

    Returns:
        How many rows were unused.
    """
    photos = index.tables.photos
    uids = np.array([entry.uid for part in photos.every() for entry in part], np.int64)
    uids = uids[index.kept.rows(uids) >= 0]  # damage may have left some without regions
    unused = len(index.kept) - len(uids)
    if unused:
        store = f"regions-{int(index.head.store[8:]) + 1}"
        copy_kept(index.kept, uids, index.folder / store)
        last = max(index.head.last_uid, int(index.kept.uids.max()))
        old, index.head = index.head.store, index.head.with_store(store, last)
        write_head(index.folder, index.head)
        shutil.rmtree(index.folder / old, ignore_errors=True)
    photos.tidy("compact")
    index.tables.sentences.tidy("compact")
    return unused
