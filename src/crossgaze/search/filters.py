"""Which photographs a search may return: by path, date, size and tags.

A filter is values, never a piece of somebody's query language. Each engine makes of it what it
understands, with every text quoted, and what an engine cannot say is looked at here.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from crossgaze.errors import InputError
from crossgaze.search.entries import Entry, clean_tags

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
LATEST = 253402300799  # seconds of the year 9999


@dataclass(frozen=True)
class Where:
    """What an entry must be; what is not given does not matter.

    Args:
        path: a pattern of the path: `*` is any signs, `?` is one, all others stand for themselves.
            Unless it begins with / or *, it may begin at any folder: "2024/*" is "*/2024/*".
        since: taken at this second or later, by the clock on the wall there (see `Entry.taken`).
        until: taken before this second, likewise.
        least_bytes: the file has at least so many.
        most_bytes: the file has at most so many.
        tags: all of these.

    Example:
        >>> where = Where.of(path="holiday/*.jpg", since="2024-05-01", larger="100 KB")
        >>> where.admits(Entry(1, "/home/me/holiday/a.jpg", "/home/me", 200_000, taken=1720000000))
        True
    """

    path: str | None = None
    since: int | None = None
    until: int | None = None
    least_bytes: int | None = None
    most_bytes: int | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("since", "until", "least_bytes", "most_bytes"):
            value = getattr(self, name)
            if value is not None and type(value) is not int:
                raise InputError(f"where {name}: got {value!r}, wanted a whole number")
            if value is not None and not -LATEST <= value < 1 << 62:
                raise InputError(f"where {name}: got {value}, which is out of range")
        if self.path is not None and (not isinstance(self.path, str) or not self.path):
            raise InputError(f"where path: got {self.path!r}, wanted a pattern such as '2024/*'")
        object.__setattr__(self, "tags", clean_tags(self.tags))

    @classmethod
    def of(
        cls,
        *,
        path: str | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
        larger: str | int | None = None,
        smaller: str | int | None = None,
        tags: tuple[str, ...] | list[str] = (),
    ) -> Where:
        """Read a filter as people write one: "2024-05-01", "1.5 MB"; a last day counts whole."""
        return cls(
            path,
            None if since is None else _seconds("since", since, end=False),
            None if until is None else _seconds("until", until, end=True),
            None if larger is None else parse_bytes("larger", larger),
            None if smaller is None else parse_bytes("smaller", smaller),
            clean_tags(tags),
        )

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) not in (None, ()) for one in fields(self))

    @property
    def pattern(self) -> str | None:
        """The path's pattern from the path's first sign on."""
        if self.path is None or self.path.startswith(("/", "*")):
            return self.path
        return f"*/{self.path}"

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """What matches the whole path."""
        first, *rest = (
            "".join("." if sign == "?" else re.escape(sign) for sign in part)
            for part in (self.pattern or "*").split("*")
        )
        # Each piece is taken where it comes first and never tried again (an atomic group): that
        # is right for stars, and many of them cannot keep a matcher busy for ever.
        middle = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
        return re.compile(first + (f"{middle}.*{rest[-1]}" if rest else ""), re.DOTALL)

    def admits(self, entry: Entry) -> bool:
        """Tell whether an entry is what is wanted."""
        return (
            (self.since is None or entry.taken >= self.since)
            and (self.until is None or entry.taken < self.until)
            and (self.least_bytes is None or entry.bytes >= self.least_bytes)
            and (self.most_bytes is None or entry.bytes <= self.most_bytes)
            and (not self.tags or set(self.tags) <= set(entry.tags))
            and (self.path is None or self.regex.fullmatch(entry.key) is not None)
        )

    def ranges(self) -> list[tuple[str, str, int]]:
        """Return the conditions on numbers: column, sign, value."""
        found = [
            ("taken", ">=", self.since),
            ("taken", "<", self.until),
            ("bytes", ">=", self.least_bytes),
            ("bytes", "<=", self.most_bytes),
        ]
        return [(column, sign, value) for column, sign, value in found if value is not None]


def require_where(where: object) -> None:
    """Refuse what is no filter, saying how one is written."""
    if where is not None and not isinstance(where, Where):
        raise InputError(
            f"where: got {where!r}, wanted a filter such as Where.of(path='2024/*', tags=['best'])"
        )


def require_uids(where: object) -> list[int]:
    """Return photographs' numbers, whole ones; whatever else was meant is no filter."""
    if not isinstance(where, str | bytes | dict) and isinstance(where, Iterable):
        with suppress(TypeError):
            return [operator.index(uid) for uid in where]
    raise InputError(
        f"where: got {where!r}, wanted a filter such as Where.of(path='2024/*'), or a list of "
        "photographs' numbers (uid)"
    )


def _seconds(name: str, value: str | date, *, end: bool) -> int:
    """Return a day's first second, or with `end` the first of the next day.

    As photographs' dates are, it is what a clock on the wall shows, taken as UTC; a moment that
    names its zone is put on the clock here.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value) if len(value) > 10 else date.fromisoformat(value)
        except ValueError:
            raise InputError(f"{name}: got {value!r}, wanted a day such as 2024-05-01") from None
    if not isinstance(value, date):
        raise InputError(f"{name}: got {value!r}, wanted a day such as 2024-05-01")
    if isinstance(value, datetime):
        try:
            here = value if value.tzinfo is None else value.astimezone()
        except (OverflowError, ValueError, OSError):  # at the calendar's ends
            raise InputError(f"{name}: got {value}, which no clock here can show") from None
        return int(here.replace(tzinfo=UTC).timestamp())
    if end and value < date.max:
        value += timedelta(days=1)
    return int(datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp())


def parse_bytes(name: str, value: str | int) -> int:
    """Read a number of bytes such as 200000, "200 KB" or "1.5MB".

    Example:
        >>> parse_bytes("larger", "1.5MB")
        1500000
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([KMG]?B?)\s*", str(value).upper())
    unit = "" if found is None else found[2] + ("B" if found[2] in ("K", "M", "G") else "")
    if found is None:
        raise InputError(f"{name}: got {value!r}, wanted a number of bytes such as 200000 or 1.5MB")
    return round(float(found[1]) * _UNITS[unit])
