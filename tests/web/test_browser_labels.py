"""Labels of outlined regions on a phone: seen whole, beside the buttons, and one beside another."""

import pytest
from PIL import Image

import search_parts
from browser_parts import chromium, expect, needs_chromium, page_of

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from crossgaze.web.app import create_app
from web_parts import QUERY, running

pytestmark = needs_chromium
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
WORD = "umbrella"  # what is found in each of these
BOXES = {
    "the right edge": [0.9, 0.4, 1, 0.6],
    "below the way out": [0.7, 0.17, 1, 0.3],
    "the corner of the way out": [0.8, 0, 1, 0.1],
    "the way back": [0.02, 0.5, 0.3, 0.95],
    "the way on": [0.6, 0.56, 1, 0.95],
    "near the top": [0.3, 0.1, 0.5, 0.95],
    "the top edge": [0.3, 0, 0.5, 0.5],
    "the whole": [0, 0, 1, 1],
}
SIZES = {"wide": (800, 160), "square": (400, 400), "tall": (100, 400)}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    world = tmp_path_factory.mktemp("labels")
    search_parts.save_models(world)
    (world / "photos").mkdir()
    for number, (name, size) in enumerate(SIZES.items()):
        Image.new("RGB", size, (90 * number, 120, 60)).save(world / "photos" / f"{name}.png")
    index = search_parts.create(world)
    index.add(world / "photos")
    with running(create_app(index)) as address:
        yield address


@pytest.fixture
def page(server):
    with chromium() as browser, page_of(browser, **PHONE) as made:
        made.address = f"{server}?q={QUERY.replace(' ', '+')}"
        yield made
        assert made.complaints == []


def open_with(page, name, words, boxes):
    """Open a photograph in which each word looks at a box of its own."""

    def found(route):
        answer = route.fetch()
        told = answer.json()
        told["regions"] = [{**told["regions"][0], "box": box} for box in boxes]
        shares = [[float(n == m) for m in range(len(boxes))] for n in range(len(boxes))]
        told["words"] = [
            {**told["words"][0], "word": word, "weights": weights, "strongest": n}
            for n, (word, weights) in enumerate(zip(words, shares, strict=True))
        ]
        route.fulfill(response=answer, json=told)

    page.route("**/explain?**", found)
    page.goto(page.address)
    page.locator("#results .tile", has_text=f"{name}.png").tap()
    expect(page.locator("#chips button")).to_have_count(len(words))


def sides(page, selector):
    return page.locator(selector).evaluate_all(
        """all => all.map((one) => one.getBoundingClientRect())
        .map(({ left, top, right, bottom }) => [left, top, right, bottom])"""
    )


def apart(one, other):
    return (
        min(one[2], other[2]) <= max(one[0], other[0]) + 0.1
        or min(one[3], other[3]) <= max(one[1], other[1]) + 0.1
    )


@pytest.mark.parametrize("name", SIZES)
def test_a_label_is_seen_whole_and_under_no_button(page, name):
    open_with(page, name, [WORD] * len(BOXES), list(BOXES.values()))
    buttons = sides(page, "#photo .close, #photo .round")
    assert len(buttons) == 3
    assert all(apart(buttons[n], buttons[n - 1]) for n in range(3))
    (stage,) = sides(page, "#photo .stage")
    for number, where in enumerate(BOXES):
        page.locator("#chips button").nth(number).tap()
        expect(page.locator("#boxes b")).to_have_text(WORD)
        (label,), (box,) = sides(page, "#boxes b"), sides(page, "#boxes .box")
        assert stage[0] <= label[0] + 0.1, where
        assert stage[1] <= label[1] + 0.1, where
        assert label[2] <= stage[2] + 0.1, where
        assert label[3] <= stage[3] + 0.1, where
        assert all(apart(label, button) for button in buttons), where
        assert page.locator("#boxes b").evaluate("one => one.scrollWidth <= one.clientWidth")
        # It is at its box: at the upper edge or the lower one, and no button's width beside it.
        edges = [abs(label[end] - box[other]) for end in (1, 3) for other in (1, 3)]
        assert min(edges) < 1, where
        assert max(label[0] - box[2], box[0] - label[2]) < 40, where


def test_labels_at_rest_do_not_cover_each_other_also_on_a_phone_that_is_turned(page):
    at = [[0.3, 0.4, 0.6, 0.7], [0.32, 0.4, 0.62, 0.7], [0.34, 0.4, 0.64, 0.7]]
    open_with(page, "square", ["umbrella", "striped", "mountain"], at)
    for size in ({"width": 390, "height": 780}, {"width": 780, "height": 390}):
        page.set_viewport_size(size)
        page.wait_for_timeout(300)
        labels = sides(page, "#boxes b")
        assert len(labels) == 3
        assert all(apart(labels[n], labels[n - 1]) for n in range(3))
