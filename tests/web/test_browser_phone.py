"""The page on a phone: what is there can be seen, and what closes it stays in sight."""

import json
import re

import pytest

import web_parts
from browser_parts import chromium, expect, needs_chromium, page_of

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from crossgaze.web.app import create_app
from web_parts import QUERY, running

pytestmark = needs_chromium
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
WIDE = "document.documentElement.scrollWidth"
LONG = "donaudampfschifffahrtsgesellschaftskapitaenswitwenundwaisenversorgungskasse"
JOB = {
    "state": "running",
    "folder": "/home/somebody/photographs/of the last summer/holidays-in-the-north",
    "done": 300,
    "of": 1200,
}


@pytest.fixture
def page(tmp_path):
    (tmp_path / "lines.txt").write_text("\n".join(f"{QUERY} {'a dog ' * n}" for n in range(9)))
    index = web_parts.make_world(tmp_path, 3)
    index.add_sentences(tmp_path / "lines.txt")
    with (
        running(create_app(index)) as address,
        chromium() as browser,
        page_of(browser, **PHONE) as made,
    ):
        made.address = address
        yield made
        assert made.complaints == []


@pytest.mark.parametrize(("seconds", "left"), [(700, "12 min"), (0, "1 s")])
def test_the_bar_of_an_adding_is_seen(page, seconds, left):
    job = {**JOB, "seconds_left": seconds}

    def under_way(route):
        answer = route.fetch()
        state = answer.json()
        route.fulfill(response=answer, json={**state, "job": {**state["job"], **job}})

    page.route("**/index", under_way)
    told = json.dumps(job)
    page.route(
        "**/index/events",
        lambda route: route.fulfill(content_type="text/event-stream", body=f"data: {told}\n\n"),
    )
    page.goto(page.address)
    expect(page.locator("#job-words")).to_contain_text(f"300 of 1,200 photographs, {left} left")
    bar, words = (page.locator(one).bounding_box() for one in ("#job-bar", "#job-words"))
    assert bar["width"] > 200
    for box in (bar, words):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    assert page.evaluate(WIDE) <= 390


def test_what_closes_a_photograph_stays_in_sight(page):
    page.goto(f"{page.address}?q={QUERY.replace(' ', '+')}")
    page.locator("#results .scored").first.tap()
    expect(page.locator("#best-list button")).to_have_count(5)
    scrolled = page.locator("#photo").evaluate("one => (one.scrollTo(0, 9999), one.scrollTop)")
    assert scrolled > 40
    close = page.locator("#photo-close")
    box = close.bounding_box()
    assert 0 <= box["y"] < 60
    at = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).id", at) == "photo-close"
    assert min(box["width"], box["height"]) >= 40
    close.tap()
    expect(page.locator("#photo")).to_be_hidden()


def test_a_word_that_is_longer_than_the_screen_is_wide_is_broken(page):
    def known(route):  # as of a model that reads words by their letters
        answer = route.fetch()
        found = answer.json()
        found["words"].insert(0, {**found["words"][0], "word": LONG})
        found["regions"][0].update(attribute="", noun=LONG)
        route.fulfill(response=answer, json=found)

    def added(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "folders": [f"/home/{LONG}"]})

    page.route("**/explain?**", known)
    page.route("**/index", added)
    page.goto(f"{page.address}?q={LONG}+dog")
    expect(page.locator("#status")).to_contain_text(LONG)
    assert page.evaluate(WIDE) <= 390
    page.locator("#results .tile").first.tap()
    expect(page.locator("#chips button").first).to_have_text(LONG)
    page.locator("#regions summary").tap()
    expect(page.locator("#region-list button").first).to_have_text(LONG)
    assert page.evaluate(WIDE) <= 390
    assert page.locator("#photo").evaluate("one => one.scrollWidth") <= 390
    for place in ("#chips button", "#region-list button", "#boxes .box b"):
        box = page.locator(place).first.bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 390, place
    page.locator("#photo-close").tap()
    page.get_by_role("button", name="Library").tap()
    expect(page.locator("#library-folders")).to_contain_text(LONG)
    assert page.evaluate(WIDE) <= 390
    assert page.locator("#library").evaluate("one => one.scrollWidth <= one.clientWidth")


def test_the_box_of_a_tag_is_a_small_one_beside_its_words(page):
    tags = ["small", "summer holidays in the mountains", "x"]
    page.goto(f"{page.address}?q={QUERY.replace(' ', '+')}&tag={tags[1].replace(' ', '+')}&tag=x")
    expect(page.locator("#tags input")).to_have_count(3)
    for name in tags:
        box = page.locator("#tags").get_by_label(name, exact=True)
        label = page.locator("#tags label", has_text=re.compile(f"^{name}$"))
        small, around = box.bounding_box(), label.bounding_box()
        assert small["width"] < 25
        assert small["height"] < 25
        assert around["width"] < 60 + 9 * len(name)  # of its words, and no more
    for field in page.locator("#filters > label input").all():
        assert field.bounding_box()["width"] > 150
    assert page.evaluate(WIDE) <= 390
