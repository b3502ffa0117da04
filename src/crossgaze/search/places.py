"""Where an index may be made: a new or empty folder, or one where its making was stopped.

Making an index begins with a marker, a file that holds the index's id, and ends by removing it.
What lies under a marker, by the names that an index's parts have, is left of an index that was
never finished and is cleared. Nothing else is ever removed: a folder that holds it is refused.
"""

from __future__ import annotations

import json
import re
import shutil
import uuid
from pathlib import Path

from crossgaze.errors import InputError
from crossgaze.files import LOCK, sync_folder, write_json
from crossgaze.search.head import FILE, HELD, STORE

MARKER, FORMAT = ".crossgaze.making", "crossgaze-index-in-the-making"
OURS = re.compile(
    rf"database|milvus\.db|{STORE.pattern}|{re.escape(HELD)}|\.{re.escape(FILE)}\.[0-9]+\.partial"
)
HALF = re.compile(rf"{re.escape(f'.{MARKER}')}\.[0-9]+\.partial")  # a marker's, not written whole


def require_new(folder: Path) -> None:
    """Refuse a folder that is no place for a new index, before anything is written.

    What is left of an index that was being made when its process ended is a place, too.
    """
    if folder.is_file():
        raise InputError(f"{folder}: is a file, wanted a new folder for the index")
    if not folder.is_dir():
        return
    if (folder / FILE).exists():
        raise InputError(f"{folder}: is an index already, wanted a new folder")
    begun = marked(folder) is not None
    for path in sorted(folder.iterdir()):
        if path.name == LOCK or HALF.fullmatch(path.name):
            continue
        if begun and (path.name == MARKER or OURS.fullmatch(path.name)):
            continue
        if begun:
            raise InputError(
                f"{folder}: holds what is left of an index that was never finished, and "
                f"{path.name!r}, which is none of it; move that away, or take a new folder"
            )
        raise InputError(
            f"{folder}: is not empty and not an index (it holds {path.name!r}), "
            "wanted a new or empty folder"
        )


def is_free(folder: Path) -> bool:
    """Return whether nothing is there, or an empty folder, or a half-made index."""
    if (folder / FILE).exists():
        return False
    try:
        require_new(folder)
    except InputError:
        return False
    return True


def begin_index(folder: Path) -> str:
    """Mark a folder as one where an index is made, and clear what is left of one begun before.

    The caller is its only writer.

    Returns:
        The new index's id: that of the one begun before, by which its collections in a Milvus are
        known to be left over.
    """
    require_new(folder)  # again, now that nobody else can make one here
    found = marked(folder) or uuid.uuid4().hex
    mark(folder, found)
    clear_leftovers(folder)
    return found


def mark(folder: Path, index_id: str) -> None:
    """Write the marker; it is durable then."""
    write_json(folder / MARKER, {"format": FORMAT, "id": index_id})


def marked(folder: Path) -> str | None:
    """Return the id in a folder's marker, None where there is none that this library wrote."""
    try:
        found = json.loads((folder / MARKER).read_bytes())
        if found["format"] == FORMAT and isinstance(found["id"], str) and found["id"]:
            return str(found["id"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    return None


def unmark(folder: Path) -> None:
    """Remove the marker: the index is whole, or all of it is gone."""
    if (folder / MARKER).exists():
        (folder / MARKER).unlink()
        sync_folder(folder)


def clear_leftovers(folder: Path) -> None:
    """Remove, under a marker, the parts of an index that was never finished."""
    if marked(folder) is None:
        return
    for left in folder.iterdir():
        if OURS.fullmatch(left.name) or HALF.fullmatch(left.name):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink()  # some versions of Milvus Lite keep one file, others a folder
