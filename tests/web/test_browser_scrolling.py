"""A large screen over a library of several pages: whoever scrolls comes to the last photograph."""

import pytest

from browser_parts import chromium, expect, needs_chromium, page_of

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from crossgaze.web.app import create_app
from page_parts import Held
from web_parts import QUERY, make_world, running

pytestmark = needs_chromium

COUNT, FIRST = 150, 40  # photographs, and those of the first page
LARGE, SMALL = {"width": 2560, "height": 1440}, {"width": 1200, "height": 800}

BOTTOM = "document.documentElement.scrollHeight"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    index = make_world(tmp_path_factory.mktemp("many"), COUNT)
    with running(create_app(index)) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


@pytest.mark.parametrize(
    ("where", "screen"),
    [("", LARGE), (f"?q={QUERY.replace(' ', '+')}", LARGE), ("?like=7", LARGE), ("", SMALL)],
)
def test_the_screen_is_filled_and_scrolling_comes_to_the_end(browser, server, where, screen):
    # Pictures of 16 x 16 pixels take as much room as any other: tiles have one height.
    with page_of(browser, viewport=screen) as page:
        page.goto(server + where)
        tiles = page.locator("#results .tile")
        page.wait_for_function(
            "() => document.querySelectorAll('.tile').length && "
            "document.querySelector('#more').getBoundingClientRect().top > innerHeight"
        )
        assert tiles.count() < COUNT  # what nobody scrolls to is not asked for
        page.evaluate(f"setInterval(() => scrollTo(0, {BOTTOM}), 100)")  # until nothing comes
        expect(tiles).to_have_count(COUNT)
        shown = tiles.evaluate_all("all => all.map((one) => one.dataset.id)")
        assert len(set(shown)) == COUNT
        assert page.complaints == []


def test_who_is_at_the_new_end_within_a_frame_gets_the_next_page(browser, server):
    with page_of(browser, viewport=LARGE) as page:
        page.goto(f"{server}?like=7")
        tiles = page.locator("#results .tile")
        expect(tiles.first).to_be_visible()
        page.evaluate(  # after what the page does by itself, before anything is drawn
            f"""() => {{
                const down = async () => {{
                    for (let turn = 0; turn < 100; turn += 1) await null;
                    scrollTo(0, {BOTTOM});
                }};
                new MutationObserver(down).observe(
                    document.querySelector("#results"), {{ childList: true }});
                down();
            }}"""
        )
        expect(tiles).to_have_count(COUNT)


def test_a_search_on_a_large_screen_that_was_filled_before_fills_it_again(browser, server):
    with page_of(browser, viewport=LARGE) as page:
        page.goto(server)
        tiles = page.locator("#results .tile")
        page.wait_for_function(f"() => document.querySelectorAll('.tile').length > {FIRST}")
        page.get_by_role("searchbox").fill(QUERY)
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("Best first")
        page.wait_for_function(f"() => document.querySelectorAll('.scored').length > {FIRST}")
        scores = [float(text) for text in tiles.locator(".score").all_inner_texts()]
        assert scores == sorted(scores, reverse=True)
        assert page.complaints == []


def test_the_last_photograph_has_a_next_one_as_soon_as_there_are_more(browser, server):
    with page_of(browser, viewport=SMALL) as page:
        held = Held(page, "**/images?*offset=40*")
        page.goto(server)
        last = page.locator("#results .tile").nth(FIRST - 1)
        last.click()
        held.wait()
        expect(page.locator("#photo-facts")).not_to_have_text("")
        expect(page.locator("#photo-next")).to_be_disabled()
        held.let_go()
        expect(page.locator("#photo-next")).to_be_enabled()
        before = page.locator("#photo-name").inner_text()
        page.locator("#photo-next").click()
        expect(page.locator("#photo-name")).not_to_have_text(before)
        assert page.complaints == []


def scroll_to(page, *tops):
    for top in tops:
        page.evaluate(f"scrollTo(0, {top})")
        page.wait_for_timeout(1500)  # what is ahead comes, and the place is kept


@pytest.mark.parametrize("where", ["", "?like=7"])
def test_who_comes_back_to_a_list_is_where_they_were_and_nothing_runs_away(browser, server, where):
    with page_of(browser, viewport=SMALL) as page:
        page.goto(server + where)
        tiles = page.locator("#results .tile")
        expect(tiles).not_to_have_count(0)
        scroll_to(page, 1800, 2600)  # further than the first page of the list
        shown = tiles.count()
        assert FIRST < shown < COUNT
        tiles.nth(shown // 2).evaluate("one => one.click()")  # opened and closed, nothing moves
        expect(page.locator("#photo-facts")).not_to_have_text("")
        page.go_back()
        expect(page.locator("#photo")).to_be_hidden()
        assert page.evaluate("scrollY") == 2600
        page.get_by_role("searchbox").fill(QUERY)
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("Best first")
        assert page.evaluate("scrollY") == 0
        scroll_to(page, 900)
        for come, top in ((page.go_back, 2600), (page.go_forward, 900), (page.go_back, 2600)):
            come()
            page.wait_for_function(f"() => scrollY === {top}")
            page.wait_for_timeout(1000)
            assert page.evaluate("scrollY") == top
            assert tiles.count() <= shown
        page.reload()
        page.wait_for_function("() => scrollY === 2600")
        assert tiles.count() == shown
        assert page.complaints == []


def test_a_place_that_is_too_far_down_is_not_loaded_again(browser, server):
    with page_of(browser, viewport=SMALL) as page:
        page.goto(server)
        tiles = page.locator("#results .tile")
        expect(tiles).not_to_have_count(0)
        page.wait_for_timeout(500)
        page.evaluate("history.replaceState({ top: 90000, shown: 4000 }, '')")
        page.reload()
        expect(tiles).not_to_have_count(0)
        page.wait_for_timeout(1000)
        assert page.evaluate("scrollY") == 0
        assert tiles.count() < COUNT


def test_who_scrolls_while_a_list_is_loaded_again_stays_there(browser, server):
    with page_of(browser, viewport=SMALL) as page:
        page.goto(server)
        tiles = page.locator("#results .tile")
        expect(tiles).not_to_have_count(0)
        scroll_to(page, 1800, 2600)  # further than the first page of the list
        held = Held(page, "**/images?*offset=40*")
        page.reload()
        expect(tiles).to_have_count(FIRST)
        held.wait()
        page.evaluate("scrollTo(0, 300)")
        page.wait_for_timeout(300)
        held.let_go()
        expect(tiles).not_to_have_count(FIRST)
        page.wait_for_timeout(500)
        assert page.evaluate("scrollY") == 300
