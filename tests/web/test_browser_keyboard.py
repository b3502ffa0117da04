"""The page by keyboard alone: Tab, arrows, Enter, Space and Escape reach all that a mouse does."""

import re

import pytest

from browser_parts import chromium, expect, needs_chromium, page_of
from page_parts import SENTENCE, is_dark, make_world, serving, tab_to

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("keyboard"))


@pytest.fixture(scope="module")
def server(world):
    with serving(world, "--add", world / "more", answerer=world / "rdan") as (_, address):
        yield address


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


@pytest.fixture
def page(browser, server):
    with page_of(browser, viewport={"width": 1200, "height": 800}) as made:
        made.goto(server)
        expect(made.locator("#results .tile")).not_to_have_count(0)
        yield made
        assert made.complaints == []


def test_by_keyboard_alone(page, world):
    # Said early: later, the key would be faster than the browser hears who waits for the dialog.
    page.on("filechooser", lambda _: None)
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the photographs")
    page.keyboard.press("/")
    page.keyboard.type(SENTENCE)
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("Best first")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "tile scored":
            break
    here = "Number(document.activeElement.dataset.id)"
    first = page.evaluate(here)
    page.keyboard.press("ArrowRight")
    second = page.evaluate(here)
    page.keyboard.press("ArrowDown")
    assert len({first, second, page.evaluate(here)}) == 3
    taken = """(alt) => { const press = new KeyboardEvent('keydown',
        { key: 'ArrowLeft', altKey: alt, bubbles: true, cancelable: true });
        return !document.activeElement.dispatchEvent(press); }"""
    assert [page.evaluate(taken, alt) for alt in (True, False)] == [False, True]  # Alt goes back
    page.keyboard.press("Home")
    assert page.evaluate(here) == first
    page.keyboard.press("Enter")
    expect(page.locator("#chips button")).to_have_count(7)
    tab_to(page, "#chips button")
    expect(page.locator("#chips button").first).to_be_focused()
    assert is_dark(page) > 0
    page.keyboard.press("ArrowRight")
    expect(page.locator("#boxes .box b")).to_have_text("red")
    page.keyboard.press("Enter")
    expect(page.locator("#chips button").nth(1)).to_have_attribute("aria-pressed", "true")
    tab_to(page, "#question")
    page.keyboard.type("is the lamp on?")
    page.keyboard.press("Enter")
    expect(page.locator("#answers li")).to_have_count(5)
    page.keyboard.press("Escape")
    expect(page.locator("#photo")).to_be_hidden()
    expect(page).not_to_have_url(re.compile("photo="))  # a moment after it is hidden
    assert page.evaluate(here) == first  # focus is back where it was
    page.keyboard.press("/")
    tab_to(page, "#upload")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(world / "photos" / "gallery" / "coffee.png")
    expect(page.locator("#results .name").first).to_have_text("gallery/coffee.png")


def test_regions_are_reached_and_held_by_keys(page):
    page.keyboard.press("/")
    page.keyboard.type(SENTENCE)
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("Best first")
    tab_to(page, "#results .tile")
    page.keyboard.press("Enter")
    expect(page.locator("#chips button")).to_have_count(7)
    tab_to(page, "#regions summary")
    page.keyboard.press("Enter")
    chips = page.locator("#region-list button")
    expect(chips.first).to_be_visible()
    tab_to(page, "#region-list button")
    expect(chips.first).to_be_focused()
    first = chips.first.inner_text()
    expect(page.locator("#boxes .box b")).to_have_text(first)
    page.keyboard.press("ArrowRight")
    expect(chips.nth(1)).to_be_focused()
    expect(chips.nth(1)).to_have_class("on")
    expect(page.locator("#boxes .box b")).to_have_text(chips.nth(1).inner_text())
    much = page.locator("#chips button").evaluate_all(
        "all => all.map((one) => parseInt(one.style.getPropertyValue('--much')))"
    )
    assert max(much) > 0  # the words that it answered are tinted
    page.keyboard.press("Enter")  # held
    page.keyboard.press("Shift+Tab")
    assert is_dark(page) > 0


def test_filters_by_keys(page):
    tab_to(page, "#filters-open")
    page.keyboard.press("Enter")
    expect(page.locator("#filters input").first).to_be_focused()
    page.keyboard.type("gallery/co*")
    page.keyboard.press("Enter")
    expect(page.locator("#results .tile")).to_have_count(2)
    tab_to(page, "#filters [type=checkbox]")
    page.keyboard.press("Space")
    tab_to(page, "#filters [type=reset]")
    page.keyboard.press("Enter")
    expect(page.locator("#results .tile")).not_to_have_count(2)


def test_the_library_by_keys(page):
    tab_to(page, "#library-open")
    page.keyboard.press("Enter")
    expect(page.locator("#library")).to_be_visible()
    expect(page.locator("#library-folders button").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#library")).to_be_hidden()
    expect(page.locator("#library-open")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#library-folders button").first).to_be_visible()
    tab_to(page, "#library-folders button")
    page.keyboard.press("Enter")
    expect(page.locator("#job-words")).to_contain_text("1 added")
