"""What an index knows of one photograph or sentence, beside its vector and its regions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from crossgaze.errors import InputError

LONGEST_KEY = 60_000  # bytes of UTF-8; Milvus holds 65,535 in a text column
LONGEST_TAGS = 8_000  # bytes, of all tags of an entry together


@dataclass(frozen=True, slots=True)  # an index holds hundreds of thousands in memory
class Entry:
    """One row of an index.

    Args:
        uid: its number, rising in the order of adding; a photograph's is never given again.
        key: the photograph's absolute path, or the sentence.
        source: the folder that was indexed, or the file that the sentence stood in.
        bytes: size of the photograph's file.
        modified: when the file changed last, in nanoseconds since 1970.
        taken: when the photograph was taken (else: when the file changed), in seconds since 1970
            as a clock on the wall there showed it, taken as UTC: cameras seldom write the zone.
        digest: of the file's content.
        width: of the upright photograph, in pixels.
        height: likewise.
        tags: the user's own words, sorted; of a sentence, the other files that it stands in.
    """

    uid: int
    key: str
    source: str
    bytes: int = 0
    modified: int = 0
    taken: int = 0
    digest: str = ""
    width: int = 0
    height: int = 0
    tags: tuple[str, ...] = ()


NUMBERS = ("uid", "bytes", "modified", "taken", "width", "height")
TEXTS = ("key", "source", "digest")
COLUMNS = (
    "uid",
    "key",
    "source",
    "bytes",
    "modified",
    "taken",
    "digest",
    "width",
    "height",
    "tags",
)


def to_row(entry: Entry) -> dict[str, Any]:
    """Return an entry as whole numbers and texts only, the tags as JSON."""
    row = {name: getattr(entry, name) for name in COLUMNS}
    return row | {"tags": json.dumps(list(entry.tags), ensure_ascii=False)}


def from_row(row: dict[str, Any]) -> Entry:
    """Return the entry of a database's row; its tags may be JSON or a list."""
    values: dict[str, Any] = {name: int(row[name]) for name in NUMBERS}
    values |= {name: str(row[name]) for name in TEXTS}
    tags = json.loads(row["tags"]) if isinstance(row["tags"], str) else row["tags"]
    return Entry(**values, tags=tuple(tags))


def clean_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return tags sorted, each once; refuse what is none.

    Example:
        >>> clean_tags(["snow", "dog", "snow"])
        ('dog', 'snow')
    """
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise InputError(f"tags: got {tags!r}, wanted a list of texts")
    for tag in tags:
        if not isinstance(tag, str) or not tag.strip() or not tag.isprintable():
            raise InputError(f"tags: got {tag!r}, wanted words that can be printed")
    found = tuple(sorted({tag.strip() for tag in tags}))
    if sum(len(tag.encode()) + 8 for tag in found) > LONGEST_TAGS:
        raise InputError(f"tags: got {len(found)} tags, together longer than {LONGEST_TAGS} bytes")
    return found
