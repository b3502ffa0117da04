"""The page: a few files that come with the package, read once."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from crossgaze.web.problems import RequestError

FOLDER = Path(__file__).parents[1] / "static"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


def router() -> APIRouter:
    """Return the routes."""
    made = APIRouter(include_in_schema=False)
    # By name, from what is there now: no path of a client's is ever joined to a folder.
    files = {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.suffix in KINDS}
    tags = {name: f'"{hashlib.sha256(data).hexdigest()[:16]}"' for name, data in files.items()}

    def give(request: Request, name: str) -> Response:
        if name not in files:
            raise RequestError(404, "there is nothing at this address")
        headers = {"ETag": tags[name], "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tags[name]:
            return Response(status_code=304, headers=headers)
        kind = KINDS[Path(name).suffix]
        return Response(files[name], headers={**headers, "content-type": kind})

    @made.head("/")
    @made.get("/")
    async def page(request: Request) -> Response:
        return give(request, "index.html")

    @made.get("/static/{name}")
    async def static(request: Request, name: str) -> Response:
        return give(request, name)

    @made.get("/favicon.ico")
    async def icon(request: Request) -> Response:
        return give(request, "icon.svg")

    return made
