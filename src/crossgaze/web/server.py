"""Running the service: a socket, uvicorn, and an end when one is asked for."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from crossgaze.errors import InputError, MissingExtraError

try:
    import uvicorn
except ImportError:
    raise MissingExtraError("the service", "uvicorn", "serve") from None

if TYPE_CHECKING:
    from fastapi import FastAPI

    from crossgaze.web.service import Service

CONNECTIONS = 512  # at a time; more are turned away before anything is read of them
PATIENCE = 3  # seconds that answers under way have when the service is stopped


def bind(host: str, port: int) -> socket.socket:
    """Take an address.

    Args:
        host: a name or an address.
        port: 0 for one that is free.
    """
    made = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except (OSError, OverflowError) as error:
        if made is not None:
            made.close()
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{host}:{port}: cannot be listened at ({why}); try --port 0") from None
    return made


def address_of(bound: socket.socket, host: str) -> str:
    """Return the URL to open."""
    port = bound.getsockname()[1]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def address_elsewhere(bound: socket.socket, host: str) -> str | None:
    """Return the URL by the machine's name, where the host says "any", which nobody can open."""
    try:
        anywhere = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return None
    return address_of(bound, socket.gethostname()) if anywhere else None


def configured(app: FastAPI) -> uvicorn.Config:
    """Return how uvicorn serves an app.

    Where a token is wanted, what a proxy on this machine says of a request (X-Forwarded-For and
    -Proto) is believed; FORWARDED_ALLOW_IPS names one on another machine.
    """
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=app.state.service.config.token is not None,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=PATIENCE,
        lifespan="on",
    )


class Server(uvicorn.Server):
    """Tells the service that it ends before anybody waits for what is under way.

    Args:
        app: the service.
    """

    def __init__(self, app: FastAPI) -> None:
        super().__init__(configured(app))
        self._service: Service = app.state.service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Give requests under way their time, then give them up."""
        self._service.stop()
        await super().shutdown(sockets)
        if self.force_exit:  # Ctrl-C again: uvicorn waits for nothing, and prints a traceback then
            await self.lifespan.shutdown()


def serve(app: FastAPI, bound: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM."""
    with suppress(KeyboardInterrupt):  # uvicorn, once it has shut down, passes Ctrl-C on
        Server(app).run(sockets=[bound])
