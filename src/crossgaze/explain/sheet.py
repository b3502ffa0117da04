"""Retrieval sheets: queries and their best answers, the right ones framed green, wrong ones red.

As figures 3 and 4 of VSRN and 6 and 7 of DAN, without their attention maps: an evaluation keeps no
weights, and `crossgaze explain` draws those of one pair. Right and wrong also differ by a sign, a
tick or a cross, and by the frame's thickness, for those who cannot tell the colours apart.
"""

from __future__ import annotations

from pathlib import Path

from crossgaze.errors import InputError, require_folder
from crossgaze.explain.drawing import GREY, INK, MARGIN, PAPER, SMALL_TEXT, WORD
from crossgaze.explain.queries import Only, Query, Side, choose, read_queries
from crossgaze.explain.scene import Box, Picture, Pixels, Scene, Stroke, Text, paragraph
from crossgaze.vision.photos import PhotoError, read_photo

RIGHT, WRONG = "#00845a", "#c8400a"  # a bluish green and a yellowish red: told apart by most
CELL, GAP, SIGN = 200, 14, 20  # pixels of a photograph's square, between them, of a sign
SENTENCES = 420  # width of a column of sentences


def draw_sheet(
    result: str | Path,
    photos: str | Path,
    *,
    side: Side = "sentences",
    rows: int = 6,
    top: int = 5,
    only: Only = "all",
) -> Scene:
    """Draw some queries of an evaluation with their best answers.

    Args:
        result: a file that `crossgaze evaluate --out` wrote.
        photos: the folder of the photographs, under the names that the data set has.
        side: "sentences" that ask for images, or "images" that ask for sentences.
        rows: how many queries.
        top: how many answers of each.
        only: "hits", "misses" or "all".

    Returns:
        The figure; `Scene.save` writes it as PNG or SVG.
    """
    if top < 1:
        raise InputError(f"top: got {top}, wanted 1 or more")
    folder = require_folder(photos, "the folder of the photographs")
    chosen = choose(read_queries(result, side), rows, only)
    most = min(top, max(len(query.answers) for query in chosen))
    scene = Scene(0, 0, f"{len(chosen)} queries and their best answers")
    y: float = MARGIN
    if side == "sentences":
        scene.width = max(round(2 * MARGIN + most * CELL + (most - 1) * GAP), 480)
        for query in chosen:
            y = _sentence_row(scene, query, folder, most, y) + 22
    else:
        scene.width = 2 * MARGIN + CELL + 20 + SENTENCES
        for query in chosen:
            y = _image_row(scene, query, folder, most, y) + 22
    legend = (
        "Right answers have a thick green frame and a tick, wrong ones a red frame and a cross."
    )
    for line in paragraph(legend, SMALL_TEXT, scene.width - 2 * MARGIN):
        scene.add(Text(line, MARGIN, y, SMALL_TEXT, GREY))
        y += round(1.4 * SMALL_TEXT)
    scene.height = round(y + MARGIN - 8)
    return scene


def _sentence_row(scene: Scene, query: Query, folder: Path, top: int, y: float) -> float:
    for text in paragraph(query.what, WORD, scene.width - 2 * MARGIN):
        scene.add(Text(text, MARGIN, y, WORD, INK))
        y += round(1.35 * WORD)
    scene.add(Text(_ranked(query), MARGIN, y, SMALL_TEXT, GREY))
    y += SMALL_TEXT + 10
    for place, answer in enumerate(query.answers[:top]):
        left = MARGIN + place * (CELL + GAP)
        _photo(scene, folder, answer.what, left, y)
        colour, line = (RIGHT, 5) if answer.right else (WRONG, 3)
        scene.add(Box(left, y, left + CELL, y + CELL, outline=colour, line=line))
        _sign(scene, answer.right, left + CELL - SIGN - line, y + line)
        told = f"{place + 1}.  {answer.score:.3f}"
        scene.add(Text(told, left, y + CELL + 5, SMALL_TEXT, GREY))
    return y + CELL + 5 + SMALL_TEXT + 6


def _image_row(scene: Scene, query: Query, folder: Path, top: int, y: float) -> float:
    _photo(scene, folder, query.what, MARGIN, y)
    scene.add(Text(_ranked(query), MARGIN, y + CELL + 5, SMALL_TEXT, GREY))
    left, line_top = MARGIN + CELL + 20, y
    for place, answer in enumerate(query.answers[:top]):
        lines = paragraph(answer.what, WORD, SENTENCES - SIGN - 34) or [""]
        high = len(lines) * round(1.35 * WORD) + SMALL_TEXT + 16
        colour, line = (RIGHT, 4) if answer.right else (WRONG, 2)
        scene.add(Box(left, line_top, left + SENTENCES, line_top + high, outline=colour, line=line))
        _sign(scene, answer.right, left + 9, line_top + 9)
        for row, text in enumerate(lines):
            spot = line_top + 8 + row * round(1.35 * WORD)
            scene.add(Text(text, left + SIGN + 20, spot, WORD, INK))
        low = line_top + high - SMALL_TEXT - 8
        told = f"{place + 1}.  {answer.score:.3f}"
        scene.add(Text(told, left + SIGN + 20, low, SMALL_TEXT, GREY))
        line_top += high + 8
    return max(y + CELL + 5 + SMALL_TEXT + 6, line_top)


def _ranked(query: Query) -> str:
    return f"the first right answer stands at {query.rank:,}"


def _photo(scene: Scene, folder: Path, name: str, left: float, top: float) -> None:
    """Draw a photograph within a square, or why it cannot be."""
    try:
        pixels: Pixels = read_photo(folder / name, 2 * CELL, fit="keep", multiple=1).pixels
    except PhotoError as error:
        scene.add(Box(left, top, left + CELL, top + CELL, fill="#eef0f3"))
        for row, line in enumerate(paragraph(f"{name}: {error.reason}", SMALL_TEXT, CELL - 20)[:9]):
            scene.add(Text(line, left + 10, top + 30 + 18 * row, SMALL_TEXT, GREY))
        return
    scale = CELL / max(pixels.shape[:2])
    high, wide = (side * scale for side in pixels.shape[:2])
    place = (left + (CELL - wide) / 2, top + (CELL - high) / 2)
    scene.add(Box(left, top, left + CELL, top + CELL, fill="#eef0f3"))
    scene.add(Picture(pixels, *place, wide, high, name))


def _sign(scene: Scene, right: bool, left: float, top: float) -> None:
    """Draw a tick or a cross on its colour."""
    colour = RIGHT if right else WRONG
    scene.add(Box(left, top, left + SIGN, top + SIGN, fill=colour, radius=3))

    def at(*points: tuple[float, float]) -> tuple[tuple[float, float], ...]:
        return tuple((left + x * SIGN, top + y * SIGN) for x, y in points)

    if right:
        scene.add(Stroke(at((0.22, 0.55), (0.42, 0.75), (0.8, 0.28)), PAPER, 2.6))
        return
    scene.add(
        Stroke(at((0.27, 0.27), (0.73, 0.73)), PAPER, 2.6),
        Stroke(at((0.73, 0.27), (0.27, 0.73)), PAPER, 2.6),
    )
