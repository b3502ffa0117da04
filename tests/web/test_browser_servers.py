"""The page in a real browser where the server itself is the matter: gone, guarded, or filling."""

import re
import signal
import time

import pytest

import search_parts
import web_parts
from browser_parts import chromium, expect, needs_chromium, page_of
from crossgaze.search import adding
from crossgaze.search.index import Index
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


def test_an_empty_library_says_what_to_do_and_sees_that_it_was_done(browser, tmp_path):
    with (
        web_parts.make_world(tmp_path, 0) as index,
        running(create_app(index)) as address,
        page_of(browser) as page,
    ):
        page.goto(address)
        expect(page.locator("#empty")).to_contain_text("No photographs yet")
        expect(page.locator("#empty")).to_contain_text("this page sees it by itself")
        expect(page.locator("#empty")).to_contain_text("crossgaze index PHOTOS/ --into INDEX/")
        for number in range(3):
            search_parts.make_photo(tmp_path / "photos" / f"{number}.png", number)
        web_parts.reopen(tmp_path).add(tmp_path / "photos")
        expect(page.locator("#results .tile")).to_have_count(3)
        expect(page.locator("#empty")).to_be_hidden()
        expect(page.locator("#status")).to_contain_text("3 photographs")
        page.wait_for_timeout(3000)  # a look that was under way
        page.asked.clear()
        page.wait_for_timeout(6000)
        assert page.asked == []  # where something is, nobody looks


class Gate(search_parts.CellSource):
    """Lets photographs through up to one of them."""

    before = ""  # a name, which waits with all behind it

    def __call__(self, photos, names, go_on):
        while names and names[0] >= self.before:
            go_on()
            time.sleep(0.01)
        return super().__call__(photos, names, go_on)


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """Make an empty index and a folder of twelve; four are read, and acknowledged, at a time."""
    search_parts.save_models(tmp_path)
    for number in range(12):
        search_parts.make_photo(tmp_path / "more" / f"{number:02}.png", number)
    monkeypatch.setattr(adding, "COMMIT", 4)
    monkeypatch.setattr(adding, "GROUP", 4)
    monkeypatch.setattr(adding, "default_batch", lambda device: 0)  # groups are not larger
    return Gate()


def begin_adding(page, address, folder):
    page.goto(address)
    expect(page.locator("#empty")).to_contain_text("Add a folder")
    page.locator("#empty").get_by_role("button", name="Add or update").click()
    expect(page.locator("#job-words")).to_have_text(f"Adding {folder}: 0 of 12 photographs")
    expect(page.locator("#empty")).to_contain_text("A folder is being read")


def test_adding_shows_how_far_it_is_and_what_has_come(browser, tmp_path, gate):
    folder, bar = tmp_path / "more", "#job-bar"
    with (
        search_parts.create(tmp_path, source=gate) as index,
        running(create_app(index, ServeConfig(folders=(folder,)))) as address,
        page_of(browser) as page,
    ):
        begin_adding(page, address, folder)
        expect(page.locator(bar)).to_have_js_property("value", 0)
        for count in (4, 8):
            gate.before = f"{count:02}"
            expect(page.locator("#job-words")).to_contain_text(f"{count} of 12 photographs, ")
            expect(page.locator("#job-words")).to_contain_text(" left")
            assert page.locator(bar).evaluate("bar => bar.value") == pytest.approx(count / 12)
            expect(page.locator("#results .tile")).to_have_count(count)
            expect(page.locator("#empty")).to_be_hidden()
            expect(page.locator(bar)).to_be_visible()  # it is still going on
        gate.before = "99"
        expect(page.locator("#job-words")).to_contain_text("12 added")
        expect(page.locator("#results .tile")).to_have_count(12)
        assert page.complaints == []


@pytest.mark.parametrize("whose", ["this page's", "another's"])
def test_that_another_folder_is_being_added_is_said_until_it_is_done(
    browser, tmp_path, gate, whose
):
    folders = (tmp_path / "more", tmp_path / "other")
    search_parts.make_photo(folders[1] / "a.png", 99)
    with (
        search_parts.create(tmp_path, source=gate) as index,
        running(create_app(index, ServeConfig(folders=folders))) as address,
        page_of(browser) as page,
        page_of(browser) as another,
    ):
        page.goto(address)
        page.get_by_role("button", name="Library").click()
        adding = page.locator("#library-folders").get_by_role("button", name="Add or update")
        expect(adding).to_have_count(2)
        if whose == "another's":
            another.goto(address)
            another.locator("#empty").get_by_role("button", name="Add or update").first.click()
            expect(another.locator("#job-words")).to_contain_text("0 of 12")
        else:
            adding.first.click()
            expect(page.locator("#job-words")).to_contain_text("0 of 12")
            page.get_by_role("button", name="Library").click()
        adding.nth(1).click()
        alert = page.locator("#other")
        expect(alert).to_contain_text(f"{folders[0]} is being added; wait until it is done")
        expect(page.locator("#job-words")).to_contain_text("0 of 12")
        page.wait_for_timeout(500)
        expect(alert).to_be_visible()
        gate.before = "99"
        expect(page.locator("#job-words")).to_contain_text("12 added")
        expect(alert).to_be_hidden()


def test_a_server_that_is_stopped_while_a_folder_is_added(browser, tmp_path, gate):
    folder = tmp_path / "more"
    with search_parts.create(tmp_path, source=gate) as index, page_of(browser) as page:
        with running(create_app(index, ServeConfig(folders=(folder,)))) as address:
            begin_adding(page, address, folder)
            gate.before = "04"
            expect(page.locator("#results .tile")).to_have_count(4)
        # Mostly it can still say so itself.
        said = re.compile("stopped; what was done is kept|The server does not answer")
        expect(page.get_by_role("alert").first).to_contain_text(said)
        assert page.locator("#results .tile").count() == 4  # what was there stays
        index.refresh()
        assert len(index) == 4
