"""The page where something is missing: photographs, the server, or the right token."""

import pytest

import search_parts
import web_parts
from browser_parts import chromium, expect, needs_chromium, page_of

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from crossgaze.web.app import create_app
from crossgaze.web.settings import ServeConfig
from page_parts import search
from web_parts import TOKEN, running

pytestmark = needs_chromium
OLD = "These photographs were found before"
SILENT = "The server does not answer"


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return web_parts.make_world(tmp_path_factory.mktemp("world"), 3)


@pytest.fixture
def page(browser, index):
    with running(create_app(index)) as address, page_of(browser) as made:
        made.goto(address)
        expect(made.locator("#results .tile")).to_have_count(3)
        yield made


def type_in(page, sentence):
    page.get_by_role("searchbox").fill(sentence)
    page.keyboard.press("Enter")


def test_a_search_of_an_empty_library_waits_for_photographs(browser, tmp_path):
    empty = tmp_path / "photos"
    for number in range(3):
        search_parts.make_photo(empty / f"{number}.png", number)
    with (
        web_parts.make_world(tmp_path, 0) as index,
        running(create_app(index, ServeConfig(folders=(empty,)))) as address,
        page_of(browser) as page,
        page_of(browser) as by_address,
        page_of(browser) as other,
    ):
        page.goto(address)
        type_in(page, "a red dog")
        by_address.goto(f"{address}?q=a+blue+dog")
        other.goto(address)
        for one in (page, by_address):
            expect(one).to_have_title(
                "a blue dog · crossgaze" if one is by_address else "a red dog · crossgaze"
            )
            expect(one.locator("#empty")).to_contain_text("No photographs yet")
            expect(
                one.locator("#empty").get_by_role("button", name="Add or update")
            ).to_be_visible()
            expect(one.locator("#problem")).to_be_hidden()
            expect(one.locator("#status")).to_have_text("")
        other.locator("#empty").get_by_role("button", name="Add or update").click()
        for one in (page, by_address):
            expect(one.locator("#results .scored")).to_have_count(3)
            expect(one.locator("#status")).to_contain_text("Best first")
            expect(one.locator("#empty")).to_be_hidden()
            assert one.complaints == []


def test_a_search_that_is_refused_in_an_empty_library_can_be_gone_on_from(browser, tmp_path):
    with (
        web_parts.make_world(tmp_path, 0) as index,
        running(create_app(index)) as address,
        page_of(browser) as page,
    ):
        page.goto(f"{address}?like=1")
        expect(page.get_by_role("alert").first).to_contain_text("photograph 1 is not in the index")
        expect(page.locator("#empty")).to_contain_text("No photographs yet")
        search_parts.make_photo(tmp_path / "photos" / "a.png", 1)
        web_parts.reopen(tmp_path).add(tmp_path / "photos")
        expect(page.locator("#results .scored")).to_have_count(1)
        expect(page.locator("#problem")).to_be_hidden()


def test_a_search_without_an_answer_leaves_what_was_found_and_says_so(page):
    search(page, "a red dog")
    page.route("**/*", lambda route: route.abort())
    type_in(page, "a blue cat")
    expect(page.locator("#problem")).to_contain_text(SILENT)
    expect(page.locator("#status")).to_contain_text(OLD)
    expect(page.locator("#results .tile")).to_have_count(3)
    assert float(page.locator("#results").evaluate("one => getComputedStyle(one).opacity")) < 0.6
    # What else goes wrong leaves its way to try again, and says the same words not twice.
    page.get_by_role("button", name="Library").click()
    expect(page.locator("#other")).to_be_hidden()
    drop = """() => { const data = new DataTransfer();
        data.items.add(new File(['x'], 'x.txt', { type: 'text/plain' }));
        window.dispatchEvent(new DragEvent('drop', { dataTransfer: data, cancelable: true })); }"""
    refused = {"status": 422, "json": {"error": "x.txt: is not an image"}}
    page.route(
        "**/search?**",
        lambda one: one.fulfill(**refused) if one.request.method == "POST" else one.abort(),
    )
    page.evaluate(drop)
    expect(page.locator("#other")).to_contain_text("is not an image")
    expect(page.locator("#problem")).to_contain_text(SILENT)
    expect(page.locator("#status")).to_contain_text(OLD)
    page.unroute_all()
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#status")).to_contain_text("Best first")
    expect(page).to_have_title("a blue cat · crossgaze")
    expect(page.locator("#problem")).to_be_hidden()
    expect(page.locator("#results")).to_have_css("opacity", "1")


def test_a_second_escape_does_not_close_the_way_in(browser, index):
    with (
        running(create_app(index, ServeConfig(token=TOKEN))) as address,
        page_of(browser) as page,
    ):
        page.goto(address)
        expect(page.locator("#login")).to_be_visible()
        for _ in range(4):
            page.keyboard.press("Escape")
            page.wait_for_timeout(100)
            expect(page.locator("#login")).to_be_visible()
        page.locator("#token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("#results .tile")).to_have_count(3)
        expect(page.locator("#login")).to_be_hidden()


def test_logging_out_of_a_server_that_is_gone_is_said(browser, index):
    with (
        running(create_app(index, ServeConfig(token=TOKEN))) as address,
        page_of(browser) as page,
    ):
        page.goto(address)
        page.locator("#token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("#results .tile")).to_have_count(3)
        page.get_by_role("button", name="Library").click()
        expect(page.locator("#logout")).to_be_visible()
        page.route("**/logout", lambda route: route.abort())
        page.locator("#logout").click()
        expect(page.locator("#library")).to_be_hidden()
        expect(page.locator("#other")).to_contain_text(f"You are still logged in. {SILENT}")
        page.unroute_all()
        page.get_by_role("button", name="Library").click()
        above = page.locator("#library-folders").bounding_box()
        space = page.locator("#logout").bounding_box()["y"] - above["y"] - above["height"]
        assert space >= 10  # it touches no sentence
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("#login")).to_be_visible()
