"""Words over an opened photograph: their map, words that no region answered, and whose look it is.

The re-ranker is two models, and the first, by which the words look, gives each region one word: of
nine words and marks at most four have a region.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from browser_parts import chromium, expect, needs_chromium, page_of

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

import search_parts
from crossgaze.explain.explanation import SMALL
from crossgaze.explain.maps import soft_map
from crossgaze.models.ensemble import Ensemble
from crossgaze.web import app as web
from crossgaze.web.app import create_app
from page_parts import SENTENCE, is_dark
from web_parts import running

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    search_parts.save_models(folder)
    search_parts.make_photo(folder / "photos" / "a.png", 1)
    both = Ensemble([search_parts.taker(), search_parts.reranker()])
    index = search_parts.create(folder, reranker=both)
    index.add(folder / "photos")
    with running(create_app(index)) as address:
        yield address


@pytest.fixture
def page(server):
    with (
        chromium() as browser,
        page_of(browser, viewport={"width": 1200, "height": 800}) as made,
    ):
        made.goto(f"{server}?q={SENTENCE.replace(' ', '+')}&photo=1")
        expect(made.locator("#chips button")).to_have_count(len(SENTENCE.split()))
        yield made
        assert made.complaints == []


@pytest.fixture
def explained(page):
    return page.evaluate(
        "async () => (await fetch('/explain' + location.search.replace('photo', 'id'))).json()"
    )


def test_a_word_that_no_region_answered_says_so_and_has_no_frame(page, explained):
    silent = [n for n, word in enumerate(explained["words"]) if word["strongest"] is None]
    assert silent
    for number in silent:
        word, chip = explained["words"][number]["word"], page.locator("#chips button").nth(number)
        assert max(explained["words"][number]["weights"]) == 0
        expect(chip.locator("i")).to_have_count(0)  # nothing to show at rest
        expect(chip).to_have_attribute("title", "No region answered this word")
        chip.hover()
        expect(page.locator("#boxes")).to_have_text(f"“{word}”: no region answered this word")
        expect(page.locator("#boxes .box")).to_have_count(0)
        assert is_dark(page) > 150  # all of it: nothing answered
    page.locator("#chips button").nth(silent[0]).click()  # holds it
    page.mouse.move(5, 5)
    expect(page.locator("#boxes p")).to_be_visible()
    page.locator("#chips button").nth(silent[0]).click()
    page.mouse.move(5, 5)
    expect(page.locator("#boxes p")).to_have_count(0)


def test_whose_attention_stands_beside_the_score_of_all(page, explained):
    assert explained["whose"] == "sum-max, the first of 2 models"
    expect(page.locator("#look-said")).to_contain_text(
        "attention of sum-max, the first of 2 models; the score is of all"
    )


def test_words_that_say_little_are_those_of_reports():
    script = (Path(web.__file__).parent / "static" / "photo.js").read_text()
    (given,) = re.findall(r"const SMALL = new Set\((.*?)\s*\.split", script, re.DOTALL)
    words = " ".join(re.findall(r'"([^"]*)"', given)).split()
    assert len(words) == len(set(words))
    assert set(words) == SMALL
    assert {"front", "behind", "next", "near", "while", "there", "who"} <= SMALL


def test_a_map_on_the_page_is_that_of_the_figures(page):
    rng = np.random.default_rng(0)
    corners = np.sort(rng.random((12, 2, 2)), axis=1)  # (k, corner, axis)
    boxes = corners.reshape(12, 4)
    boxes[0], boxes[1] = [0, 0, 1, 1], [0.4, 0.4, 0.4005, 0.9]  # the whole, and a sliver
    few = rng.random(12) * (np.arange(12) % 3 == 2)  # the others, and the whole, have no weight
    for weights in (rng.random(12), few, np.eye(12)[3], np.ones(12), np.zeros(12)):
        shown = page.evaluate(
            "async ([boxes, weights]) => Array.from("
            "(await import('/static/veil.js')).softMap(boxes, weights, 48, 32))",
            [boxes.tolist(), weights.tolist()],
        )
        drawn = soft_map(boxes, weights, 48, 32)
        np.testing.assert_allclose(np.reshape(shown, (32, 48)), drawn, atol=1e-9)


def test_a_word_that_the_model_was_never_taught_is_said_to_be_so_and_has_no_frame_at_rest(page):
    page.fill("#look-words", "a zebra runs")
    page.click("#look button")
    expect(page.locator("#look-said")).to_contain_text("Not known to the model: zebra.")
    chip = page.locator("#chips button").nth(1)
    expect(chip).to_have_text("zebra")
    expect(chip).to_have_attribute("title", "The model does not know this word")
    expect(chip.locator("i")).to_have_count(0)
