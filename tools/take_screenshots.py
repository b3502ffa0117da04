"""Pictures of the page for README and docs, from a real run over photographs that PyPI ships.

    python tools/take_screenshots.py
    python tools/take_screenshots.py --embedder VSRN --reranker SCAN --answerer R-DAN

Makes an index of the demonstration's photographs, which lie in /tmp/photos meanwhile, starts
`crossgaze serve` on it, and photographs the page with Debian's chromium: light, dark and on a
phone, into docs/pictures. The sentence was chosen among some thirty as one whose first two
photographs a person would choose as well, and most of whose words look where they should; the
question among some six hundred (55 of each of 11 photographs), of which few are answered rightly:
what answers was trained on rooms, and it calls the sky there red as well. Other sentences are
searched for before: the first search fetches models and regions from the disk, which no later one
does, while the same sentence again would be answered from memory.
`--index` takes an index that is there already; then its photographs had better be free to show.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

from crossgaze.demo import build_gallery
from crossgaze.search.index import Index

OUT = Path(__file__).parents[1] / "docs" / "pictures"
CHROMIUM = "/usr/bin/chromium"
PHOTOS = Path("/tmp/photos")  # the page shows where a photograph lies: a name that people may see
TWICE = "motorcycle-right.png"  # the same scene as motorcycle-left.png, a step to the side
# What README and docs/serve.md show; --all takes the others, too.
SHOWN = ("page-light-search", "page-dark-word", "page-light-ask", "page-phone-word")
SENTENCE = "a smiling woman in an orange uniform in front of a flag"
ASK_OF, QUESTION = "a tall building behind trees", "what is the color of the building?"
WARM = ("two dogs run in the snow", "a child on a red bicycle")  # nobody is shown what they find
DAY = datetime(2024, 6, 1, 12, tzinfo=UTC).timestamp()  # of the files: not that of their copying
SENTENCES = (
    "a smiling woman in an orange uniform",
    "a brown cat",
    "a cup on a table",
    "a rocket in the night sky",
    "a motorcycle stands in a garage",
    "a man stands in the grass with a camera on a tripod",
    "an orange flower",
    "a tall building behind trees",
    "an old woman in a uniform and a hat",
)


def make_index(folder, embedder, reranker):
    build_gallery(PHOTOS)
    (PHOTOS / TWICE).unlink()
    for number, path in enumerate(sorted(PHOTOS.iterdir())):
        os.utime(path, (DAY - number, DAY - number))  # newest first is by name, in every run
    (folder / "sentences.txt").write_text("\n".join(SENTENCES) + "\n")
    index = Index.create(folder / "index", embedder=embedder, reranker=reranker)
    with index:
        index.add(PHOTOS)
        index.add_sentences(folder / "sentences.txt")
    return folder / "index"


@contextlib.contextmanager
def serving(index, answerer, *more):
    """Run `crossgaze serve` and give its address."""
    command = [sys.executable, "-m", "crossgaze", "serve", str(index), "--port", "0", *more]
    command += ["--answerer", str(answerer)] if answerer else []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as process:
        try:
            said = process.stdout.readline()
            if " at http" not in said:
                raise SystemExit(f"crossgaze serve did not start: {said}")
            address = said.split(" at ")[1].split()[0]
            while True:
                with contextlib.suppress(OSError), urllib.request.urlopen(address + "health"):
                    break
                time.sleep(0.1)
            yield address
        finally:
            process.terminate()


def settled(page):
    """Wait until every picture in sight is there."""
    page.wait_for_function(
        "() => [...document.images].every((one) => one.complete || one.loading === 'lazy')"
    )
    page.wait_for_timeout(500)


def search(page, sentence):
    page.get_by_role("searchbox").fill(sentence)
    page.keyboard.press("Enter")
    page.wait_for_selector('#results[data-stage="ranked"] .scored')
    page.wait_for_function("() => document.querySelector('#status').textContent.startsWith('Best')")
    settled(page)


def open_photo(page, place):
    page.locator("#results .tile").nth(place).click()
    page.wait_for_selector("#chips button")
    settled(page)


def shoot(page, name, args):
    if args.all or name in SHOWN:
        page.screenshot(path=args.out / f"{name}.jpg", type="jpeg", quality=88)


def take(address, args):
    from playwright.sync_api import sync_playwright

    shots = {
        "page-light": ("light", 1280, 860),
        "page-dark": ("dark", 1280, 860),
        "page-phone": ("light", 390, 844),
    }
    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=args.chromium)
        for name, (scheme, width, height) in shots.items():
            phone = width < 500
            context = browser.new_context(
                color_scheme=scheme,
                viewport={"width": width, "height": height},
                device_scale_factor=2 if phone else 1,
                has_touch=phone,
            )
            page = context.new_page()
            for sentence in WARM:
                with urllib.request.urlopen(f"{address}search?{urlencode({'q': sentence})}") as one:
                    one.read()
            page.goto(address)
            page.wait_for_selector("#results .tile")
            settled(page)
            shoot(page, f"{name}-all", args)
            search(page, args.sentence)
            shoot(page, f"{name}-search", args)
            open_photo(page, args.place)
            shoot(page, f"{name}-photo", args)
            chip = page.locator("#chips button", has_text=args.word).first
            chip.click() if phone else chip.hover()
            page.wait_for_timeout(400)
            shoot(page, f"{name}-word", args)
            if args.answerer != "none":
                page.locator("#photo-close").click()
                search(page, args.ask_of)
                open_photo(page, 0)
                page.locator("#question").fill(args.question)
                page.keyboard.press("Enter")
                page.wait_for_selector("#steps .step", timeout=120_000)
                # As high as the panel, so that nothing of it is cut off.
                high = page.locator("#photo .panel").evaluate("one => one.scrollHeight")
                if not phone:
                    page.set_viewport_size({"width": width, "height": max(height, high)})
                settled(page)
                page.locator("#steps .step").last.click()
                page.mouse.move(0, 0)
                page.wait_for_timeout(400)
                shoot(page, f"{name}-ask", args)
            context.close()
        browser.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--embedder", help="gives one vector a photograph; default: the one that ships"
    )
    parser.add_argument("--reranker", help="compares regions with words")
    parser.add_argument("--answerer", default="daquar", help="answers questions; or none")
    parser.add_argument("--index", help="an index that is there already")
    parser.add_argument("--sentence", default=SENTENCE)
    parser.add_argument("--word", default="woman", help="the word that is pointed at")
    parser.add_argument("--place", type=int, default=0, help="which of the results is opened")
    parser.add_argument("--ask-of", default=ASK_OF, help="finds what to ask about")
    parser.add_argument("--question", default=QUESTION)
    parser.add_argument("--all", action="store_true", help="also what the pages do not show")
    parser.add_argument("--chromium", default=CHROMIUM)
    parser.add_argument("--out", default=OUT, type=Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.index and PHOTOS.exists():
        raise SystemExit(f"{PHOTOS}: is there already, and would be removed afterwards")
    try:
        with tempfile.TemporaryDirectory() as folder:
            index = args.index or make_index(Path(folder), args.embedder, args.reranker)
            with serving(index, args.answerer) as address:
                take(address, args)
    finally:
        if not args.index:
            shutil.rmtree(PHOTOS, ignore_errors=True)
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
