"""Who may come in, and who not."""

import pytest

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

import requests

from crossgaze.errors import InputError
from crossgaze.web.app import create_app
from crossgaze.web.guard import cookie_of, session_of
from crossgaze.web.settings import ServeConfig
from web_parts import TOKEN, client_of, make_world, running

COOKIE = cookie_of(TOKEN)
GUARDED = ("/search?q=dog", "/images", "/images/1", "/images/1/thumbnail", "/index", "/metrics")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("world"), 2)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[::1", "10.0.0.7"]
)
def test_on_this_machine_only_its_own_names_are_answered(index, host):
    with client_of(index) as client:
        for address in ("/", "/images", "/health"):
            response = client.get(address, headers={"Host": host})
            assert response.status_code == 421
            assert "this server is not called" in response.json()["error"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST:1"])
def test_names_of_this_machine(index, host):
    with client_of(index) as client:
        assert client.get("/images", headers={"Host": host}).status_code == 200


def test_other_sites_pages_may_not_use_it(index):
    cross = {"Sec-Fetch-Site": "cross-site"}
    with client_of(index) as client:
        assert client.get("/images", headers=cross).status_code == 403
        # Another port of this machine is the same site, and another page.
        assert client.get("/images", headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
        same = {"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1"}
        assert client.get("/images", headers=same).status_code == 200
        arriving = {**cross, "Sec-Fetch-Mode": "navigate"}
        assert client.get("/", headers=arriving).status_code == 200  # a link to the page
        assert client.get("/images/1/file", headers=arriving).status_code == 403
        for origin in ("http://evil.example", "null", "http://127.0.0.1:9999", "http://["):
            response = client.post("/index", json={"folder": "x"}, headers={"Origin": origin})
            assert response.status_code == 403
            assert "another site" in response.json()["error"]
        allowed = client.post("/index", json={"folder": "x"}, headers={"Origin": same["Origin"]})
        assert "no folder may be added" in allowed.json()["error"]
        preflight = client.options("/index", headers={"Origin": "http://evil.example"})
        assert "access-control-allow-origin" not in preflight.headers


def test_elsewhere_a_token_is_wanted():
    with pytest.raises(InputError, match="others could see your photographs, wanted a token"):
        ServeConfig(host="0.0.0.0")
    with pytest.raises(InputError, match="token: has 3 signs, wanted at least 16"):
        ServeConfig(host="0.0.0.0", token="abc")
    with pytest.raises(InputError, match="without spaces"):
        ServeConfig(token="a b c d e f g h i j")


def test_behind_a_proxy_that_speaks_https(index):
    """What nginx sends as docs/serve.md sets it up, over a socket, to the server as it is run."""
    said = {
        "Host": "photos.example",
        "Origin": "https://photos.example",
        "Sec-Fetch-Site": "same-origin",
        "X-Forwarded-Proto": "https",
    }
    here, there = ({**said, "X-Forwarded-For": one} for one in ("203.0.113.5", "203.0.113.6"))
    with running(create_app(index, ServeConfig(token=TOKEN, rate=0.01))) as address:

        def send(method, path, headers, **what):
            return requests.request(method, address + path, headers=headers, timeout=60, **what)

        assert send("GET", "", here).status_code == 200
        entered = send("POST", "login", here, json={"token": TOKEN})
        assert entered.status_code == 204
        cookie = entered.headers["set-cookie"]
        assert "Secure" in cookie
        inside = here | {"Cookie": cookie.split(";")[0]}
        assert send("GET", "images", inside).status_code == 200
        other = inside | {"Origin": "https://evil.example"}
        assert send("POST", "ask", other, json={}).status_code == 403
        # Who guesses is known by the address that the proxy tells.
        wrong = there | {"Authorization": "Bearer wrong"}
        assert [send("GET", "images", wrong).status_code for _ in range(2)] == [401, 429]
        assert send("GET", "images", inside).status_code == 200
        plain = send("POST", "login", {}, json={"token": TOKEN})  # on this machine, over HTTP
        assert "Secure" not in plain.headers["set-cookie"]
    with running(create_app(index)) as address:  # without a token, for this machine alone
        assert requests.get(address, headers=here, timeout=60).status_code == 421


def test_openapi_says_where_the_token_goes(outside, index):
    told = outside.get("/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"}).json()
    ((name, scheme),) = told["components"]["securitySchemes"].items()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    for path, methods in told["paths"].items():
        for what in methods.values():
            wanted = [] if path in ("/health", "/login") else [{name: []}]
            assert what.get("security", []) == wanted, path
    with client_of(index) as client:
        assert "securitySchemes" not in client.get("/openapi.json").json()["components"]


@pytest.fixture
def outside(index):
    from starlette.testclient import TestClient

    app = create_app(index, ServeConfig(host="0.0.0.0", token=TOKEN, rate=0))
    with TestClient(app, base_url="http://photos.example") as client:
        yield client


def test_without_the_token_nothing_is_told(outside):
    for address in GUARDED:
        for headers in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": f"Bearer {TOKEN}x"},
            {"Authorization": "Bearer "},
            {"Cookie": f"{COOKIE}=wrong"},
            {"Cookie": f"{COOKIE}={TOKEN}"},
            {"Cookie": f"{COOKIE}="},
            {"Cookie": "\xff;;=\x01"},
        ):
            raw = {name: value.encode("latin-1") for name, value in headers.items()}
            response = outside.get(address, headers=raw)
            assert response.status_code == 401, (address, headers)
            assert response.json() == {"error": "this server wants its token"}
            assert response.headers["www-authenticate"] == "Bearer"
    assert outside.get("/openapi.json").status_code == 401
    assert outside.get("/").status_code == outside.get("/static/app.js").status_code == 200
    assert outside.get("/health").json() == {"status": "ok"}


def test_wrong_tokens_are_limited_wherever_they_are_shown(index):
    from starlette.testclient import TestClient

    app = create_app(index, ServeConfig(host="0.0.0.0", token=TOKEN, rate=0.01))
    right = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(app, base_url="http://photos.example") as client:
        for _ in range(3):
            assert client.get("/images").status_code == 401  # no guess: the page asks like that
            assert client.get("/images", headers=right).status_code == 200
        wrong = {"Authorization": "Bearer wrong"}
        assert client.get("/images", headers=wrong).status_code == 401
        for headers in (wrong, {"Cookie": f"{COOKIE}=wrong"}, right):
            response = client.get("/images/1", headers=headers)
            assert response.status_code == 429
            assert response.headers["retry-after"] == "1"
        assert client.get("/health").status_code == 200


def test_the_token_in_a_header(outside):
    for address in GUARDED:
        response = outside.get(address, headers={"Authorization": f"Bearer {TOKEN}"})
        assert response.status_code == 200, address


def test_logging_in_and_out(outside):
    wrong = outside.post("/login", json={"token": "something else"})
    assert wrong.status_code == 401
    assert "set-cookie" not in wrong.headers
    right = outside.post("/login", json={"token": TOKEN})
    assert right.status_code == 204
    cookie = right.headers["set-cookie"]
    assert TOKEN not in cookie
    assert cookie.startswith(f"{COOKIE}={session_of(TOKEN)};")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert outside.get("/images").status_code == 200  # the client has kept the cookie
    assert outside.get("/index").json()["token"] is True
    assert outside.post("/logout").status_code == 204
    assert outside.get("/images").status_code == 401


def test_two_libraries_on_one_machine_do_not_log_each_other_out(index):
    other = f"{TOKEN}-of-another"
    assert TOKEN not in COOKIE
    with (
        running(create_app(index, ServeConfig(token=TOKEN))) as here,
        running(create_app(index, ServeConfig(token=other))) as there,
        requests.Session() as client,  # like a browser's, its cookies are those of all ports
    ):

        def status(address):
            return client.get(f"{address}images", timeout=60).status_code

        for address, token in ((here, TOKEN), (there, other)):
            entered = client.post(f"{address}login", json={"token": token}, timeout=60)
            assert entered.status_code == 204
        assert (status(here), status(there)) == (200, 200)
        assert client.post(f"{here}logout", timeout=60).status_code == 204
        assert (status(here), status(there)) == (401, 200)


def test_an_ipv6_address_and_wrong_settings():
    assert ServeConfig(host="::1").is_local
    for name in ("upload_bytes", "upload_pixels", "body_bytes", "waiting", "seconds"):
        with pytest.raises(InputError, match=f"{name}: got 0, wanted more than 0"):
            ServeConfig(**{name: 0})
    with pytest.raises(InputError, match="rate: got -1"):
        ServeConfig(rate=-1)
    assert ServeConfig().limit == 0
    assert ServeConfig(host="10.0.0.1", token=TOKEN).limit == 20
    assert ServeConfig(token=TOKEN).limit == 20  # a proxy may stand before it
