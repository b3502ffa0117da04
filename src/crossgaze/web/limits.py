"""How much one client may send, and how often."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from crossgaze.web.problems import refuse
from crossgaze.web.settings import ServeConfig

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COSTLY = ("/search", "/explain", "/ask", "/index", "/login")  # what the rate is of
COSTLY_ENDS = ("/sentences",)  # of a photograph, which encodes and re-ranks them
ADDRESSES = 4096  # remembered; the one that has been silent longest is forgotten first


class Rate:
    """A bucket an address: it holds two seconds' worth, and fills at the rate.

    Args:
        rate: requests a second; 0 for any number.
        clock: seconds.

    Example:
        >>> now = [0.0]
        >>> rate = Rate(1, lambda: now[0])
        >>> [rate.allows("a") for _ in range(3)]
        [True, True, False]
        >>> now[0] = 1.0
        >>> rate.allows("a"), rate.allows("a")
        (True, False)
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self._clock = rate, clock
        self._most = max(2 * rate, 1.0)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def left(self, address: str) -> float:
        """Return how many requests an address may make now, counting none."""
        now = self._clock()
        left, last = self._left.get(address, (self._most, now))
        return min(left + (now - last) * self.rate, self._most)

    def allows(self, address: str) -> bool:
        """Count a request, unless it is one too many."""
        if not self.rate:
            return True
        left = self.left(address)
        allowed = left >= 1
        self._left.pop(address, None)
        self._left[address] = (left - allowed, self._clock())
        while len(self._left) > ADDRESSES:
            self._left.popitem(last=False)
        return allowed


class Limits:
    """Refuses what is too large or comes too often.

    Args:
        app: what is protected.
        config: the service's settings.
    """

    def __init__(self, app: ASGIApp, config: ServeConfig) -> None:
        self.app, self.config = app, config
        self.rate = Rate(config.limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through or answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        address = (scope.get("client") or ("",))[0]
        path = scope["path"]
        costly = path.startswith(COSTLY) or path.endswith(COSTLY_ENDS)
        if costly and not self.rate.allows(address):
            await refuse(send, 429, too_many(self.rate.rate), {"Retry-After": "1"})
            return
        most = self._most(scope)
        said = dict(scope["headers"]).get(b"content-length", b"0")
        if said.isdigit() and int(said) > most:
            await refuse(send, 413, too_large(most))
            return
        await self.app(scope, _counted(receive, most), send)

    def _most(self, scope: Scope) -> int:
        picture = scope["method"] == "POST" and scope["path"] == "/search"
        return self.config.upload_bytes if picture else self.config.body_bytes


def too_many(rate: float) -> str:
    """Return the words for a client that comes too often."""
    return f"too many requests, {rate:g} a second are allowed; wait a moment"


def too_large(most: int) -> str:
    """Return the words for a body that is too large."""
    return f"too large: at most {most:,} bytes can be sent here"


def _counted(receive: Receive, most: int) -> Receive:
    """Return a `receive` that ends a body which is longer than allowed, whatever it said."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise HTTPException(413, too_large(most))
        return message

    return counted
