"""A picture of an answer: the photograph and, step by step, the regions and words looked at.

As figure 5 of DAN: the photograph is darkened where a step did not look, and a word stands on the
darker ground the more it was looked at. Brightness and darkness are shares of the step's largest
weight, so a step that looks everywhere alike leaves the photograph as it is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from crossgaze.asking.ask import Reply
from crossgaze.errors import InputError

PANEL, GAP, MARGIN = 400, 24, 28  # pixels: width of a panel, between them, around them
DARK = 0.12  # how bright a pixel stays that was not looked at
INK, GREY, GROUND = (24, 28, 34), (120, 126, 134), (255, 255, 255)
SHADE = np.array((18, 74, 128), np.float64)  # a word that was looked at most
BAR = (18, 74, 128)
WORD, TITLE, PAD = 17, 15, 5
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def attention_map(
    boxes: npt.NDArray[np.float32],
    weights: npt.NDArray[np.float32],
    width: int,
    height: int,
) -> npt.NDArray[np.float64]:
    """Return how much each pixel was looked at, (height, width), 1 where it was most.

    A pixel has the sum of the weights of the regions that it lies in.

    Args:
        boxes: (k, 4) shares of width and height.
        weights: (k,) of the regions.
        width: of the picture.
        height: of the picture.
    """
    heat = np.zeros((height, width))
    size = np.array([width, height] * 2)
    for (x1, y1, x2, y2), weight in zip(np.round(boxes * size).astype(int), weights, strict=True):
        heat[y1 : max(y2, y1 + 1), x1 : max(x2, x1 + 1)] += weight
    return heat / max(float(heat.max()), 1e-12)


def draw_reply(reply: Reply, out: str | Path | None = None) -> Image.Image:
    """Draw the question, the answers and every step's attention; write it if a file is named.

    Args:
        reply: what `ask` gave.
        out: a PNG or JPEG file.
    """
    photo = Image.fromarray(reply.photo.pixels)
    height = max(round(PANEL * photo.height / photo.width), 1)
    if height > 1.6 * PANEL:  # a tall photograph would make a tower of the picture
        height = round(1.6 * PANEL)
    width = max(round(height * photo.width / photo.height), 120)
    small = photo.resize((width, height), Image.Resampling.LANCZOS)
    panels = [(small, None, "the photograph")]
    steps = max(_steps(reply.region_weights), _steps(reply.word_weights))
    for step in range(steps):
        shown = small
        if reply.region_weights is not None:
            shown = darkened(small, reply.boxes, reply.region_weights[step])
        said = None if reply.word_weights is None else reply.word_weights[step]
        panels.append((shown, said, f"step {step + 1}"))
    lines = max(len(_layout(reply.words, width)), 1)
    below = lines * (WORD + 2 * PAD + 6)
    foot = 16 + 26 * len(reply.answers)
    full = 2 * MARGIN + len(panels) * width + (len(panels) - 1) * GAP
    canvas = Image.new("RGB", (full, 2 * MARGIN + 30 + height + 14 + below + foot), GROUND)
    draw = ImageDraw.Draw(canvas)
    for number, (image, weights, title) in enumerate(panels):
        left, top = MARGIN + number * (width + GAP), MARGIN
        draw.text((left, top), title, fill=GREY, font=_font(TITLE))
        canvas.paste(image, (left, top + 26))
        read = reply.words if weights is not None else _asked(reply.words)
        _draw_words(draw, read, weights, (left, top + 26 + height + 14), width)
    _draw_answers(draw, reply, (MARGIN, MARGIN + 26 + height + 14 + below + 16))
    if out is not None:
        _save(canvas, Path(out))
    return canvas


def darkened(
    photo: Image.Image,
    boxes: npt.NDArray[np.float32],
    weights: npt.NDArray[np.float32],
) -> Image.Image:
    """Return a photograph that is dark where a step did not look; edges of regions are soft."""
    heat = attention_map(boxes, weights, photo.width, photo.height)
    mask = Image.fromarray(np.round(255 * heat).astype(np.uint8))
    soft = mask.filter(ImageFilter.GaussianBlur(max(photo.size) / 40))
    light = np.asarray(soft, np.float64) / max(int(np.asarray(soft).max()), 1)
    light = DARK + (1 - DARK) * light
    pixels = np.asarray(photo, np.float64) * light[..., None]
    return Image.fromarray(np.round(pixels).astype(np.uint8))


def _steps(weights: npt.NDArray[np.float32] | None) -> int:
    return 0 if weights is None else len(weights)


def _font(size: int) -> Font:
    return ImageFont.load_default(size)


def _asked(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in ("<start>", "<end>"))


def _shown(word: str) -> str:
    return {"<start>": "start", "<end>": "end"}.get(word, word)


def _layout(words: tuple[str, ...], width: int) -> list[list[tuple[int, int, float]]]:
    """Return the lines of words, each as (number, place, width), that fit into a panel."""
    font = _font(WORD)
    lines: list[list[tuple[int, int, float]]] = [[]]
    place = 0.0
    for number, word in enumerate(words):
        wide = font.getlength(_shown(word)) + 2 * PAD
        if lines[-1] and place + wide > width:
            lines.append([])
            place = 0.0
        lines[-1].append((number, round(place), wide))
        place += wide + 4
    return lines


def _draw_words(
    draw: ImageDraw.ImageDraw,
    words: tuple[str, ...],
    weights: npt.NDArray[np.float32] | None,
    corner: tuple[int, int],
    width: int,
) -> None:
    """Draw the words; the ground of each is as dark as its share of the largest weight."""
    font = _font(WORD)
    most = 1.0 if weights is None else max(float(weights.max()), 1e-12)
    for row, line in enumerate(_layout(words, width)):
        top = corner[1] + row * (WORD + 2 * PAD + 6)
        for number, place, wide in line:
            share = 0.0 if weights is None else float(weights[number]) / most
            ground = np.round(255 + share * (SHADE - 255)).astype(int)
            left = corner[0] + place
            box = (left, top, left + wide, top + WORD + 2 * PAD)
            if weights is not None:
                draw.rounded_rectangle(box, 4, fill=tuple(ground.tolist()))
            special = words[number] in ("<start>", "<end>")
            ink = GROUND if share > 0.5 else GREY if special else INK
            draw.text((left + PAD, top + PAD - 1), _shown(words[number]), fill=ink, font=font)


def _draw_answers(draw: ImageDraw.ImageDraw, reply: Reply, corner: tuple[int, int]) -> None:
    """Draw the likeliest answers with a bar of their probability."""
    left, top = corner
    font, wide = _font(WORD), 220
    column = max(font.getlength(answer) for answer, _ in reply.answers) + 18
    for row, (answer, share) in enumerate(reply.answers):
        y = top + 26 * row
        draw.text((left, y), answer, fill=INK if not row else GREY, font=font)
        bar = (left + column, y + 4, left + column + max(wide * share, 1), y + 18)
        draw.rectangle(bar, fill=BAR if not row else (176, 196, 214))
        text = f"{100 * share:.1f} %"
        draw.text((bar[2] + 8, y), text, fill=INK if not row else GREY, font=font)


def _save(canvas: Image.Image, out: Path) -> None:
    try:
        canvas.save(out)
    except (ValueError, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{out}: cannot be written as a picture: {reason}") from None
