"""Every error that a client sees: a status and one line of plain words."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from crossgaze.errors import InputError
from crossgaze.search.ranking import MissingRegionsError

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.types import Send

log = logging.getLogger("crossgaze.web")
INSIDE = "something went wrong inside the server; its log says what"
WORDS = {
    404: "there is nothing at this address",
    405: "this address does not take that method",
}


class RequestError(Exception):
    """What a client did wrong or must wait for.

    Args:
        status: of HTTP.
        message: one line.
        headers: beside it.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


class BusyError(RequestError):
    """There is more to do than may wait."""

    def __init__(self, message: str = "the server is busy; try again in a moment") -> None:
        super().__init__(503, message, {"Retry-After": "1"})


def explain(error: Exception) -> tuple[int, str, dict[str, str]]:
    """Return status, words and headers for what went wrong.

    Example:
        >>> explain(InputError("query: is empty"))
        (422, 'query: is empty', {})
    """
    if isinstance(error, RequestError):
        return error.status, error.message, error.headers
    if isinstance(error, RequestValidationError):
        return 422, in_words(error.errors()), {}
    if isinstance(error, HTTPException):
        said = str(error.detail)
        default = said == "Not Found" or said == "Method Not Allowed"
        words = WORDS.get(error.status_code, said) if default else said
        return error.status_code, words, dict(error.headers or {})
    if isinstance(error, MissingRegionsError):
        return 409, str(error), {}
    if isinstance(error, InputError):
        return 422, " ".join(str(error).split()), {}
    log.error("a request failed", exc_info=error)
    return 500, INSIDE, {}


def in_words(errors: Sequence[Any]) -> str:
    """Return what is wrong with a request's values, the first of them.

    Example:
        >>> in_words([{"loc": ("query", "limit"), "msg": "Input should be a valid integer"}])
        'limit: input should be a valid integer'
    """
    first = errors[0] if errors else {"loc": (), "msg": "the request cannot be read"}
    where = ".".join(str(part) for part in first["loc"][1:])
    said = str(first["msg"])
    if first.get("type") == "json_invalid":
        return "the body is not JSON"
    if first.get("type") == "model_attributes_type" and not where:
        return "the body is not an object of JSON, or its Content-Type does not say so"
    said = said[:1].lower() + said[1:]
    return f"{where}: {said}" if where else said


def install(app: FastAPI) -> None:
    """Let an app answer every error this way."""

    async def answer(_: Request, error: Exception) -> JSONResponse:
        status, words, headers = explain(error)
        return JSONResponse({"error": words}, status, headers)

    for kind in (RequestError, InputError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer)


async def refuse(send: Send, status: int, words: str, headers: Mapping[str, str] = {}) -> None:
    """Answer with an error below the app."""
    body = json.dumps({"error": words}).encode()
    lines = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(k.lower().encode(), v.encode("latin-1")) for k, v in lines.items()],
        }
    )
    await send({"type": "http.response.body", "body": body})
