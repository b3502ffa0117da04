"""What is new, changed or gone: a folder compared with an index.

A photograph is the same as before if its file's size and date are; if only the date differs, its
content's digest decides. Where the camera wrote no date, the file's new one is the photograph's.
What is the same goes by the file's real date, so that a machine which moves to another time zone
looks at nothing again.
"""

from __future__ import annotations

import calendar
import hashlib
import os
import shlex
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from crossgaze.errors import InputError
from crossgaze.files import stamp_of
from crossgaze.search.entries import Entry, clean_tags
from crossgaze.vision.listing import PhotoList, list_photos
from crossgaze.vision.taken import taken_at

if TYPE_CHECKING:
    from crossgaze.search.index import Index


@dataclass
class Plan:
    """What is to be done, by name relative to the folder."""

    todo: list[str] = field(default_factory=list)
    old: dict[str, Entry] = field(default_factory=dict)  # of those that changed
    touched: list[Entry] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    unchanged: int = 0


def make_plan(
    index: Index, listing: PhotoList, root: str, tags: tuple[str, ...], *, whole: bool
) -> Plan:
    """Compare a folder with the index."""
    plan = Plan()
    known: dict[str, Entry] = {}
    prefix = root.rstrip("/") + "/"
    for part in index.tables.photos.every():
        known |= {entry.key: entry for entry in part if entry.key.startswith(prefix)}
    bare = index.kept.lacking(entry.uid for entry in known.values())
    for name in listing.names:
        entry = known.pop(prefix + name, None)
        try:
            status = Path(prefix + name).stat()
        except OSError:
            status = None  # it went away, or reading it will say what is wrong
        if entry is None or status is None or entry.uid in bare:
            plan.todo.append(name)
            if entry is not None:
                plan.old[name] = entry
            continue
        now = replace(entry, tags=clean_tags([*entry.tags, *tags]))
        size, modified = stamp_of(status)
        if (size, modified) != (entry.bytes, entry.modified):
            content = _content_of(prefix + name) if size == entry.bytes else b""
            if digest_of(content) != entry.digest:
                plan.todo.append(name)
                plan.old[name] = entry
                continue
            taken = taken_when(content, modified)
            now = replace(now, modified=modified, taken=taken)
        if now != entry:
            plan.touched.append(now)
        else:
            plan.unchanged += 1
    if whole:
        # What is still there but not listed (a folder that cannot be read now) is not gone.
        listed = {prefix + name for name in listing.names}
        plan.gone = [entry.uid for key, entry in known.items() if _is_gone(key, listed)]
    return plan


def _is_gone(key: str, listed: set[str]) -> bool:
    """Tell whether a photograph that was not listed is gone, or a link to one that is listed."""
    if not os.path.lexists(key):
        return True
    found = os.path.realpath(key)
    return found != key and found in listed


def digest_of(content: bytes) -> str:
    """Return the digest by which a photograph's content is known."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def taken_when(content: bytes, modified: int) -> int:
    """Return the second a photograph was taken: the camera's, else that of the file's date.

    Args:
        content: of the file.
        modified: when it changed last, in nanoseconds since 1970.
    """
    taken = taken_at(content)
    return wall_clock(modified) if taken is None else taken


def wall_clock(modified: int) -> int:
    """Return what a clock here showed at a file's date, taken as UTC, as EXIF's time is.

    Somebody who asks for a day means that day where they live.

    Args:
        modified: in nanoseconds since 1970.
    """
    return calendar.timegm(time.localtime(modified // 10**9))


def paths_of(photos: str | Path | Sequence[str | Path]) -> list[str | Path]:
    """Return one folder or photograph, or several, as a list."""
    paths = [photos] if isinstance(photos, str | Path) else photos
    if (
        not isinstance(paths, Sequence)
        or not paths
        or not all(isinstance(path, str | Path) for path in paths)
    ):
        raise InputError(
            f"photos: got {photos!r}, wanted a folder, a photograph, or a list of them"
        )
    return list(paths)


def is_away(index: Index, photos: str | Path) -> bool:
    """Tell whether there is nothing to index now: a folder that is empty, gone or not mounted."""
    try:
        if stat.S_ISDIR(Path(photos).stat().st_mode):
            list_photos(photos, follow_links=bool(index.head.extract.get("follow_links")))
    except (InputError, OSError):
        return True
    except ValueError:  # a null character: no path at all
        return False
    return False


def left_behind(index: Index, photos: str | Path) -> str:
    """Return what to say of photographs that are indexed, and whose folder is empty or away.

    They are not removed, because a disk that is not mounted looks the same.
    """
    if not is_away(index, photos):
        return ""
    root = os.path.realpath(photos)
    prefix = root.rstrip("/") + "/"
    keys = [entry.key for part in index.tables.photos.every() for entry in part]
    inside = sum(key.startswith(prefix) for key in keys)
    count, pattern = (inside, f"{prefix}*") if inside else (keys.count(root), root)
    if not count:
        return ""
    command = f"crossgaze index --into {index.folder} --remove {shlex.quote(pattern)}"
    return f"; {count:,} photographs of it stay in the index, {command} takes them out"


def _content_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""  # no photograph's; reading it again will say what is wrong
