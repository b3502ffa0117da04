"""`/search`: by a sentence, by a picture that is sent, or by a photograph of the index.

With `stream=true` the answer is lines of JSON: the page by vectors as soon as it is there, then
again whenever more of it is in the exact order, the last line with `"stage": "ranked"`. What goes
wrong after the first line is a line `{"error": ...}`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from crossgaze.search.queries import LONGEST
from crossgaze.search.ranking import CANDIDATES
from crossgaze.web.lanes import Place
from crossgaze.web.library import Begun, Wanted
from crossgaze.web.problems import RequestError, explain
from crossgaze.web.routes.parameters import ERRORS, FARTHEST, Filters, Limit, Offset
from crossgaze.web.schemas import MOST_ID, ErrorBody, SearchAnswer, Sentence
from crossgaze.web.service import Service

LINES = "application/x-ndjson"
APART = 0.1  # seconds between lines that show how far the order is
SENDING = 30.0  # seconds that a picture may take to arrive
KINDS = ("image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp", "image/tiff")
ANSWERS: dict[int | str, dict[str, Any]] = {
    **ERRORS,
    200: {
        "model": SearchAnswer,
        "content": {LINES: {"schema": {"type": "string"}}},
        "description": "A page of photographs, best first",
    },
}

Stream = Annotated[
    bool, Query(description="answer in lines of JSON, as it is ranked", examples=[True])
]


def router(service: Service) -> APIRouter:
    """Return the routes."""
    made = APIRouter(tags=["search"])

    @made.get("/search", response_model=SearchAnswer, responses=ANSWERS)
    async def search(
        where: Filters,
        q: Annotated[
            str | None,
            Query(max_length=LONGEST, description="a sentence", examples=["two dogs in the snow"]),
        ] = None,
        picture: Annotated[
            str | None,
            Query(
                max_length=64, description="more of a picture that was sent", examples=["9f86d081"]
            ),
        ] = None,
        like: Annotated[
            int | None,
            Query(
                ge=1, le=MOST_ID, description="a photograph's id, for ones like it", examples=[17]
            ),
        ] = None,
        offset: Offset = 0,
        limit: Limit = 40,
        stream: Stream = False,
    ) -> Response:
        """Find photographs by a sentence (q), or those like a picture (picture, like)."""
        given = [
            Wanted(kind, value, where)
            for kind, value in (("sentence", q), ("picture", picture), ("like", like))
            if value is not None
        ]
        if len(given) != 1:
            raise RequestError(422, "wanted one of q, picture and like")
        return await _answer(service, given[0], offset, limit, stream=stream)

    @made.post(
        "/search",
        response_model=SearchAnswer,
        responses={**ANSWERS, 408: {"model": ErrorBody}},
        openapi_extra={"requestBody": _picture_body()},
    )
    async def search_by_picture(
        request: Request, where: Filters, limit: Limit = 40, stream: Stream = False
    ) -> Response:
        """Find photographs like the picture that is the body, and sentences for it.

        The picture is held in memory only; `picture` of the answer asks for further pages.
        """
        with service.uploads.enter():
            try:
                async with asyncio.timeout(SENDING):
                    data = await request.body()
            except TimeoutError:
                raise RequestError(408, "the picture took too long to arrive") from None
            if not data:
                raise RequestError(422, "the body is empty, wanted a picture")
            started = time.perf_counter()
            handle = await service.models.run(
                service.library.keep_picture, data, service.config.upload_pixels
            )
        wanted = Wanted("picture", handle, where)
        return await _answer(service, wanted, 0, limit, stream=stream, started=started)

    return made


def _picture_body() -> dict[str, Any]:
    kind = {"schema": {"type": "string", "format": "binary"}}
    return {"required": True, "content": dict.fromkeys(KINDS, kind)}


async def _answer(
    service: Service,
    wanted: Wanted,
    offset: int,
    limit: int,
    *,
    stream: bool,
    started: float | None = None,
) -> Response:
    page = _Page(service, wanted, offset, limit, started)
    place = service.models.enter()
    try:
        # Before the first line: what is wrong with the query still gets a status of its own.
        begun, answer = await service.models.step(page.begin)
        while not stream and not begun.block.done:
            begun, answer = await service.models.step(page.go_on, begun)
    except BaseException:
        place.leave()
        raise
    if not stream:
        place.leave()
        return Response(answer.model_dump_json(), media_type="application/json")
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    service.background(page.rank(begun, answer, place, lines))
    return StreamingResponse(_given(lines), media_type=LINES)


async def _given(lines: asyncio.Queue[str | None]) -> AsyncIterator[str]:
    while (line := await lines.get()) is not None:
        yield line + "\n"


class _Page:
    """One page of one search; a picture that was sent has been read since `started`."""

    def __init__(
        self, service: Service, wanted: Wanted, offset: int, limit: int, started: float | None
    ) -> None:
        self.service, self.wanted = service, wanted
        self.offset, self.limit = offset, limit
        self._sentences: tuple[Sentence, ...] = ()
        self._started = time.perf_counter() if started is None else started

    async def rank(
        self, begun: Begun, answer: SearchAnswer, place: Place, lines: asyncio.Queue[str | None]
    ) -> None:
        """Put lines into a queue until the order is exact; the place is given back then."""
        try:
            with place:
                lines.put_nowait(answer.model_dump_json())
                last = time.perf_counter()
                while not begun.block.done:
                    begun, answer = await self.service.models.step(self.go_on, begun)
                    if begun.block.done or time.perf_counter() - last > APART:
                        lines.put_nowait(answer.model_dump_json())
                        last = time.perf_counter()
        except Exception as error:  # noqa: BLE001 (the status has been sent; words have not)
            lines.put_nowait(json.dumps({"error": explain(error)[1]}))
        finally:
            lines.put_nowait(None)

    # One step each, with what it shows: every step waits for its turn in the lane.

    def begin(self) -> tuple[Begun, SearchAnswer]:
        """Return the candidates, and with the first page of a picture its best sentences."""
        begun = self.service.library.begin(self.wanted, self.offset)
        if self.wanted.kind == "picture" and not self.offset:
            self._sentences = self.service.library.sentences_like(begun.query)
        return begun, self.show(begun)

    def go_on(self, begun: Begun) -> tuple[Begun, SearchAnswer]:
        """Return the candidates with some more of them in the exact order."""
        begun = self.service.library.go_on(self.wanted, begun)
        return begun, self.show(begun)

    def show(self, begun: Begun) -> SearchAnswer:
        """Return the page as far as it is ranked."""
        block, library = begun.block, self.service.library
        uids, scores = block.order()
        first = self.offset - block.first
        page = slice(first, first + self.limit)
        hits = library.hits(uids[page], scores[page], self.offset)
        end = self.offset + len(uids[page])
        more = end < block.first + len(uids) or len(uids) == CANDIDATES
        return SearchAnswer(
            stage="ranked" if block.done else "ranking" if block.ranked else "candidates",
            hits=hits,
            offset=self.offset,
            next_offset=end if more and end <= FARTHEST else None,
            ranked=block.ranked,
            looked_at=len(uids),
            total=library.photographs,
            picture=str(self.wanted.value) if self.wanted.kind == "picture" else None,
            sentences=self._sentences,
            unknown=begun.query.unknown,
            milliseconds=round(1e3 * (time.perf_counter() - self._started), 1),
        )
