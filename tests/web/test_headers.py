"""What every answer of the service has: headers, a page that asks nobody else, words for errors."""

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from crossgaze.web.routes import search as search_routes
from crossgaze.web.shell import HEADERS
from web_parts import client_of, make_world


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture
def client(index):
    with client_of(index) as made:
        yield made


@pytest.mark.parametrize(
    "address", ["/", "/static/app.js", "/health", "/nowhere", "/search", "/images/1/thumbnail"]
)
def test_every_answer_has_the_headers(client, address):
    response = client.get(address)
    for name, value in HEADERS.items():
        assert response.headers[name] == value
    assert "access-control-allow-origin" not in response.headers
    assert "server" not in response.headers
    assert "cache-control" in response.headers


def test_the_page_asks_nobody_else_and_needs_nothing_inline(client):
    page = client.get("/").text
    assert client.get("/").headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(
        part.strip().split(" ", 1) for part in HEADERS["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "style=" not in page
    assert "<style" not in page
    assert " on" not in page.replace(" one", "").replace(" or", "").split("<body>")[0]
    folder = Path(search_routes.__file__).parents[1] / "static"
    for path in folder.iterdir():
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text, path
        assert "innerHTML" not in text, path
        assert client.get(f"/static/{path.name}").status_code == 200


def test_unknown_addresses_and_methods_in_words(client):
    assert client.get("/nowhere").json() == {"error": "there is nothing at this address"}
    wrong = client.put("/search")
    assert wrong.status_code == 405
    assert wrong.json() == {"error": "this address does not take that method"}
    assert client.get("/docs").status_code == 404
