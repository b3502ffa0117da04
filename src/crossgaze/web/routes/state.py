"""What the index is, adding to it, and what operators look at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response, StreamingResponse

from crossgaze.web.guard import cookie_of
from crossgaze.web.metrics import KIND
from crossgaze.web.routes.parameters import ERRORS
from crossgaze.web.schemas import AddFolder, IndexState, Job
from crossgaze.web.service import Service

TEXT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Metrics"}
}
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {}}, "description": "Events whose data is a Job"}
}


def router(service: Service) -> APIRouter:
    """Return the routes."""
    made = APIRouter(responses=ERRORS)
    indexing = service.indexing

    @made.get("/index", tags=["index"])
    async def index() -> IndexState:
        """Return what the index holds and what is being added."""
        return await service.models.run(_state, service)

    @made.post("/index", tags=["index"], status_code=202)
    async def add(wanted: AddFolder) -> Job:
        """Add a folder, or bring it up to date: one that the server was started with."""
        return indexing.start(wanted.folder, wanted.tags)

    @made.get("/index/events", tags=["index"], response_class=StreamingResponse, responses=EVENTS)
    async def events() -> StreamingResponse:
        """Tell how far the adding is, as server-sent events, until it is done."""

        async def lines() -> AsyncIterator[str]:
            async for job in indexing.events():
                yield f"data: {job.model_dump_json()}\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    @made.post("/logout", tags=["token"], status_code=204, response_class=Response)
    async def logout() -> Response:
        """Forget the cookie."""
        answer = Response(status_code=204)
        token = service.config.token
        if token is not None:
            answer.delete_cookie(cookie_of(token), httponly=True, samesite="strict")
        return answer

    @made.get("/metrics", tags=["operation"], response_class=Response, responses=TEXT)
    async def metrics() -> Response:
        """Return what Prometheus reads."""
        return Response(service.metrics.text(), headers={"content-type": KIND})

    return made


def _state(service: Service) -> IndexState:
    library = service.library
    tags, head = library.tags(), library.index.head
    return IndexState(
        photographs=library.photographs,
        sentences=library.sentences,
        embedder=head.embedder.family,
        reranker=None if head.reranker is None else head.reranker.family,
        answerer=None if service.asker is None else service.asker.model.family,
        tags=tags,
        folders=tuple(map(str, service.indexing.folders)),
        token=service.config.token is not None,
        upload_bytes=service.config.upload_bytes,
        job=service.indexing.job,
    )
