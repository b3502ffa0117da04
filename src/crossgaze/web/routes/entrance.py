"""What is answered without a token: the entrance, and whether anybody is there."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from crossgaze.web.guard import cookie_of, same, session_of
from crossgaze.web.problems import RequestError
from crossgaze.web.routes.parameters import ERRORS
from crossgaze.web.schemas import Health, Token
from crossgaze.web.service import Service

YEAR = 365 * 24 * 3600


def router(service: Service) -> APIRouter:
    """Return the routes."""
    made = APIRouter(responses=ERRORS)

    @made.post("/login", tags=["token"], status_code=204, response_class=Response)
    async def login(request: Request, given: Token) -> Response:
        """Take the token from the page and remember it in a cookie that no script can read."""
        answer = Response(status_code=204)
        token = service.config.token
        if token is None:
            return answer
        if not same(given.token, token):
            raise RequestError(401, "this is not the token that the server was started with")
        answer.set_cookie(
            cookie_of(token),
            session_of(token),
            max_age=YEAR,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    @made.head("/health", include_in_schema=False)
    @made.get("/health", tags=["operation"])
    async def health() -> Health:
        """Tell that the service answers."""
        return Health(status="ok")

    return made
