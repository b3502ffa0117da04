"""The page on a phone: what is there can be seen, and what closes it stays in sight."""

import json

import pytest

import web_parts
from browser_parts import chromium, expect, needs_chromium, page_of

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from crossgaze.web.app import create_app
from web_parts import QUERY, running

pytestmark = needs_chromium
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
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
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


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
