"""What bringing an index up to date did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from crossgaze.data.left_out import LeftOut


@dataclass(frozen=True)
class IndexReport:
    """What was done to an index.

    Args:
        found: photographs (or sentences) that are there to be indexed.
        added: new ones.
        changed: whose content is another one now.
        touched: whose file has another date or other tags, but the same content.
        removed: gone from the folder.
        unchanged: not looked at again.
        unreadable: (path, reason); of one that was indexed before, what was indexed stays.
        left_out: files that are not photographs, links, hidden files.
        seconds: in all.
        busy: seconds of them beside making regions: encoding, writing, acknowledging.
        stored: photographs whose regions a store had already.
    """

    found: int
    added: int = 0
    changed: int = 0
    touched: int = 0
    removed: int = 0
    unchanged: int = 0
    unreadable: tuple[tuple[str, str], ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    seconds: float = 0.0
    busy: float = 0.0
    stored: int = 0

    @property
    def did_something(self) -> bool:
        """Whether the index is another one now."""
        return bool(self.added or self.changed or self.touched or self.removed)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON holds it."""
        return asdict(self)


def join_reports(reports: Sequence[IndexReport]) -> IndexReport:
    """Return what was done to an index one after the other as one report."""
    first, *others = reports
    return IndexReport(
        **{
            one.name: sum(
                (getattr(report, one.name) for report in others), getattr(first, one.name)
            )
            for one in fields(IndexReport)
        }
    )
