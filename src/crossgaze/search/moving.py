"""An index from one engine to another: a copy, whole before it counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from crossgaze.errors import FileFormatError
from crossgaze.files import only_writer, sync_folder
from crossgaze.search.damage import note_held, require_held
from crossgaze.search.engines import find_folder, open_tables, parse_engine
from crossgaze.search.head import read_head, write_head
from crossgaze.search.kept import KeptRegions, copy_kept
from crossgaze.search.places import begin_index, require_new, unmark
from crossgaze.search.repair import newest_entries


def move_index(
    old: str | Path,
    new: str | Path,
    engine: str = "lance",
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[int, int]:
    """Copy an index into a new folder and another engine; no model is needed for it.

    The old index stays as it is, and nobody writes to it meanwhile. Regions that nothing refers to
    are left behind.

    Args:
        old: the index's folder or URL.
        new: a new or empty folder.
        engine: "lance", "milvus" or "http://host:19530/name".
        on_progress: called with (entries done, entries in all).

    Returns:
        How many photographs and sentences it holds.
    """
    source, folder = find_folder(old), Path(new)
    kind, name = parse_engine(engine)
    read_head(source)  # before a folder is made for nothing
    require_new(folder)
    folder.mkdir(parents=True, exist_ok=True)
    counts = []
    with only_writer(source, "this index"), only_writer(folder, "this index"):
        before = read_head(source)  # only now: `compact` of another process names another store
        own = begin_index(folder)
        head = replace(before, id=own, engine=kind, name=name, store="regions-1")
        have = open_tables(source, before)
        made = open_tables(folder, head, create=True)
        try:
            total = len(have.photos) + len(have.sentences)
            done = 0
            kept = KeptRegions(source / before.store, 0)
            kept.require_sound()
            require_held(source, have)
            for table, out in ((have.photos, made.photos), (have.sentences, made.sentences)):
                newest, older = newest_entries(table)  # which a stopped writer left: stay behind
                uids = np.array(sorted(newest.values()), np.int64)
                if table is have.photos:
                    if lacking := kept.lacking(uids.tolist()):
                        raise FileFormatError(
                            kept.folder,
                            f"lacks the regions of {len(lacking):,} photographs; index their "
                            "folders again, then move the index",
                        )
                    copy_kept(kept, uids, folder / head.store)
                wanted, done = set(uids.tolist()), done + len(older)
                for part in table.every():
                    entries = [entry for entry in part if entry.uid in wanted]
                    if entries:
                        out.add(entries, table.vectors([entry.uid for entry in entries]))
                    done += len(entries)
                    if on_progress:
                        on_progress(done, total)
                out.tidy()
                counts.append(len(uids))
            note_held(folder, made)
        finally:
            have.close()
            made.close()
        write_head(folder, head)
        unmark(folder)
        sync_folder(folder.parent)
    return counts[0], counts[1]
