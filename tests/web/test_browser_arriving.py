"""Results arrive as they are ranked: candidates first, then tiles take their place in the order."""

import os
import re
import subprocess
import sys
import threading

import pytest

from browser_parts import chromium, expect, needs_chromium, page_of
from page_parts import SENTENCE
from page_parts import make_world as make_page_world

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from crossgaze.search import paging
from crossgaze.web import library as library_module
from crossgaze.web.app import create_app
from crossgaze.web.routes import search as search_module
from web_parts import QUERY, make_world, running

pytestmark = needs_chromium

# `crossgaze serve` whose ranking says that it has begun, and then goes on for longer than a test.
HELD = """
import sys, time
from crossgaze.cli import main
from crossgaze.web import library

def held(index, query, block):
    print("held", flush=True)
    time.sleep(600)

library.rank_part = held
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


def shown(page):
    ids = page.locator("#results .tile").evaluate_all("all => all.map((one) => one.dataset.id)")
    return [int(uid) for uid in ids]


def test_candidates_are_shown_before_the_order_and_tiles_then_stand_in_it(
    browser, tmp_path, monkeypatch
):
    index = make_world(tmp_path, 12)
    query = paging.read_sentence(index, QUERY)
    by_vectors = paging.candidates(index, query, 0).order()[0].tolist()
    exact = [hit.uid for hit in index.search(QUERY, 12).hits]
    assert by_vectors != exact  # else nothing would be seen of it
    turns = threading.Semaphore(0)

    def gated(*given):
        assert turns.acquire(timeout=60)
        return paging.rank_part(*given)

    monkeypatch.setattr(paging, "PART", 4)
    monkeypatch.setattr(search_module, "APART", 0)  # a line for each part, however fast
    monkeypatch.setattr(library_module, "rank_part", gated)
    with running(create_app(index)) as address, page_of(browser) as page:
        page.goto(address)
        expect(page.locator("#results .tile")).to_have_count(12)
        page.get_by_role("searchbox").fill(QUERY)
        page.keyboard.press("Enter")
        stage = page.locator("#results")
        expect(stage).to_have_attribute("data-stage", "candidates")
        assert shown(page) == by_vectors
        turns.release()
        expect(stage).to_have_attribute("data-stage", "ranking")
        part = shown(page)
        assert sorted(part[:4]) == sorted(by_vectors[:4])  # in the exact order, the others behind
        assert part[4:] == by_vectors[4:]
        turns.release()
        turns.release()
        expect(stage).to_have_attribute("data-stage", "ranked")
        expect(page.locator("#status")).to_contain_text("Best first")
        assert shown(page) == exact
        assert page.complaints == []


def test_a_server_that_is_killed_in_the_middle_of_a_search(browser, tmp_path):
    world = make_page_world(tmp_path)
    command = [sys.executable, "-c", HELD, "serve", str(world / "index"), "--answerer", "none"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with (
        subprocess.Popen(
            [*command, "--port", "0"], stdout=subprocess.PIPE, text=True, env=environment
        ) as process,
        page_of(browser) as page,
    ):
        try:
            page.goto(process.stdout.readline().split(" at ")[1].split()[0])
            expect(page.locator("#results .tile")).to_have_count(17)
            page.get_by_role("searchbox").fill(SENTENCE)
            page.keyboard.press("Enter")
            expect(page.locator("#results")).to_have_attribute("data-stage", "candidates")
            while process.stdout.readline().strip() != "held":
                assert process.poll() is None
            before = shown(page)
        finally:
            process.kill()
        said = re.compile("The answer broke off in the middle|The server does not answer")
        expect(page.get_by_role("alert").first).to_contain_text(said)
        assert shown(page) == before  # what came stays
        expect(page.get_by_role("button", name="Try again")).to_be_visible()
