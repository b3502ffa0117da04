"""Zips from anybody, checked before a member of them is read.

How much a member unpacks to is what the zip says of it, and Python holds a deflated one to that.
One that is packed by bzip2 or LZMA it inflates whole, to a thousand times what was read and more,
before it looks at that number. None of the formats read here is packed so.

Where the list of members lies is said at the zip's end, and readers differ in whom they believe:
Python takes the list that lies directly before the end, torch the one at the place that the end
names. A file may have one for each, the first harmless. Only a zip on which both agree is read; no
tool writes another, unless something else was put in front of it.
"""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import IO

from crossgaze.errors import FileFormatError, require_file

PLAIN = (zipfile.ZIP_STORED,)
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
NAMES = {
    zipfile.ZIP_STORED: "stored",
    zipfile.ZIP_DEFLATED: "deflated",
    zipfile.ZIP_BZIP2: "packed by bzip2",
    zipfile.ZIP_LZMA: "packed by LZMA",
}
# Members that a zip may have: Python takes half a kilobyte for each as soon as it opens it. The
# largest read here, Flickr30k Entities', has 63,566, and twice as many where macOS packed it.
MAX_MEMBERS = 200_000
MEMBER_BYTES = 256  # of the list, for each of them: twice what such names take

# The records at a zip's end (APPNOTE.TXT, 4.3.14 to 4.3.16): the end itself and, where 32 bits may
# not do, one with 64 and one that says where that lies.
_END = struct.Struct("<4s4H2LH")
_END_64, _PLACE_64 = struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
_LONGEST_COMMENT = (1 << 16) - 1


def open_zip(
    path: Path, kinds: tuple[int, ...] = PACKED, most: int = MAX_MEMBERS
) -> zipfile.ZipFile:
    """Open a zip for reading, whose members are to be read in memory and never unpacked to disk.

    Args:
        path: the file.
        kinds: how its members may be packed.
        most: members that it may have.

    Raises:
        FileFormatError: if it is no zip that reads, has more members, or one is packed otherwise.
        InputError: if it is no file.
        OSError: what the system said.
    """
    with require_file(path, "a zip").open("rb") as file:
        _require_one_list(path, file, most)
    try:
        archive = zipfile.ZipFile(path)
    # The last two by a name or a number in the list of members that cannot be.
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise FileFormatError(path, f"is not a readable zip file: {error}") from error
    for member in archive.infolist():
        if member.compress_type not in kinds:
            archive.close()
            found = NAMES.get(member.compress_type, f"packed by method {member.compress_type}")
            wanted = " or ".join(NAMES[kind] for kind in kinds)
            raise FileFormatError(path, f"has {member.filename!r} {found}, wanted {wanted}")
    return archive


def _require_one_list(path: Path, file: IO[bytes], most: int) -> None:
    """Refuse a zip whose list of members is too long, or not the one that its end names."""
    end, size, place = _end(path, file)
    if place + size != end:
        raise FileFormatError(
            path,
            f"has its list of members somewhere else than its end says: {size:,} bytes at byte "
            f"{place:,}, wanted them to end at byte {end:,}",
        )
    if size > (room := most * MEMBER_BYTES):
        raise FileFormatError(
            path, f"has a list of members of {size:,} bytes, wanted {room:,} at most"
        )
    file.seek(place)
    # Python goes by the bytes, whatever count is said with them: each member has its mark there.
    if (count := file.read(size).count(b"PK\1\2")) > most:
        raise FileFormatError(path, f"has {count:,} members, wanted {most:,} at most")


def _end(path: Path, file: IO[bytes]) -> tuple[int, int, int]:
    """Return where a zip's end begins, how many bytes its list of members has, and where it is."""
    before = _END_64.size + _PLACE_64.size
    start = max(file.seek(0, 2) - before - _END.size - _LONGEST_COMMENT, 0)
    file.seek(start)
    tail = file.read()
    # The last one that there is room for, as torch and Python have it.
    at = tail.rfind(b"PK\5\6", 0, max(len(tail) - _END.size + 4, 0))
    if at < 0:
        raise FileFormatError(path, "is not a readable zip file: it has no end")
    *_, size, place, _ = _END.unpack_from(tail, at)
    if at < _PLACE_64.size or not tail.startswith(b"PK\6\7", at - _PLACE_64.size):
        return start + at, size, place
    _, _, place, _ = _PLACE_64.unpack_from(tail, at - _PLACE_64.size)
    at -= before
    if place != start + at or at < 0 or not tail.startswith(b"PK\6\6", at):
        raise FileFormatError(
            path, "is not a readable zip file: its end is not where a record says that it is"
        )
    *_, size, place = _END_64.unpack_from(tail, at)
    return start + at, size, place
