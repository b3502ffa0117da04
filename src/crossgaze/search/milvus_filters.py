"""Filters and uids as expressions of Milvus: what every version of it understands."""

from __future__ import annotations

from collections.abc import Sequence

from crossgaze.search.filters import Where

AMONG = 10_000  # uids named in one expression


def pushed(where: Where) -> str:
    """Return what of a filter every Milvus understands, each text quoted.

    Example:
        >>> pushed(Where(path="/photos/*.jpg", most_bytes=5))
        'bytes <= 5 and key like "/photos/%"'
    """
    parts = [f"{column} {sign} {value}" for column, sign, value in where.ranges()]
    start = _plain_start(where)
    if start:
        parts.append(f'key like "{start}%"')
    return " and ".join(parts)


def is_pushed_whole(where: Where) -> bool:
    """Tell whether `pushed` says all of a filter."""
    return not where.tags and (where.pattern is None or where.pattern == f"{_plain_start(where)}*")


def _plain_start(where: Where) -> str:
    """Return the first signs of a pattern, as far as none means anything to Milvus."""
    start = ""
    for sign in where.pattern or "":
        if not (sign.isalnum() or sign in "/.- ") or not sign.isascii():
            break
        start += sign
    return start


def uid_parts(uids: Sequence[int], size: int = AMONG) -> list[str]:
    """Return expressions that name uids, so many at a time."""
    numbers = [str(int(uid)) for uid in uids]
    return [
        f"uid in [{', '.join(numbers[start : start + size])}]"
        for start in range(0, len(numbers), size)
    ]
