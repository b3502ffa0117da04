"""Explanations as one HTML file: hover, focus or tap a word and its regions light up, and back.

Nothing in it comes from elsewhere: pictures are data, the one script and the style are inside, and
a policy forbids everything else. Texts of users are escaped here and set as text by the script.
What lights a word's regions is `soft_map`, made here, as a veil that lies over the photograph.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from crossgaze.errors import InputError
from crossgaze.explain.drawing import DARK, Floats, sentence_case
from crossgaze.explain.explanation import MARKS, SMALL, Explanation, is_word
from crossgaze.explain.maps import soft_map
from crossgaze.explain.scene import Pixels, data_uri

ASSETS = Path(__file__).parent / "assets"
SIDE = 1280  # pixels of the photograph's longer side, at most
VEIL = 96  # pixels of a veil's longer side; it is stretched, and smooth anyway
LEVELS = 4  # a veil's darkness comes in steps of this, of 255, which makes it small
LISTED = 3  # regions a word in the table


def page(seen: Explanation | Sequence[Explanation], view: str | None = None) -> str:
    """Return one explanation, or several of the same photograph and sentence, as HTML.

    Args:
        seen: what `explain` gave.
        view: the map that it opens with, one of `Explanation.views`; the first if not given, and
            where a model of several has no such map.
    """
    every = [seen] if isinstance(seen, Explanation) else list(seen)
    if not every:
        raise InputError("explanations: got none, wanted at least one")
    style = (ASSETS / "page.css").read_text("utf-8")
    script = (ASSETS / "page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    policy += f"script-src 'sha256-{digest}'"
    # Inside a script nothing is escaped, and only "<" could end it.
    data = json.dumps([_data(one, view) for one in every]).replace("<", "\\u003c")
    sections = "\n".join(_section(one, view) for one in every)
    first = every[0]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(first.sentence)}: crossgaze explain</title>
<style>{style}</style></head><body>
<header><h1>{escape(first.sentence)}</h1>
<p>{_hint(every)}</p></header>
<main>
{sections}
</main>
<footer>Brightness is a share of the largest weight shown; the frame is the strongest region.
Keys: Tab to the words or to the photograph, arrows within them, Escape to clear.</footer>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body></html>
"""


def _hint(every: Sequence[Explanation]) -> str:
    """Return what to do on this page."""
    if any(one.kind == "words" for one in every):
        return "Point at a word or tap it to light its regions; point at a region for its words."
    if any(one.kind == "steps" for one in every):
        return "Choose a step; point at a region or a word for what it got."
    if any(one.kind == "regions" for one in every):
        return "Point at a region for its rank."
    return "Point at a region for its name."


def _section(seen: Explanation, view: str | None) -> str:
    """Return one model's part, readable without the script, too."""
    named = "" if seen.model == seen.family else f"{escape(seen.family)}, "
    names = [one["name"] for one in _views(seen, veils=False)]
    tabs = "".join(f'<button type="button">{escape(name)}</button>' for name in names)
    tabs = f'<div class="views" role="group" aria-label="Map">{tabs}</div>' if names[1:] else ""
    notes = "".join(f'<p class="notes">{escape(sentence_case(note))}.</p>' for note in seen.notes)
    small = _small(seen)
    height, width = small.shape[:2]
    ratio = width / height
    keys = 'aria-label="Photograph; the arrow keys go through its regions"'
    return f"""<section class="model">
<h2>{escape(seen.model)} <small>{named}score {seen.score:.3f}</small></h2>
<figure><div class="stage" tabindex="0" role="group" {keys} style="--ratio:{ratio:.4f}">\
<img src="{data_uri(small)}" width="{width}" height="{height}" alt="the photograph">\
<img class="veil" alt="" hidden><div class="frame" hidden><b></b></div></div></figure>
<div class="words" role="group" aria-label="Words of the sentence">{_chips(seen)}</div>
<p class="told" role="status"></p>
{tabs}<p class="meaning">{escape(sentence_case(seen.meaning))}.</p>{notes}
{_table(seen, view)}</section>"""


def _chips(seen: Explanation) -> str:
    """Return the words: buttons where they have something to show."""
    chips = []
    for number, word in enumerate(seen.words):
        if word in MARKS:
            continue  # nobody wrote them
        told = ' class="unknown" title="the model does not know this word"'
        told = told if word in seen.unknown else ""
        tag, kind = ("button", ' type="button"') if _speaks(seen, word) else ("span", "")
        text = escape(word)
        chips.append(f'<{tag}{kind} data-word="{number}"{told}>{text}</{tag}>')
    return "".join(chips)


def _speaks(seen: Explanation, word: str) -> bool:
    return seen.kind in ("words", "steps") and is_word(word)


def _table(seen: Explanation, view: str | None) -> str:
    """Return the strongest regions of every word as a table, for those who see no picture."""
    if seen.kind != "words":
        return ""
    name = _opened(seen, view)
    weights = seen.view(name)
    rows = []
    for number in seen.shown:
        order = np.argsort(-weights[number], kind="stable")[:LISTED]
        cells = "".join(
            f"<td>{escape(seen.label(region))} ({100 * float(weights[number, region]):.1f} %)</td>"
            for region in order.tolist()
            if weights[number, region] > 0
        )
        word = escape(seen.words[number])
        rows.append(f'<tr><th scope="row">{word}</th>{cells}</tr>')
    return (
        f"<details><summary>Strongest regions of every word ({escape(name)})</summary>"
        f'<div class="table"><table>{"".join(rows)}</table></div></details>'
    )


def _opened(seen: Explanation, view: str | None) -> str:
    """Return the map that a model's part opens with."""
    return seen.require_view(view if view in seen.views else None)


def _data(seen: Explanation, view: str | None) -> dict[str, Any]:
    """Return what the script needs: boxes in percent, and the weights and veils of each map."""
    x1, y1, x2, y2 = (100 * seen.boxes[:, side] for side in range(4))
    boxes = np.stack([x1, y1, x2 - x1, y2 - y1], 1)
    start = None
    if seen.kind == "words" and seen.shown:
        peaks = seen.view(_opened(seen, view)).max(1)
        telling = [n for n in seen.shown if seen.words[n] not in SMALL] or list(seen.shown)
        start = max(telling, key=lambda number: float(peaks[number]))
    rests = {
        "words": "Point at a word or a region.",
        "steps": "Bright regions and dark words are what this step looked at.",
        "regions": "Bright regions agree most with the vector of the whole image.",
        "none": "There is nothing to light up.",
    }
    return {
        "words": list(seen.words),
        "boxes": np.round(boxes.astype(np.float64), 2).tolist(),
        "labels": [seen.label(region) for region in range(len(seen.boxes))],
        "views": _views(seen, veils=True),
        "view": seen.views.index(_opened(seen, view)) if seen.views else 0,
        "start": start,
        "rest": rests[seen.kind],
    }


def _views(seen: Explanation, *, veils: bool) -> list[dict[str, Any]]:
    """Return the maps that can be chosen."""
    found: list[dict[str, Any]] = []
    if seen.kind == "words":
        for name in seen.views:
            view: dict[str, Any] = {"name": name, "back": name == "i-t"}
            if veils:
                weights = seen.view(name)
                view["weights"] = {number: _short(weights[number]) for number in seen.shown}
                view["veils"] = {number: _veil(seen, weights[number]) for number in seen.shown}
            found.append(view)
    elif seen.region_weights is not None:
        for number, name in enumerate(seen.names):
            view = {"name": name}
            if veils:
                view["regions"] = _short(seen.region_weights[number])
                view["veil"] = _veil(seen, seen.region_weights[number])
                if seen.word_weights is not None:
                    # Without the marks: darkness is a share of the largest weight of a word.
                    shares = _short(seen.word_weights[number])
                    listed = enumerate(zip(seen.words, shares, strict=True))
                    view["words"] = {n: share for n, (word, share) in listed if word not in MARKS}
            found.append(view)
    return found


def _short(weights: Floats) -> list[float]:
    return [float(f"{weight:.4g}") for weight in weights.tolist()]


def _veil(seen: Explanation, weights: Floats) -> str:
    """Return what darkens the photograph where nobody looked, as a small picture."""
    width, height = seen.size
    scale = VEIL / max(width, height)
    small = (max(round(width * scale), 8), max(round(height * scale), 8))
    dark = (1 - DARK) * (1 - soft_map(seen.boxes, weights, *small, rule=seen.rule))
    alpha = np.round(255 * dark / LEVELS).astype(np.uint8) * LEVELS
    veil = Image.merge("LA", [Image.new("L", small), Image.fromarray(alpha)])
    file = io.BytesIO()
    veil.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def _small(seen: Explanation) -> Pixels:
    """Return the photograph in the size that the page shows."""
    photo = Image.fromarray(seen.photo.pixels)
    photo.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    return np.asarray(photo)
