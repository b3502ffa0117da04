"""The page in a real browser: Debian's chromium over `crossgaze serve` in a process of its own.

The index is real: photographs that come with Python packages, regions by a network that ships,
small models with random weights (so what is found is no matter, that it is shown is).
"""

import base64
import json
import re
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from browser_parts import chromium, expect, needs_chromium, page_of
from crossgaze.explain.maps import soft_map
from crossgaze.search.index import Index
from crossgaze.vision.settings import ExtractConfig
from page_parts import EVIL, SENTENCE, is_dark, make_world, open_first, search, serving

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def server(world):
    with serving(world, "--answerer", world / "rdan", "--add", world / "more") as (_, address):
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
        assert all(url.startswith((server, "blob:")) for url in made.asked)


def test_search_shows_scores_best_first_and_the_address_can_be_shared(page, server):
    assert page.locator("#results .tile").count() == 17
    search(page)
    scores = [float(text) for text in page.locator("#results .score").all_inner_texts()]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 17
    assert page.url == f"{server}?q=a+red+dog+runs+in+the+snow"
    page.reload()
    expect(page.locator("#results .scored")).to_have_count(17)
    expect(page.get_by_role("searchbox")).to_have_value(SENTENCE)
    page.go_back()
    expect(page.locator("#results .scored")).to_have_count(0)
    expect(page.locator("#status")).to_contain_text("17 photographs · newest first")


def test_every_thumbnail_loads_and_nothing_jumps(page):
    page.evaluate(
        """() => { window.shift = 0; new PerformanceObserver((list) => {
        for (const one of list.getEntries()) if (!one.hadRecentInput) window.shift += one.value;
        }).observe({ type: 'layout-shift', buffered: true }); }"""
    )
    for tile in page.locator("#results .tile").all():
        tile.scroll_into_view_if_needed()
    page.wait_for_function(
        "() => [...document.querySelectorAll('.tile img')].every((i) => i.naturalWidth)"
    )
    assert page.evaluate("window.shift") < 0.02
    alts = page.locator("#results img").evaluate_all("all => all.map((one) => one.alt)")
    assert all(alts)


def test_hovering_a_word_lights_regions_and_hovering_a_region_lights_words(page):
    search(page)
    open_first(page)
    assert is_dark(page) == 0
    assert 1 <= page.locator("#boxes .box").count() <= 3  # at rest
    explained = page.evaluate(
        "async () => (await fetch('/explain' + location.search.replace('photo', 'id'))).json()"
    )
    for number, word in enumerate(explained["words"][:3]):
        page.locator("#chips button").nth(number).hover()
        expect(page.locator("#boxes .box b")).to_have_text(word["word"])
        assert is_dark(page) > 0.5
        x1, y1, x2, _ = explained["regions"][word["strongest"]]["box"]
        frame, box = (
            page.locator("#frame").bounding_box(),
            page.locator("#boxes .box").bounding_box(),
        )
        assert box["x"] == pytest.approx(frame["x"] + x1 * frame["width"], abs=2)
        assert box["y"] == pytest.approx(frame["y"] + y1 * frame["height"], abs=2)
        assert box["width"] == pytest.approx((x2 - x1) * frame["width"], abs=3)
    frame = page.locator("#frame").bounding_box()
    page.mouse.move(frame["x"] + 0.5 * frame["width"], frame["y"] + 0.5 * frame["height"])
    region = 4  # the middle one of 3 x 3
    much = page.locator("#chips button").evaluate_all(
        "all => all.map((one) => parseInt(one.style.getPropertyValue('--much')))"
    )
    shares = [100 * w["weights"][region] / max(w["weights"]) for w in explained["words"]]
    assert much == pytest.approx(shares, abs=1)
    page.mouse.move(5, 5)
    assert is_dark(page) == 0


def test_a_map_on_the_page_is_that_of_the_figures(page):
    rng = np.random.default_rng(0)
    corners = np.sort(rng.random((12, 2, 2)), axis=1)  # (k, corner, axis)
    boxes = corners.reshape(12, 4)
    boxes[0], boxes[1] = [0, 0, 1, 1], [0.4, 0.4, 0.4005, 0.9]  # the whole, and a sliver
    for weights in (rng.random(12), np.eye(12)[3], np.ones(12), np.zeros(12)):
        shown = page.evaluate(
            "async ([boxes, weights]) => Array.from("
            "(await import('/static/veil.js')).softMap(boxes, weights, 48, 32))",
            [boxes.tolist(), weights.tolist()],
        )
        drawn = soft_map(boxes, weights, 48, 32)
        np.testing.assert_allclose(np.reshape(shown, (32, 48)), drawn, atol=1e-9)


def test_best_sentences_become_words(page):
    search(page)
    open_first(page)
    expect(page.locator("#best-list button")).to_have_count(2)
    page.locator("#best-list button", has_text="a red dog").click()
    expect(page.locator("#chips button")).to_have_text(["a", "red", "dog"])


def test_asking_shows_answers_and_both_steps(page):
    search(page)
    open_first(page)
    page.locator("#question").fill("is the lamp on?")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("#answers li")).to_have_count(5)
    expect(page.locator("#steps .step")).to_have_count(2)
    read = page.locator("#steps .step").first.locator(".read span")
    expect(read).to_have_text(["is", "the", "lamp", "on", "?"])
    shares = [float(t.split()[0]) for t in page.locator("#answers small").all_inner_texts()]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    page.locator("#steps .step").nth(1).hover()
    expect(page.locator("#boxes .box b")).to_have_text("step 2")
    page.locator("#steps .step").nth(1).click()  # holds it
    page.locator("#question").fill("is the lamp red?")
    page.keyboard.press("Enter")
    read = page.locator("#steps .step").first.locator(".read span")
    expect(read).to_have_text(["is", "the", "lamp", "red", "?"])
    page.mouse.move(0, 0)
    expect(page.locator("#boxes .box b", has_text="step 2")).to_have_count(0)  # the one before
    page.locator("#steps .step").nth(1).click()
    page.mouse.move(0, 0)
    expect(page.locator("#boxes .box b")).to_have_text("step 2")
    page.locator("#question").fill("xyzzy")
    page.keyboard.press("Enter")
    expect(page.locator("#ask-said")).to_contain_text("knows no word")
    page.complaints.clear()  # the browser's own note of the 422


def test_a_picture_is_sent_and_finds_itself(page, world):
    page.locator("#file").set_input_files(world / "photos" / "gallery" / "coffee.png")
    expect(page.locator("#status")).to_contain_text("Best first")
    expect(page.locator("#results .name").first).to_have_text("gallery/coffee.png")
    expect(page.locator("#picture")).to_be_visible()
    expect(page.locator("#asked-sentences li")).to_have_count(2)
    assert "picture=" in page.url
    page.reload()  # the server still knows it
    expect(page.locator("#results .name").first).to_have_text("gallery/coffee.png")
    page.locator("#results .tile").nth(1).click()
    page.get_by_role("link", name="More like this").click()
    expect(page.locator("#status")).to_contain_text("Best first")
    assert "like=" in page.url


def test_a_dropped_picture_is_searched_by(page, world):
    data = (world / "photos" / "gallery" / "coffee.png").read_bytes()
    dropped = page.evaluate_handle(
        """(text) => { const data = new DataTransfer();
        const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
        data.items.add(new File([bytes], 'mine.png', { type: 'image/png' }));
        return data; }""",
        base64.b64encode(data).decode(),
    )
    page.dispatch_event("#results", "dragover", {"dataTransfer": dropped})
    expect(page.locator("#drop")).to_be_visible()
    page.dispatch_event("#results", "drop", {"dataTransfer": dropped})
    expect(page.locator("#drop")).to_be_hidden()
    expect(page.locator("#status")).to_contain_text("Best first")
    expect(page.locator("#results .name").first).to_have_text("gallery/coffee.png")
    expect(page.locator("#picture")).to_be_visible()
    shown = "() => document.querySelector('#picture-shown').naturalWidth > 0"
    page.wait_for_function(shown)
    assert "picture=" in page.url


def test_a_dropped_file_that_is_no_picture_is_refused_in_words(page):
    page.evaluate(
        """() => { const data = new DataTransfer();
        data.items.add(new File(['hello'], 'x.txt', { type: 'text/plain' }));
        for (const kind of ['dragover', 'drop'])
          window.dispatchEvent(new DragEvent(kind, { dataTransfer: data, cancelable: true })); }"""
    )
    expect(page.get_by_role("alert").first).to_contain_text("is not an image")
    expect(page.locator("#drop")).to_be_hidden()
    expect(page.get_by_role("button", name="Try again")).to_be_hidden()
    page.complaints.clear()


def test_filters_and_the_way_back_from_nothing(page):
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Path").fill("gallery/co*")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#results .tile")).to_have_count(2)
    expect(page.locator("#status")).to_contain_text("2 photographs of 17")
    search(page)
    expect(page.locator("#results .tile")).to_have_count(2)
    page.get_by_label("At least", exact=True).fill("900 MB")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#empty")).to_contain_text("Nothing found")
    page.get_by_role("button", name="Clear the filters").click()
    expect(page.locator("#results .tile")).to_have_count(17)


def test_by_keyboard_alone(page):
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
    page.keyboard.press("Home")
    assert page.evaluate(here) == first
    page.keyboard.press("Enter")
    expect(page.locator("#chips button")).to_have_count(7)
    page.locator("#look-words").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator("#chips button").first).to_be_focused()
    assert is_dark(page) > 0
    page.keyboard.press("ArrowRight")
    expect(page.locator("#boxes .box b")).to_have_text("red")
    page.keyboard.press("Enter")
    expect(page.locator("#chips button").nth(1)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    expect(page.locator("#photo")).to_be_hidden()
    assert page.evaluate(here) == first  # focus is back where it was
    assert "photo=" not in page.url


def test_neighbours_by_arrow_keys_and_a_photograph_by_its_address(page):
    search(page)
    open_first(page)
    page.locator("#photo-close").focus()
    before = page.locator("#photo-name").inner_text()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#photo-name")).not_to_have_text(before)
    page.reload()
    expect(page.locator("#photo-name")).not_to_have_text("")
    expect(page.locator("#photo")).to_be_visible()
    page.go_back()
    expect(page.locator("#photo")).to_be_hidden()


def test_on_a_phone_nothing_is_wider_than_the_screen_and_taps_light(browser, server):
    how = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
    with page_of(browser, **how) as page:
        page.goto(server)
        expect(page.locator("#results .tile")).not_to_have_count(0)
        wide = "document.documentElement.scrollWidth"
        assert page.evaluate(wide) <= 360
        search(page)
        page.locator("#results .tile").first.tap()
        expect(page.locator("#chips button")).to_have_count(7)
        page.locator("#chips button").nth(1).tap()
        expect(page.locator("#boxes .box b")).to_have_text("red")
        assert is_dark(page) > 0
        page.locator("#chips button").nth(1).tap()
        assert is_dark(page) == 0
        page.locator("#frame").tap()
        assert is_dark(page) > 0
        assert page.locator("#photo").evaluate("one => one.scrollWidth") <= 360
        for button in page.locator("#photo button:visible").all():
            assert button.bounding_box()["height"] >= 24
        page.locator("#photo-close").tap()
        expect(page.locator("#photo")).to_be_hidden()
        assert page.complaints == []


def test_dark_and_without_motion(browser, server):
    ground = "getComputedStyle(document.body).backgroundColor"
    with page_of(browser, color_scheme="dark", reduced_motion="reduce") as page:
        page.goto(server)
        search(page)
        red, green, blue = map(int, re.findall(r"\d+", page.evaluate(ground)))
        assert max(red, green, blue) < 60
        assert page.evaluate("document.getAnimations().length") == 0
    with page_of(browser, color_scheme="light") as page:
        page.goto(server)
        assert min(map(int, re.findall(r"\d+", page.evaluate(ground)))) > 200


def test_names_tags_and_sentences_are_text_and_never_markup(page):
    tile = page.locator("#results .tile", has_text="onerror")
    expect(tile).to_have_count(1)
    tile.click()
    expect(page.locator("#photo-name")).to_contain_text('<img src=x onerror="document.title=1">')
    expect(page.locator("#photo-facts")).to_contain_text(EVIL)
    expect(page.locator("#best-list")).to_contain_text(EVIL)
    page.locator("#best-list button", has_text="onerror").click()
    expect(page.locator("#look-said")).to_contain_text("Score")
    page.locator("#photo-close").click()
    page.get_by_role("button", name="Filters").click()
    expect(page.locator("#tags")).to_contain_text(EVIL)
    page.get_by_role("searchbox").fill(f"a red {EVIL}")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("not known to the model")
    assert page.locator("img[src='x']").count() == 0
    assert page.title() != "1"


def test_a_folder_is_added_from_the_page(page, world):
    page.get_by_role("button", name="Library").click()
    expect(page.locator("#library-facts")).to_contain_text("scan")
    page.get_by_role("button", name="Add or update").click()
    expect(page.locator("#job-words")).to_contain_text("1 added")
    expect(page.locator("#results .tile")).to_have_count(18)
    newest = page.locator("#results img").first
    expect(newest).to_have_js_property("complete", True)  # a file that is gone has no thumbnail
    (world / "more" / "again.png").unlink()
    shutil.copy(world / "photos" / "gallery" / "moon.png", world / "more" / "moon.png")
    page.get_by_role("button", name="Library").click()
    page.get_by_role("button", name="Add or update").click()
    expect(page.locator("#job-words")).to_contain_text("1 added, 1 removed")


def test_an_answer_that_breaks_off_is_said_and_what_came_stays(page):
    search(page)
    line = page.evaluate("async () => (await fetch('/search?q=a+cat&limit=3')).json()")
    broken = json.dumps({**line, "stage": "candidates"}) + "\n"
    page.route("**/search?**", lambda route: route.fulfill(body=broken))
    page.get_by_role("searchbox").fill("a cat")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").first).to_contain_text("The answer broke off in the middle")
    expect(page.locator("#results .tile")).to_have_count(3)
    page.unroute("**/search?**")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#status")).to_contain_text("Best first")
    expect(page.locator("#problem")).to_be_hidden()


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
        with serving(world, port=port):
            page.get_by_role("button", name="Try again").click()
            expect(page.locator("#status")).to_contain_text("Best first")
            expect(page.locator("#problem")).to_be_hidden()


def test_the_token_is_asked_for_once(browser, world):
    token = "a-token-of-the-tests"
    with serving(world, "--token", token) as (_, address), page_of(browser) as page:
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
    Index.create(
        tmp_path / "index",
        embedder=world / "vse",
        reranker=world / "scan",
        detector=ExtractConfig(regions="grid", backbone="efficientnet-lite0", size=64, grid=3),
    ).close()
    with serving(tmp_path) as (_, address), page_of(browser) as page:
        page.goto(address)
        expect(page.locator("#empty")).to_contain_text("No photographs yet")
        expect(page.locator("#empty")).to_contain_text("crossgaze index PHOTOS/ --into INDEX/")


def test_the_server_ends_when_it_is_asked_to(world):
    with serving(world) as (process, _):
        started = time.monotonic()
        process.terminate()
        process.wait(60)
        assert time.monotonic() - started < 60
        assert Path(world / "index" / "index.json").is_file()
