"""An answer as one HTML file: thumbnails, scores, and where each word looked.

Nothing in it comes from elsewhere and nothing in it runs: pictures are data, hovering a word is
done by CSS. Every text is escaped, and a policy in the page forbids all but its own styles.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from crossgaze.errors import InputError
from crossgaze.explain.explanation import SMALL, is_word
from crossgaze.explain.scene import data_uri
from crossgaze.files import write_atomically
from crossgaze.search.results import Found, Hit, Look
from crossgaze.vision.photos import PhotoError, read_photo

if TYPE_CHECKING:
    from crossgaze.search.index import Index

SIDE = 480  # pixels of a thumbnail's longer side
SHOWN = 3  # words whose regions are outlined without hovering
LIT = 4  # regions that a hovered word lights
# Percent of a photograph: labels of regions that begin closer to each other would cover each other,
# and one that begins farther right would be cut off.
BESIDE, BELOW, FAR = 20, 9, 75

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6470; --page: #f6f7f9;
  --card: #fff; --line: #d9dee5; --lit: #e69f00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebef; --soft: #9aa4b0; --page: #14171b;
  --card: #1e2228; --line: #333a43; --lit: #f0b429; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 2rem clamp(1rem, 4vw, 3rem); background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } p { color: var(--soft); margin: .25rem 0 1rem; }
main { display: grid; gap: 1.25rem; grid-template-columns: repeat(auto-fill, minmax(19rem, 1fr));
  align-items: start; }
article { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  overflow: hidden; }
figure { margin: 0; position: relative; line-height: 0; background: #0003; }
figure img { width: 100%; height: auto; }
.box { position: absolute; border: 2px solid var(--lit); border-radius: 3px; line-height: 1.2;
  pointer-events: none; }
.box b { position: absolute; left: 0; top: 0; background: var(--lit); color: #000;
  font: 600 .75rem system-ui, sans-serif; padding: 0 .3rem; }
.box.end b { left: auto; right: 0; } .box.low b { top: auto; bottom: 0; }
.hover { display: none; background: #f0b42959; }
figure .text { line-height: 1.4; overflow-wrap: anywhere; }
.text { padding: .6rem .8rem .8rem; } .text small { color: var(--soft); overflow-wrap: anywhere; }
button { font: inherit; font-size: .85rem; margin: .3rem .2rem 0 0; padding: .05rem .5rem;
  border: 1px solid var(--line); border-radius: 1rem; background: none; color: inherit; }
button:hover, button:focus { background: var(--lit); color: #000; outline: none; }
"""


def write_page(index: Index, found: Found, path: str | Path) -> None:
    """Write an answer as an HTML file.

    Args:
        index: where it was found.
        found: the answer.
        path: the file.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: is a folder, wanted a file name to write")
    if not path.parent.is_dir():
        raise InputError(f"{path}: its folder is not there, wanted one to write to")
    write_atomically(path, page(index, found))


def page(index: Index, found: Found) -> str:
    """Return an answer as HTML."""
    told = [f"{len(found.hits)} of {found.total:,} photographs", found.how, *found.notes]
    cards, words = cards_of(index, found)
    sentences = "".join(
        f"<li>{escape(one.text)} <small>{one.score:.3f}</small></li>" for one in found.sentences
    )
    listed = f"<h2>Sentences</h2><ol>{sentences}</ol>" if sentences else ""
    body = f"<h1>{escape(found.query)}</h1>\n<p>{escape('; '.join(told))}</p>\n{cards}{listed}"
    return document(found.query, body, words)


def cards_of(index: Index, found: Found) -> tuple[str, int]:
    """Return the photographs of an answer as HTML, and how many words a card has at most."""
    cards, words = [], 0
    for hit in found.hits:
        looks = _looks(index, found, hit)
        words = max(words, len(looks))
        cards.append(_card(hit, looks, found.unknown))
    return f"<main>{''.join(cards)}</main>", words


def document(title: str, body: str, words: int) -> str:
    """Return a whole HTML file.

    Args:
        title: of the browser's tab; escaped here.
        body: HTML.
        words: how many words a card of `cards_of` in it has at most.
    """
    rules = "".join(
        f"article:has(.w{n}:hover) .h{n}, article:has(.w{n}:focus) .h{n} {{ display: block; }}\n"
        f"article:has(.w{n}:hover) .shown, article:has(.w{n}:focus) .shown {{ display: none; }}\n"
        for n in range(words)
    )
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}: crossgaze</title>
<style>{STYLE}{rules}</style></head><body>
{body}
</body></html>
"""


def _looks(index: Index, found: Found, hit: Hit) -> list[Look]:
    """Return where the words of a sentence looked; none for a picture."""
    if found.picture or index.reranker is None:
        return []
    looks = index.look(found.query, hit)
    return [one for one in looks if is_word(one.word)]


def _card(hit: Hit, looks: list[Look], unknown: Sequence[str]) -> str:
    # The words that looked most decidedly somewhere, each region once.
    shown: dict[int, str] = {}
    for look in sorted(looks, key=lambda one: -max(one.weights)):
        # Small words say little by where they look, and those that nobody taught nothing.
        silent = look.word in SMALL or look.word in unknown
        if len(shown) < SHOWN and look.strongest is not None and not silent:
            shown.setdefault(look.strongest, look.word)
    boxes: list[str] = []
    corners: list[tuple[float, float]] = []
    for region, label in shown.items():
        corner = _corner(hit, region)
        near = any(abs(corner[0] - x) < BESIDE and abs(corner[1] - y) < BELOW for x, y in corners)
        boxes.append(_box(hit, region, "shown low" if near else "shown", label))
        corners.append(corner)
    chips = []
    for number, look in enumerate(looks):
        told = ' title="no region answered this word"' if look.strongest is None else ""
        chips.append(f'<button class="w{number}"{told}>{escape(look.word)}</button>')
        lit = [region for region, weight in enumerate(look.weights) if weight > 0]
        order = sorted(lit, key=lambda region: -look.weights[region])
        for place, region in enumerate(order[:LIT]):
            strength = look.weights[region] / look.weights[order[0]]
            label = look.word if not place else ""
            boxes.append(_box(hit, region, f"hover h{number}", label, max(strength, 0.15)))
    picture = _thumbnail(hit.path)
    over = "".join(boxes) if picture.startswith("<img") else ""  # nothing is framed on words
    return (
        f"<article><figure>{picture}{over}</figure>"
        f'<div class="text"><strong>{hit.rank}.</strong> {hit.score:.3f}<br>'
        f"<small>{escape(hit.path)}</small><div>{''.join(chips)}</div></div></article>"
    )


def _corner(hit: Hit, region: int) -> tuple[float, float]:
    """Return where a region begins, in percent of its photograph's width and height."""
    if not hit.width or not hit.height or region >= len(hit.regions):
        return 0.0, 0.0
    x1, y1, _, _ = hit.regions[region].box
    return 100 * x1 / hit.width, 100 * y1 / hit.height


def _box(hit: Hit, region: int, kind: str, label: str, opacity: float = 1.0) -> str:
    if not hit.width or not hit.height or region >= len(hit.regions):
        return ""
    x1, y1, x2, y2 = hit.regions[region].box
    left, top = _corner(hit, region)
    kind += " end" if left > FAR else ""
    width, height = 100 * (x2 - x1) / hit.width, 100 * (y2 - y1) / hit.height
    name = f"<b>{escape(label)}</b>" if label else ""
    return (
        f'<div class="box {kind}" style="left:{left:.2f}%;top:{top:.2f}%;width:{width:.2f}%;'
        f'height:{height:.2f}%;opacity:{opacity:.2f}">{name}</div>'
    )


def _thumbnail(path: str) -> str:
    """Return a photograph as a small picture inside the page."""
    try:
        photo = read_photo(path, SIDE, fit="keep", multiple=1)
    except PhotoError as error:
        return f'<div class="text">{escape(error.reason)}</div>'
    height, width = photo.pixels.shape[:2]
    data = data_uri(photo.pixels, quality=82)
    return f'<img src="{data}" width="{width}" height="{height}" alt="">'
