"""Who may come in: the right host, no other site's page, and where it is wanted, the token."""

from __future__ import annotations

import hashlib
import hmac
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from crossgaze.web.limits import Rate, too_many
from crossgaze.web.problems import refuse
from crossgaze.web.settings import LOOPBACK, ServeConfig

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

OPEN = ("/", "/health", "/login")  # beside /static/: nothing there says anything of a photograph
MORE = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}  # headers of a refusal
SAFE = ("GET", "HEAD", "OPTIONS")


def session_of(token: str) -> str:
    """Return what the page's cookie holds: of the token, yet not the token."""
    return hmac.new(token.encode(), b"crossgaze session", hashlib.sha256).hexdigest()


def cookie_of(token: str) -> str:
    """Return what the page's cookie is called.

    A browser keeps one set of cookies for all ports of a machine: each token's has its own name.
    """
    return (
        f"crossgaze-{hmac.new(token.encode(), b'crossgaze cookie', hashlib.sha256).hexdigest()[:8]}"
    )


def same(one: str, other: str) -> bool:
    """Compare two texts in a time that tells nothing."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


class Guard:
    """Refuses requests before anything looks at them.

    Against DNS rebinding: on a loopback address without a token, Host must be this machine's name.
    With a token any name will do, such as that of a proxy: a page that was bound to this address
    has neither the token nor its cookie. Against other sites' pages: what a browser says of a
    request's origin must be this page's own. Against guessing: an address that shows wrong tokens
    faster than the rate is not listened to.

    Args:
        app: what is guarded.
        config: the service's settings.
    """

    def __init__(self, app: ASGIApp, config: ServeConfig) -> None:
        self.app, self.config = app, config
        alone = config.is_local and config.token is None
        self._hosts = {*LOOPBACK, config.host.lower()} if alone else None
        token = config.token
        self._session, self._cookie = (session_of(token), cookie_of(token)) if token else ("", "")
        self._wrong_tokens = Rate(config.limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through or answer it."""
        if scope["type"] == "http":
            headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
            wrong = self._wrong(scope, headers)
            if wrong is not None:
                status, words = wrong
                await refuse(send, status, words, MORE.get(status, {}))
                return
        await self.app(scope, receive, send)

    def _wrong(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if self._hosts is not None and _name(host) not in self._hosts:
            return 421, f"this server is not called {host!r}; open it by its own address"
        site = headers.get("sec-fetch-site", "none")
        safe = scope["method"] in SAFE
        arriving = safe and scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
        if site not in ("none", "same-origin") and not arriving:
            return 403, "another site's page may not use this server"
        origin = headers.get("origin")
        if not safe and origin is not None and _netloc(origin) != host.lower():
            return 403, "another site's page may not use this server"
        path, token = scope["path"], self.config.token
        if token is None or path in OPEN or path.startswith("/static/"):
            return None
        return self._wrong_token((scope.get("client") or ("",))[0], headers, token)

    def _wrong_token(
        self, address: str, headers: dict[str, str], token: str
    ) -> tuple[int, str] | None:
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        bearer = shown.strip() if scheme.lower() == "bearer" else ""
        cookie = _cookie(headers.get("cookie", ""), self._cookie)
        rate = self._wrong_tokens
        # Before it is compared: whoever guesses too fast does not learn whether a guess was right.
        if (bearer or cookie) and rate.rate and rate.left(address) < 1:
            return 429, too_many(rate.rate)
        if same(bearer, token) or same(cookie, self._session):
            return None
        if bearer or cookie:
            rate.allows(address)  # counted
        return 401, "this server wants its token"


def _name(host: str) -> str:
    """Return a Host header's name without its port.

    Example:
        >>> _name("127.0.0.1:8000"), _name("[::1]:8000"), _name("Localhost")
        ('127.0.0.1', '::1', 'localhost')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _netloc(origin: str) -> str:
    """Return an Origin header's name and port, "" of one that has none.

    Example:
        >>> _netloc("http://127.0.0.1:8000"), _netloc("null"), _netloc("http://[")
        ('127.0.0.1:8000', '', '')
    """
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value
