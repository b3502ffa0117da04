"""The page in a real browser where the server itself is the matter: gone, guarded, or empty."""

import signal

import pytest

from browser_parts import chromium, expect, needs_chromium, page_of
from crossgaze.search.index import Index
from crossgaze.vision.settings import ExtractConfig
from page_parts import make_world, search, serving

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from crossgaze.web.app import create_app
from crossgaze.web.settings import ServeConfig
from web_parts import running

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


def test_a_server_that_is_stopped_in_the_middle_and_comes_back(browser, world):
    with page_of(browser) as page:
        with serving(world) as (process, address):
            page.goto(address)
            search(page)
            shown = page.locator("#results .tile").count()
            process.kill()
            process.wait()
            page.get_by_role("searchbox").fill("a cat on the table")
            page.keyboard.press("Enter")
            alert = page.get_by_role("alert").first
            expect(alert).to_contain_text("The server does not answer")
            assert page.locator("#results .tile").count() == shown  # what was there stays
            page.locator("#results .tile").first.click()
            expect(page.locator("#look-said")).to_contain_text("The server does not answer")
            page.keyboard.press("Escape")
        port = int(address.rsplit(":", 1)[1].strip("/"))
        with serving(world, port=port) as (process, _):
            page.get_by_role("button", name="Try again").click()
            expect(page.locator("#status")).to_contain_text("Best first")
            expect(page.locator("#problem")).to_be_hidden()
            process.terminate()  # and it ends when it is asked to
            assert process.wait(60) in (0, -signal.SIGTERM)
        assert (world / "index" / "index.json").is_file()


def test_the_token_is_asked_for_once(browser, world):
    token = "a-token-of-the-tests"
    with (
        Index.open(world / "index") as index,
        running(create_app(index, ServeConfig(token=token))) as address,
        page_of(browser) as page,
    ):
        page.goto(address)
        expect(page.locator("#login")).to_be_visible()
        page.locator("#token").fill("not the right one")
        page.keyboard.press("Enter")
        expect(page.locator("#login-said")).to_contain_text("this is not the token")
        page.locator("#token").fill(token)
        page.keyboard.press("Enter")
        expect(page.locator("#results .tile")).not_to_have_count(0)
        page.reload()
        expect(page.locator("#results .tile")).not_to_have_count(0)
        expect(page.locator("#login")).to_be_hidden()
        assert page.evaluate("document.cookie") == ""  # no script can read it


def test_an_empty_library_says_what_to_do(browser, world, tmp_path):
    with (
        Index.create(
            tmp_path / "index",
            embedder=world / "vse",
            reranker=world / "scan",
            detector=ExtractConfig(regions="grid", backbone="efficientnet-lite0", size=64, grid=3),
        ) as index,
        running(create_app(index)) as address,
        page_of(browser) as page,
    ):
        page.goto(address)
        expect(page.locator("#empty")).to_contain_text("No photographs yet")
        expect(page.locator("#empty")).to_contain_text("crossgaze index PHOTOS/ --into INDEX/")
