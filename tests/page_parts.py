"""A server over a small world, and what a person does on its page."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import torch

import asking_parts
from browser_parts import PATIENCE, expect
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.demo import build_gallery
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.search.index import Index
from crossgaze.vision.settings import ExtractConfig

SENTENCE = "a red dog runs in the snow"
EVIL = '<img src=x onerror="document.title=1">'


def make_world(folder):
    """Make an index of real photographs with small models, and what else the page is tested on."""
    words = Vocabulary.build([f"{SENTENCE} . a cat on the table"], min_count=1)
    torch.manual_seed(0)
    text = TextConfig(word_size=8)
    Vse(VseConfig(region_width=1280, size=8, text=text), words).save_pretrained(folder / "vse")
    Scan(ScanConfig(region_width=1280, size=8, text=text), words).save_pretrained(folder / "scan")
    asking_parts.answerer().save_pretrained(folder / "rdan")
    build_gallery(folder / "photos" / "gallery")
    # Names, tags and sentences that would be markup if anything took them for it.
    shutil.copy(folder / "photos" / "gallery" / "cat.png", folder / "photos" / f"{EVIL}.png")
    (folder / "sentences.txt").write_text(f"a cat on the table {EVIL}\na red dog\n")
    index = Index.create(
        folder / "index",
        embedder=folder / "vse",
        reranker=folder / "scan",
        detector=ExtractConfig(regions="grid", backbone="efficientnet-lite0", size=64, grid=3),
    )
    with index:
        index.add(folder / "photos", tags=[EVIL, "gallery"])
        index.add_sentences(folder / "sentences.txt")
    for name in ("more", "nothing"):
        (folder / name).mkdir()
    shutil.copy(folder / "photos" / "gallery" / "coffee.png", folder / "more" / "again.png")
    return folder


@contextmanager
def serving(world, *more, port=0, answerer="none"):
    """Give a server in a process of its own; one that answers has a model more to load."""
    command = [sys.executable, "-m", "crossgaze", "serve", str(world / "index")]
    command += ["--answerer", str(answerer)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*command, "--port", str(port), *map(str, more)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            said = process.stdout.readline()
            assert " at http://127.0.0.1:" in said, said
            yield process, said.split(" at ")[1].split()[0]
        finally:
            process.kill()


def search(page, sentence=SENTENCE):
    page.get_by_role("searchbox").fill(sentence)
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("Best first")


def open_first(page):
    page.locator("#results .tile").first.click()
    expect(page.locator("#chips button")).to_have_count(len(SENTENCE.split()))


def tab_to(page, selector):
    """Press Tab until an element has the focus, as somebody without a mouse does."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("(where) => document.activeElement.matches(where)", selector):
            return
    raise AssertionError(f"Tab never comes to {selector}")


class Held:
    """Holds back a page's requests to an address until they are let go."""

    def __init__(self, page, address):
        self.page, self.routes, self.free = page, [], False
        page.route(address, lambda route: self._meet(route))

    def _meet(self, route):
        if self.free:
            route.continue_()
        else:
            self.routes.append(route)

    def wait(self):
        """Wait for a request; the page goes on meanwhile."""
        for _ in range(PATIENCE // 50):
            if self.routes:
                return
            self.page.wait_for_timeout(50)
        raise AssertionError("nothing was asked for")

    def let_go(self):
        self.free = True
        for route in self.routes:
            route.continue_()


def is_dark(page):
    """Tell how dark the veil makes the photograph, as the mean of its alpha."""
    return page.evaluate(
        """() => { const veil = document.querySelector('#veil');
        if (!veil.classList.contains('on')) return 0;
        const data = veil.getContext('2d').getImageData(0, 0, veil.width, veil.height).data;
        return data.reduce((sum, x, n) => n % 4 == 3 ? sum + x : sum, 0) / (data.length / 4); }"""
    )
