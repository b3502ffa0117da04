"""Explanations as figures: what each kind of model has to show, as its paper shows it.

| kind | figure |
| --- | --- |
| words | one panel a word, its regions lit and the strongest outlined (SCAN, figure 4) |
| steps | the photograph and each step, words below on darker ground (DAN, figures 5-7) |
| regions | the photograph and the map of rank squared (VSRN, section 4.5) |
| none | the photograph, and a line that says that there is nothing to show |

Brightness considers region and word, as SCAN's figure does: where words look at regions, a panel is
as bright as its word counted (`Explanation.importance`).

Two models on the same pair stand word above word (CCR/CCS, figure 1).
"""

from __future__ import annotations

from collections.abc import Sequence

from crossgaze.errors import InputError
from crossgaze.explain.drawing import (
    BLUE,
    GAP,
    GREY,
    INK,
    MARGIN,
    PANEL,
    SMALL_TEXT,
    TITLE,
    WORD,
    Floats,
    darkened,
    draw_steps,
    fitted,
    frame,
    sentence_case,
)
from crossgaze.explain.explanation import Explanation
from crossgaze.explain.scene import Picture, Pixels, Scene, Text, paragraph, text_width

COLUMNS, NARROW, NEAR = 5, 220, 14  # panels in a row, how wide, and between them
HEAD = 22  # size of the sentence above
COUNTED = (
    "A panel is as bright as its word counted: by how well the word agrees with what it looked at, "
    "as a share of the sentence's best."
)
WIDEST = 2 * MARGIN + COLUMNS * NARROW + (COLUMNS - 1) * NEAR


def draw(
    seen: Explanation | Sequence[Explanation],
    view: str | None = None,
    *,
    importance: bool = True,
) -> Scene:
    """Draw one explanation, or several of the same photograph and sentence.

    Args:
        seen: what `explain` gave.
        view: which map of words and regions, one of `Explanation.views`; the first if not given.
        importance: whether panels of words that counted for less are darker (SCAN, figure 4);
            otherwise each panel's own largest weight is bright.
    """
    every = [seen] if isinstance(seen, Explanation) else list(seen)
    if not every:
        raise InputError("explanations: got none, wanted at least one")
    first = every[0]
    if any(one.sentence != first.sentence for one in every):
        raise InputError("explanations: are of different sentences, wanted one pair")
    scene = Scene(
        0, 0, f"Where {' and '.join(one.model for one in every)} looked: {first.sentence}"
    )
    widths = [_width(one) for one in every]
    scene.width = max(widths)
    top = _lines(scene, first.sentence, HEAD, INK, MARGIN) + 10
    together = len(every) > 1 and all(one.kind == "words" for one in every)
    if together and all(_read(one) == _read(first) for one in every):
        top = _words(scene, every, view, top, importance)
        for one in every:
            top = _foot(scene, one, view, top, importance)
    else:
        for one in every:
            top = _one(scene, one, view, top, importance) + (GAP if one is not every[-1] else 0)
    scene.height = round(top + MARGIN - 6)
    return scene


def _one(scene: Scene, seen: Explanation, view: str | None, top: float, importance: bool) -> float:
    """Draw what one model has to show; returns where it ends."""
    if seen.kind == "words":
        bottom = _words(scene, [seen], view, top, importance)
    elif seen.kind == "steps":
        bottom = draw_steps(
            scene,
            seen.photo.pixels,
            seen.boxes,
            seen.words,
            seen.region_weights,
            seen.word_weights,
            top,
        )
    else:
        bottom = _pair(scene, seen, top) + 10
    return _foot(scene, seen, view, bottom, importance)


def _width(seen: Explanation) -> int:
    """Return how wide a model's part is, for texts above and below."""
    if seen.kind == "words":
        count = min(len(seen.shown) + 1, COLUMNS)
        return max(2 * MARGIN + count * NARROW + (count - 1) * NEAR, 560)
    steps = len(seen.names) + 1 if seen.kind == "steps" else 2 if seen.kind == "regions" else 1
    wide = fitted(seen.photo.pixels, PANEL)[1]
    return max(round(2 * MARGIN + steps * wide + (steps - 1) * GAP), 560)


def _words(
    scene: Scene, every: Sequence[Explanation], view: str | None, top: float, importance: bool
) -> float:
    """Draw one panel a word, one row a model; returns where they end."""
    first = every[0]
    small, wide, high = fitted(first.photo.pixels, NARROW)
    maps = [one.view(view if view in one.views else None) for one in every]
    counted = [_counted(one, view, importance) for one in every]
    # A slim photograph leaves the words above and below it as much room as any.
    columns = max((scene.width - 2 * MARGIN + NEAR) // (NARROW + NEAR), 1)
    # The photograph itself goes first. Words by their place among words: marks differ by model.
    cells: list[int | None] = [None, *range(len(first.shown))]
    for start in range(0, len(cells), columns):
        line = cells[start : start + columns]
        places = [MARGIN + column * (NARROW + NEAR) for column in range(len(line))]
        for left, word in zip(places, line, strict=True):
            title, size, ink = "the photograph", TITLE, GREY
            if word is not None:
                title, size, ink = _read(first)[word], WORD, INK
                title += " (unknown)" if title in first.unknown else ""
            scene.add(Text(_short(title, size, NARROW), left, top, size, ink))
        top += 24
        for row, (one, weights, shares) in enumerate(zip(every, maps, counted, strict=True)):
            if len(every) > 1:
                scene.add(Text(f"{one.model}, {one.score:.3f}", MARGIN, top, TITLE, BLUE))
                top += TITLE + 7
            for left, word in zip(places, line, strict=True):
                place = (left, top, wide, high)
                if word is not None:
                    number = one.shown[word]
                    share = 1.0 if shares is None else float(shares[number])
                    told = _panel(scene, one, weights[number], small, place, share)
                    told += f"; the word {share:.2f}" if shares is not None else ""
                    low = top + high + 4
                    scene.add(Text(_short(told, SMALL_TEXT, NARROW), left, low, SMALL_TEXT, GREY))
                elif not row:
                    scene.add(Picture(small, *place, first.sentence))
            top += high + 4 + SMALL_TEXT + 14
        top += 12 if len(every) > 1 else 0
    return top


def _read(seen: Explanation) -> list[str]:
    """Return the words that are shown."""
    return [seen.words[number] for number in seen.shown]


def _panel(
    scene: Scene,
    seen: Explanation,
    weights: Floats,
    pixels: Pixels,
    place: tuple[float, float, float, float],
    share: float,
) -> str:
    """Draw the photograph as a word saw it; returns what to write below."""
    picture = Picture(darkened(pixels, seen.boxes, weights, brightest=share), *place)
    scene.add(picture)
    strongest = int(weights.argmax())
    if weights[strongest] <= 0:
        return "no region"
    frame(scene, seen.boxes[strongest], picture)
    return f"{seen.label(strongest)}, {100 * float(weights[strongest]):.0f} %"


def _pair(scene: Scene, seen: Explanation, top: float) -> float:
    """Draw the photograph and, where regions have weights, their map; returns where they end."""
    pixels, wide, high = fitted(seen.photo.pixels, PANEL)
    panels = [("the photograph", pixels)]
    if seen.region_weights is not None:
        lit = darkened(pixels, seen.boxes, seen.region_weights[0], seen.rule)
        panels.append(("what the image's vector holds", lit))
    for number, (title, shown) in enumerate(panels):
        left = MARGIN + number * (wide + GAP)
        picture = Picture(shown, left, top + 26, wide, high, title)
        scene.add(Text(title, left, top, TITLE, GREY), picture)
        if number and seen.region_weights is not None:
            frame(scene, seen.boxes[int(seen.region_weights[0].argmax())], picture)
    return top + 26 + high


def _counted(seen: Explanation, view: str | None, importance: bool) -> Floats | None:
    """Return how much each word counted, where a map and the caller have it so."""
    return seen.importance(view if view in seen.views else None) if importance else None


def _foot(scene: Scene, seen: Explanation, view: str | None, top: float, importance: bool) -> float:
    """Write which model it was and what its weights are; returns where that ends."""
    named = seen.model if seen.model == seen.family else f"{seen.model} ({seen.family})"
    what = [f"{named}, score {seen.score:.3f}"]
    if seen.kind == "words":
        what.append(seen.require_view(view if view in seen.views else None))
    text = f"{', '.join(what)}: {seen.meaning}."
    notes = [f"{sentence_case(note)}." for note in seen.notes]
    if seen.kind == "words" and _counted(seen, view, importance) is not None:
        notes.insert(0, COUNTED)
    return _lines(scene, " ".join([text, *notes]), SMALL_TEXT, GREY, top + 4)


def _lines(scene: Scene, text: str, size: float, ink: str, top: float) -> float:
    """Write a text across the figure; returns where it ends."""
    for line in paragraph(text, size, scene.width - 2 * MARGIN):
        scene.add(Text(line, MARGIN, top, size, ink))
        top += round(1.4 * size)
    return top


def _short(text: str, size: float, room: float) -> str:
    """Return a text cut to the room that there is."""
    if text_width(text, size) <= room:
        return text
    while text and text_width(f"{text}...", size) > room:
        text = text[:-1]
    return f"{text.rstrip()}..."
