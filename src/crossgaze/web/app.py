"""The service as an ASGI app."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from crossgaze import __version__
from crossgaze.errors import MissingExtraError
from crossgaze.search.index import Index
from crossgaze.web.settings import ServeConfig

try:
    from fastapi import Depends, FastAPI
    from fastapi.security import HTTPBearer
except ImportError:
    raise MissingExtraError("the service", "fastapi", "serve") from None

from crossgaze.web import problems
from crossgaze.web.asker import Asker
from crossgaze.web.guard import Guard
from crossgaze.web.limits import Limits
from crossgaze.web.routes import entrance, images, page, search, state, why
from crossgaze.web.service import Service
from crossgaze.web.shell import Shell

ABOUT = """Search photographs by a sentence or by a picture, see which regions answered which word,
and ask questions about a photograph. Every error is `{"error": "..."}`, in words."""


def create_app(
    index: Index, config: ServeConfig | None = None, *, asker: Asker | None = None
) -> FastAPI:
    """Make the service of an index.

    Args:
        index: open; the caller closes it when the app has been stopped.
        config: the settings; a service for this machine only if not given.
        asker: answers questions about photographs.

    Example:
        ```python
        app = create_app(Index.open("index/"), ServeConfig(token="0123456789abcdef"))
        uvicorn.run(app)
        ```
    """
    config = config or ServeConfig()
    service = Service(index, config, asker)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.close)  # requests that are given up still answer

    # FastAPI's own pages for OpenAPI load scripts from elsewhere; /openapi.json is enough.
    app = FastAPI(
        title="crossgaze",
        version=__version__,
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    problems.install(app)
    # Only said here, for OpenAPI: the guard has looked at the token by then.
    bearer = HTTPBearer(auto_error=False, description="what the server was started with")
    token = [Depends(bearer)] if config.token is not None else []
    for made in (search, images, why, state):
        app.include_router(made.router(service), dependencies=token)
    app.include_router(entrance.router(service))
    app.include_router(page.router())
    # The last one added is the outermost.
    app.add_middleware(Limits, config=config)
    app.add_middleware(Guard, config=config)
    app.add_middleware(Shell, metrics=service.metrics, is_stopping=lambda: service.stopping)
    return app
