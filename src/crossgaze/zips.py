"""Zips from anybody, checked before a member of them is read.

How much a member unpacks to is what the zip says of it, and Python holds a deflated one to that.
One that is packed by bzip2 or LZMA it inflates whole, to a thousand times what was read and more,
before it looks at that number. None of the formats read here is packed so.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from crossgaze.errors import FileFormatError

PLAIN = (zipfile.ZIP_STORED,)
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
NAMES = {
    zipfile.ZIP_STORED: "stored",
    zipfile.ZIP_DEFLATED: "deflated",
    zipfile.ZIP_BZIP2: "packed by bzip2",
    zipfile.ZIP_LZMA: "packed by LZMA",
}


def open_zip(path: Path, kinds: tuple[int, ...] = PACKED) -> zipfile.ZipFile:
    """Open a zip for reading, whose members are to be read in memory and never unpacked to disk.

    Args:
        path: the file.
        kinds: how its members may be packed.

    Raises:
        FileFormatError: if it is no zip that reads, or a member is packed otherwise.
        OSError: what the system said.
    """
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
