"""What every figure here is made of: lit photographs, framed regions, shaded words.

Light is brightness, as in the papers: a photograph is darkened where a model did not look, so the
order of weights can be seen whatever colours somebody can tell apart. A word stands on the darker
ground the more it counted (DAN, figure 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from crossgaze.explain.explanation import MARKS
from crossgaze.explain.maps import Rule, soft_map
from crossgaze.explain.scene import Box, Picture, Pixels, Scene, Text, flow, text_width

Floats = npt.NDArray[np.floating[Any]]
DARK = 0.12  # how bright a pixel stays that was not looked at
INK, GREY, PALE, PAPER = "#181c22", "#646b75", "#b0c4d6", "#ffffff"
LIT = "#f0b429"  # the frame of a region, with black around it: seen on light and on dark
SHADE = (18, 74, 128)  # the ground of a word that was looked at most
BLUE = "#{:02x}{:02x}{:02x}".format(*SHADE)
WORD, TITLE, SMALL_TEXT, PAD = 17, 15, 13, 5
PANEL, GAP, MARGIN = 400, 24, 28  # pixels: width of a panel, between them, around them
STRIP = WORD + 2 * PAD + 6  # from one line of words to the next


def darkened(
    pixels: Pixels,
    boxes: Floats,
    weights: Floats,
    rule: Rule = "strongest",
    brightest: float = 1.0,
) -> Pixels:
    """Return a photograph that is dark where nobody looked, (h, w, 3) uint8.

    The brightness of a pixel is its own times a share between `DARK` and 1 (`soft_map`), or
    between `DARK` and less where the whole look counted for less.

    Args:
        pixels: (h, w, 3) uint8.
        boxes: (k, 4) as shares of width and height.
        weights: (k,).
        rule: how weights of regions that overlap become one.
        brightest: the share that the strongest region has, from 0 to 1.
    """
    height, width = pixels.shape[:2]
    light = DARK + (1 - DARK) * brightest * soft_map(boxes, weights, width, height, rule=rule)
    return np.round(pixels * light[..., None]).astype(np.uint8)


def fitted(pixels: Pixels, width: float, tallest: float = 1.6) -> tuple[Pixels, float, float]:
    """Return a photograph made smaller for a panel, with the panel's width and height.

    It has two pixels for each of the panel's, and not more than it had.

    Args:
        pixels: (h, w, 3) uint8.
        width: of the panel.
        tallest: a photograph taller than so many widths is made narrower.
    """
    high, wide = pixels.shape[:2]
    height = min(width * high / wide, tallest * width)
    shown = max(height * wide / high, 0.3 * width)
    scale = min(2 * shown / wide, 1.0)
    size = (max(round(wide * scale), 1), max(round(high * scale), 1))
    small = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS)
    return np.asarray(small), shown, height


def frame(scene: Scene, box: Floats, picture: Picture, line: float = 2.5) -> None:
    """Outline a region of a picture: bright, between two black lines.

    Args:
        scene: to draw on.
        box: (4,) as shares of the picture.
        picture: the picture, as it lies in the scene.
        line: how thick the bright line is.
    """
    x1, y1, x2, y2 = (float(edge) for edge in box)
    left, right = (picture.left + share * picture.width for share in (x1, x2))
    top, bottom = (picture.top + share * picture.height for share in (y1, y2))
    # Of a panorama, regions are a few pixels high: they are not to be all frame.
    line = max(min(line, 0.1 * min(right - left, bottom - top)), 0.5)
    left, right = max(left - 1, picture.left), min(right + 1, picture.left + picture.width)
    top, bottom = max(top - 1, picture.top), min(bottom + 1, picture.top + picture.height)
    scene.add(
        Box(left, top, right, bottom, outline="#000000", line=line + min(2, 2 * line)),
        Box(left + 1, top + 1, right - 1, bottom - 1, outline=LIT, line=line),
    )


def sentence_case(text: str) -> str:
    """Return a text that begins with a capital letter.

    Example:
        >>> sentence_case("each word looks")
        'Each word looks'
    """
    return text[:1].upper() + text[1:]


def words_height(words: Sequence[str], width: float) -> float:
    """Return how high the words of `draw_words` stand."""
    return len(_lines(words, width)) * STRIP


def draw_words(
    scene: Scene,
    words: Sequence[str],
    weights: Floats | None,
    corner: tuple[float, float],
    width: float,
) -> None:
    """Draw words; the ground of each is as dark as its share of the largest weight.

    Args:
        scene: to draw on.
        words: (n,).
        weights: (n,), or None for words without a ground.
        corner: left and top.
        width: of a line.
    """
    most = 1.0 if weights is None else max(float(weights.max()), 1e-12)
    for row, line in enumerate(_lines(words, width)):
        top = corner[1] + row * STRIP
        for number, place in line:
            word = words[number]
            left, wide = corner[0] + place, text_width(word, WORD) + 2 * PAD
            share = 0.0 if weights is None else float(weights[number]) / most
            if weights is not None:
                bottom = top + WORD + 2 * PAD
                scene.add(Box(left, top, left + wide, bottom, fill=shade(share), radius=4))
            ink = PAPER if share > 0.5 else INK
            scene.add(Text(word, left + PAD, top + PAD - 1, WORD, ink))


def _lines(words: Sequence[str], width: float) -> list[list[tuple[int, float]]]:
    return flow([text_width(word, WORD) + 2 * PAD for word in words], width, 4)


def shade(share: float) -> str:
    """Return the ground of a word: white at 0, the darkest blue at 1."""
    parts = [round(255 + share * (part - 255)) for part in SHADE]
    return "#{:02x}{:02x}{:02x}".format(*parts)


def draw_steps(
    scene: Scene,
    pixels: Pixels,
    boxes: Floats,
    words: Sequence[str],
    region_weights: Floats | None,
    word_weights: Floats | None,
    top: float = MARGIN,
    panel: float = PANEL,
) -> float:
    """Draw a photograph and, beside it, what each step of attention looked at (DAN, figures 5-7).

    Args:
        scene: to draw on; made wide enough.
        pixels: the photograph.
        boxes: (k, 4) as shares.
        words: (n,) as the model read them; its marks of beginning and end are not drawn, and
            darkness is a share of the largest weight among the words that are.
        region_weights: (K, k) of K steps, or None if a model looks at no region.
        word_weights: (K, n), likewise.
        top: where the panels begin.
        panel: how wide they are.

    Returns:
        Where they end.
    """
    small, width, height = fitted(pixels, panel)
    width = max(width, 120.0)
    steps = max(len(part) if part is not None else 0 for part in (region_weights, word_weights))
    below = top + 26 + height + 14
    kept = [place for place, word in enumerate(words) if word not in MARKS]
    read = [words[place] for place in kept]
    for number in range(steps + 1):
        left, step = MARGIN + number * (width + GAP), number - 1
        title = "the photograph" if not number else f"step {number}"
        shown = small
        if number and region_weights is not None:
            shown = darkened(small, boxes, region_weights[step])
        scene.add(
            Text(title, left, top, TITLE, GREY),
            Picture(shown, left, top + 26, width, height, title),
        )
        weights = None if not number or word_weights is None else word_weights[step][kept]
        draw_words(scene, read, weights, (left, below), width)
    scene.width = max(scene.width, round(2 * MARGIN + (steps + 1) * width + steps * GAP))
    return below + words_height(read, width)
