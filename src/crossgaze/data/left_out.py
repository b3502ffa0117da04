"""What a reader met and did not take: nothing is skipped silently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LeftOut:
    """Something a reader met and did not take, counted so that it can be said.

    Args:
        reason: why, in words a user understands.
        count: how many.
        examples: the first few, by name.
    """

    reason: str
    count: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = ", ".join(self.examples)
        more = ", ..." if self.count > len(self.examples) else ""
        return f"{self.count:,} {self.reason}" + (f" ({shown}{more})" if shown else "")

    @classmethod
    def of(cls, reason: str, names: Sequence[str], show: int = 3) -> tuple[LeftOut, ...]:
        """Return one entry for `names`, or none when there are no names."""
        return (cls(reason, len(names), tuple(names[:show])),) if names else ()
