"""What a service may do and how much of it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from crossgaze.errors import InputError, require_folder

SHORTEST_TOKEN = 16  # signs; a short one could be tried out
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class ServeConfig:
    """The settings of a service.

    Args:
        host: the address it is bound to. Any but this machine's own wants a token.
        token: what a client must show; None where only this machine can ask.
        folders: folders that may be added to the index over HTTP; no other may.
        upload_bytes: the largest picture that may be sent.
        upload_pixels: the most pixels it may have, checked before they are decoded.
        body_bytes: the largest body of any other request.
        waiting: requests that may wait for the models; one more is told to come again.
        seconds: how long each step of a request (candidates, then parts of the exact order) may
            wait and compute.
        rate: requests a second that one address may make of the models; 0 is no limit; None is no
            limit on this machine's own address without a token and 20 elsewhere.
        cache_bytes: memory for thumbnails.

    Example:
        >>> ServeConfig(host="0.0.0.0")
        Traceback (most recent call last):
        ...
        crossgaze.errors.InputError: host: at 0.0.0.0 others could see your photographs, wanted a \
token with it (--token, or CROSSGAZE_TOKEN)
    """

    host: str = "127.0.0.1"
    token: str | None = None
    folders: tuple[Path, ...] = ()
    upload_bytes: int = 20_000_000
    upload_pixels: int = 50_000_000
    body_bytes: int = 64_000
    waiting: int = 32
    seconds: float = 60.0
    rate: float | None = None
    cache_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        if self.token is None and not self.is_local:
            raise InputError(
                f"host: at {self.host} others could see your photographs, wanted a token with it "
                "(--token, or CROSSGAZE_TOKEN)"
            )
        if self.token is not None:
            require_token(self.token)
        for name in ("upload_bytes", "upload_pixels", "body_bytes", "waiting", "seconds"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name}: got {getattr(self, name)}, wanted more than 0")
        if self.rate is not None and not self.rate >= 0:
            raise InputError(f"rate: got {self.rate}, wanted 0 or more")
        folders = [require_folder(folder, "a folder of photographs") for folder in self.folders]
        object.__setattr__(self, "folders", tuple(folder.resolve() for folder in folders))

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def limit(self) -> float:
        """Requests a second of one address, 0 for any number."""
        if self.rate is not None:
            return self.rate
        # With a token a proxy may stand before it, whose clients could guess.
        return 0.0 if self.is_local and self.token is None else 20.0


def is_loopback(host: str) -> bool:
    """Tell whether an address is this machine's own.

    Example:
        >>> [is_loopback(host) for host in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "me.org")]
        [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def require_token(token: str) -> None:
    """Refuse a token that could be guessed or could not be sent."""
    if len(token) < SHORTEST_TOKEN:
        raise InputError(
            f"token: has {len(token)} signs, wanted at least {SHORTEST_TOKEN}; for instance what "
            "`openssl rand -hex 16` prints"
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InputError("token: wanted letters, digits and signs of ASCII without spaces")
