"""The page in a real browser: Debian's chromium over `crossgaze serve` in a process of its own.

The index is real: photographs that come with Python packages, regions by a network that ships,
small models with random weights (so what is found is no matter, that it is shown is).
"""

import base64
import json
import re
import shutil

import pytest

from browser_parts import chromium, expect, needs_chromium, page_of
from page_parts import (
    EVIL,
    SENTENCE,
    Held,
    is_dark,
    make_world,
    open_first,
    search,
    serving,
)

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def server(world):
    folders = ("--add", world / "more", "--add", world / "nothing")
    with serving(world, *folders, answerer=world / "rdan") as (_, address):
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
    ground = "all => all.map((one) => getComputedStyle(one).backgroundColor)"
    dots = page.locator("#chips i").evaluate_all(ground)
    assert len(set(dots)) == len(dots) == page.locator("#boxes .box").count()
    dotted = 0
    for number, word in enumerate(explained["words"]):
        chip = page.locator("#chips button").nth(number)
        (colour,) = chip.locator("i").evaluate_all(ground) or [None]
        chip.hover()
        expect(page.locator("#boxes .box b")).to_have_text(word["word"])
        assert is_dark(page) > 0.5
        # A word's dot, its frame and its chip are of one colour, and of no other word's dot.
        if colour is None:
            (colour,) = page.locator("#boxes .box b").evaluate_all(ground)
            assert colour not in dots
        else:
            dotted += 1
        expect(page.locator("#boxes .box")).to_have_css("border-top-color", colour)
        expect(chip).to_have_css("background-color", colour)
        x1, y1, x2, _ = explained["regions"][word["strongest"]]["box"]
        frame, box = (
            page.locator("#frame").bounding_box(),
            page.locator("#boxes .box").bounding_box(),
        )
        assert box["x"] == pytest.approx(frame["x"] + x1 * frame["width"], abs=2)
        assert box["y"] == pytest.approx(frame["y"] + y1 * frame["height"], abs=2)
        assert box["width"] == pytest.approx((x2 - x1) * frame["width"], abs=3)
    assert 1 <= dotted <= 3
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
    expect(page.locator("#picture")).to_be_visible()
    page.wait_for_function("() => document.querySelector('#picture-shown').naturalWidth > 0")
    page.locator("#results .tile").nth(1).click()
    page.get_by_role("link", name="More like this").click()
    expect(page.locator("#status")).to_contain_text("Best first")
    assert "like=" in page.url
    page.get_by_role("button", name="Search without this picture").click()
    expect(page.locator("#status")).to_contain_text("newest first")
    expect(page.locator("#picture")).to_be_hidden()


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


DROP_TEXT = """() => { const data = new DataTransfer();
    data.items.add(new File(['hello'], 'x.txt', { type: 'text/plain' }));
    for (const kind of ['dragover', 'drop'])
      window.dispatchEvent(new DragEvent(kind, { dataTransfer: data, cancelable: true })); }"""


def test_a_dropped_file_that_is_no_picture_is_refused_in_words_and_what_was_found_stays(page):
    search(page)
    before = page.url, page.locator("#status").inner_text()
    names = page.locator("#results .name").all_inner_texts()
    page.evaluate(DROP_TEXT)
    expect(page.get_by_role("alert").first).to_contain_text("is not an image")
    expect(page.locator("#drop")).to_be_hidden()
    expect(page.get_by_role("button", name="Try again")).to_be_hidden()
    assert (page.url, page.locator("#status").inner_text()) == before
    assert page.locator("#results .name").all_inner_texts() == names
    expect(page.get_by_role("searchbox")).to_have_value(SENTENCE)
    page.complaints.clear()
    page.evaluate(  # as a folder, or a picture that is dragged from another page
        """() => { const drop = new Event('drop', { cancelable: true });
        drop.dataTransfer = { types: ['Files'], files: [] };
        window.dispatchEvent(drop); }"""
    )  # at the end no complaint is allowed


def test_a_refused_picture_that_interrupts_a_search_leaves_its_answer(page):
    held = Held(page, re.compile(r"/search\?.*q="))
    page.get_by_role("searchbox").fill(SENTENCE)
    page.keyboard.press("Enter")
    held.wait()
    page.evaluate(DROP_TEXT)
    expect(page.get_by_role("alert").first).to_contain_text("is not an image")
    held.let_go()
    expect(page.locator("#status")).to_contain_text("Best first")
    expect(page.get_by_role("alert").first).to_be_visible()
    page.complaints.clear()


def test_filters_and_the_way_back_from_nothing(page):
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Path").fill("gallery/co*")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#results .tile")).to_have_count(2)
    expect(page.locator("#status")).to_contain_text(
        "2 photographs of 17 · newest first · 1 filter on"
    )
    search(page)
    expect(page.locator("#results .tile")).to_have_count(2)
    page.get_by_label("At least", exact=True).fill("900 MB")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#empty")).to_contain_text("Nothing found")
    expect(page.locator("#status")).to_contain_text("Best first · 2 filters on · ")
    button = page.locator("#filters-open")
    button.click()  # a filter that is on is seen while they are closed, too
    expect(page.locator("#filters")).to_be_hidden()
    expect(button).to_have_accessible_name("Filters (2 on)")
    dot = "one => getComputedStyle(one, '::after').width"
    assert button.evaluate(dot) == "9px"
    page.get_by_role("button", name="Clear the filters").click()
    expect(page.locator("#results .tile")).to_have_count(17)
    expect(button).to_have_accessible_name("Filters")
    assert button.evaluate(dot) == "auto"
    expect(page.locator("#status")).not_to_contain_text("filter")


def test_a_filter_that_cannot_be_read_is_called_as_its_field_is(page):
    page.get_by_role("button", name="Filters").click()
    for name in ("At least", "At most"):
        page.get_by_label(name, exact=True).fill("much")
        page.get_by_role("button", name="Apply").click()
        alert = page.get_by_role("alert").first
        expect(alert).to_contain_text(
            f"{name}: got 'much', wanted a number of bytes such as 200000"
        )
        page.get_by_label(name, exact=True).fill("")
    page.complaints.clear()


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
    page.get_by_role("button", name="Add or update").first.click()
    expect(page.locator("#job-words")).to_contain_text("1 added")
    expect(page.locator("#results .tile")).to_have_count(18)
    newest = page.locator("#results img").first
    expect(newest).to_have_js_property("complete", True)  # a file that is gone has no thumbnail
    (world / "more" / "again.png").unlink()
    shutil.copy(world / "photos" / "gallery" / "moon.png", world / "more" / "moon.png")
    # Also where the progress is refused, after which a browser does not ask for it again.
    page.route("**/index/events", lambda route: route.fulfill(status=503))
    page.get_by_role("button", name="Library").click()
    page.get_by_role("button", name="Add or update").first.click()
    expect(page.locator("#job-words")).to_contain_text("1 added, 1 removed")
    # And where the index refuses, too: in words, until somebody tries again.
    page.get_by_role("button", name="Library").click()
    busy = {"status": 429, "json": {"error": "too many requests; wait a moment"}}

    def refuse(route):
        route.fulfill(**busy) if route.request.method == "GET" else route.continue_()

    # Not before the library is open, which asks for the index itself.
    expect(page.get_by_role("button", name="Add or update").first).to_be_visible()
    page.route("**/index", refuse)
    page.get_by_role("button", name="Add or update").first.click()
    expect(page.get_by_role("alert").first).to_contain_text("too many requests; wait a moment")
    page.unroute("**/index")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#job-words")).to_contain_text("1 as before")
    page.complaints.clear()  # the browser's own notes of the refusals


def test_why_an_adding_failed_stays_and_so_does_what_somebody_types(page, world):
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("gallery").check()  # not applied yet
    page.get_by_role("searchbox").fill("half a sen")  # nor asked; the open library takes no keys
    page.get_by_role("button", name="Library").click()
    page.wait_for_function("(scrollTo(0, 120), scrollY > 0)")  # once the page is that long
    with page.expect_response(lambda answer: "/images?" in answer.url):  # what is there now
        page.get_by_role("button", name="Add or update").nth(1).click()
    alert = page.get_by_role("alert").first
    expect(alert).to_contain_text(f"Adding {world / 'nothing'} failed: holds no photograph")
    assert alert.inner_text().count(str(world)) == 1
    page.wait_for_timeout(300)
    expect(alert).to_be_visible()
    expect(page.get_by_role("searchbox")).to_have_value("half a sen")
    expect(page.get_by_label("gallery")).to_be_checked()
    assert page.evaluate("scrollY") > 0


def test_what_is_typed_before_the_page_is_ready_stays_and_a_filter_is_seen(page, server):
    held = Held(page, "**/index")
    page.goto(f"{server}?tag=gallery&path=gallery/c*", wait_until="domcontentloaded")
    held.wait()
    page.get_by_role("searchbox").fill("a red d")
    held.let_go()
    expect(page.locator("#results .tile")).to_have_count(3)
    expect(page.get_by_role("searchbox")).to_have_value("a red d")
    expect(page.get_by_label("gallery")).to_be_checked()
    expect(page.get_by_label("Path")).to_have_value("gallery/c*")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#results .tile")).to_have_count(3)
    assert "tag=gallery" in page.url


def test_ones_own_look_is_not_overwritten_by_that_of_the_search(page):
    search(page)
    held = Held(page, re.compile(r"/images/\d+$"))
    page.locator("#results .tile").first.click()
    held.wait()
    page.locator("#look-words").fill("a red dog")
    page.keyboard.press("Enter")
    chips = page.locator("#chips button")
    expect(chips).to_have_text(["a", "red", "dog"])
    held.let_go()
    expect(page.locator("#best-list button")).to_have_count(2)  # the last that comes
    expect(chips).to_have_text(["a", "red", "dog"])
    expect(page.locator("#look-words")).to_have_value("a red dog")
    held = Held(page, re.compile(r"/explain\?"))
    page.locator("#photo-next").click()
    held.wait()
    with page.expect_event("requestfailed", lambda one: "/explain?" in one.url):  # given up
        page.locator("#photo-next").click()


def test_a_photograph_that_is_not_there_shows_no_other(page):
    page.locator("#results .tile").first.click()
    expect(page.locator("#photo-name")).not_to_have_text("")
    page.evaluate(
        """() => { history.pushState({}, '', '?photo=9999');
        dispatchEvent(new PopStateEvent('popstate')); }"""
    )
    expect(page.locator("#look-said")).to_contain_text("photograph 9999 is not in the index")
    expect(page.locator("#photo-name")).to_have_text("")
    assert page.locator("#photo-img").get_attribute("src") is None
    expect(page.locator("#photo-img")).to_be_hidden()  # no empty frame
    for part in ("#look", "#ask", "#photo-like", "#photo-file"):  # what could be done with one
        expect(page.locator(part)).to_be_hidden()
    page.keyboard.press("Escape")
    page.locator("#results .tile").first.click()
    for part in ("#look", "#ask", "#photo-like", "#photo-file"):
        expect(page.locator(part)).to_be_visible()
    page.complaints.clear()


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
