"""The outermost layer: security headers, measurement, and nothing that ends in a traceback."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect

from crossgaze.web.metrics import Metrics
from crossgaze.web.problems import explain, refuse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
STOPPING = (503, "the server is being stopped; try again later", {"Retry-After": "5"})
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Shell:
    """Measures every request and gives every answer its headers.

    Args:
        app: the rest of the service.
        metrics: where it is counted.
        is_stopping: tells whether the service is being stopped.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, is_stopping: Callable[[], bool]) -> None:
        self.app, self.metrics, self.is_stopping = app, metrics, is_stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def sealed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name.lower() for name, _ in message["headers"]}
                more = HEADERS if b"cache-control" in given else _KEPT_NOWHERE
                message["headers"] = [
                    *message["headers"],
                    *((k.encode(), v.encode()) for k, v in more.items()),
                ]
            await send(message)

        try:
            await self.app(scope, receive, sealed)
        except ClientDisconnect:
            pass  # nobody is there to be told; it is counted as gone
        except asyncio.CancelledError:
            if not status:
                await refuse(sealed, *STOPPING)
            # uvicorn would print a traceback of what it cancelled itself.
            if not self.is_stopping():
                raise
        except Exception as error:  # noqa: BLE001 (whatever it is, a client gets words)
            said = explain(error)
            if not status:
                await refuse(sealed, *said)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self.metrics.served(route, scope["method"], status, time.perf_counter() - started)


_KEPT_NOWHERE = {**HEADERS, "cache-control": "no-store"}
