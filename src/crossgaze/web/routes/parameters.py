"""What several addresses take: pages and filters."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query

from crossgaze.search.filters import Where
from crossgaze.web.library import filter_of
from crossgaze.web.schemas import MOST_ID, ErrorBody

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": what}
    for status, what in {
        401: "The token is missing",
        403: "Not allowed",
        404: "Not there",
        409: "Not possible now",
        410: "No longer there",
        413: "Too large",
        421: "Another host's name",
        422: "What was sent cannot be used, and why",
        429: "Too many requests",
        503: "Busy",
    }.items()
}

FARTHEST = 100_000  # the last place at which a page may begin
Offset = Annotated[
    int, Query(ge=0, le=FARTHEST, examples=[40], description="where the page begins")
]
Limit = Annotated[int, Query(ge=1, le=100, examples=[40], description="photographs on a page")]
Identity = Annotated[int, Path(ge=1, le=MOST_ID, examples=[17], description="a photograph's id")]


def _filters(
    path: Annotated[
        str | None, Query(max_length=1000, description="a pattern", examples=["2024/*.jpg"])
    ] = None,
    since: Annotated[
        str | None, Query(max_length=40, description="first day", examples=["2024-05-01"])
    ] = None,
    until: Annotated[
        str | None, Query(max_length=40, description="last day", examples=["2024-05-31"])
    ] = None,
    larger: Annotated[
        str | None, Query(max_length=40, description="at least so many bytes", examples=["200KB"])
    ] = None,
    smaller: Annotated[
        str | None, Query(max_length=40, description="at most so many bytes", examples=["5MB"])
    ] = None,
    tag: Annotated[
        list[str],
        Query(max_length=20, description="all of these tags", examples=[["holidays", "best"]]),
    ] = [],  # noqa: B006
) -> Where:
    return filter_of(path, since, until, larger, smaller, tag)


Filters = Annotated[Where, Depends(_filters)]
