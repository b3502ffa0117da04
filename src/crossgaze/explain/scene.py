"""A figure as a list of simple parts, drawn as pixels (Pillow) or written as SVG: one layout, both.

Places are in pixels from the top left. Texts are measured with the font that Pillow brings; in SVG
each is told to take up that length, so that a viewer's own font cannot break the layout.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from crossgaze.errors import InputError
from crossgaze.files import write_atomically

FINE = 2  # a picture has this many pixels for one of the layout's, and texts and lines are sharp
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
Pixels = npt.NDArray[np.uint8]
JPEG = {".jpg", ".jpeg"}


@dataclass(frozen=True, eq=False)
class Picture:
    """A photograph, (h, w, 3) uint8, laid into a place."""

    pixels: Pixels
    left: float
    top: float
    width: float
    height: float
    name: str = ""


@dataclass(frozen=True)
class Box:
    """A rectangle, filled or outlined or both; the outline lies inside it."""

    left: float
    top: float
    right: float
    bottom: float
    fill: str | None = None
    outline: str | None = None
    line: float = 1.0
    radius: float = 0.0


@dataclass(frozen=True)
class Text:
    """One line of text, `top` being that of its line."""

    text: str
    left: float
    top: float
    size: float
    ink: str


@dataclass(frozen=True)
class Stroke:
    """A line through points."""

    points: tuple[tuple[float, float], ...]
    ink: str
    line: float


@cache
def font(size: float) -> Font:
    """Return the font of a size; the one that Pillow brings, so that it is there everywhere."""
    return ImageFont.load_default(size)


@cache
def _wider(size: float) -> Font | None:
    """Return a font with far more signs, matplotlib's, where that is installed."""
    spec = find_spec("matplotlib")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(place) / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"
        if path.is_file():
            return ImageFont.truetype(path, size)
    return None


def font_for(text: str, size: float) -> Font:
    """Return the font to write a text in: Pillow's own has little beyond ASCII."""
    return (_wider(size) if _lacked(text, font(20)) else None) or font(size)


def _lacked(text: str, by: Font) -> str:
    blank = bytes(by.getmask("\U0010ffff"))  # no font has this one
    signs = dict.fromkeys(sign for sign in text if not sign.isspace())
    return "".join(sign for sign in signs if bytes(by.getmask(sign)) == blank)


def unwritten(text: str) -> str:
    """Return the signs of a text that its font lacks: a picture has empty boxes in their place.

    Example:
        >>> unwritten("a dog, \U0001f415")
        '🐕'
    """
    return _lacked(text, font_for(text, 20))


def text_width(text: str, size: float) -> float:
    """Return how many pixels a text takes up."""
    return float(font_for(text, size).getlength(text))


@dataclass
class Scene:
    """A figure.

    Args:
        width: in pixels.
        height: likewise.
        title: what it shows, for those who cannot see it (SVG) and for search (PNG).

    Example:
        >>> scene = Scene(40, 20, "a box")
        >>> scene.add(Box(2, 2, 38, 18, fill="#123456"))
        >>> scene.image().size, scene.svg().startswith("<svg ")
        ((80, 40), True)
    """

    width: int
    height: int
    title: str
    ground: str = "#ffffff"
    parts: list[Picture | Box | Text | Stroke] = field(default_factory=list)

    def add(self, *parts: Picture | Box | Text | Stroke) -> None:
        """Lay parts over what is there."""
        self.parts.extend(parts)

    def image(self, fine: int = FINE) -> Image.Image:
        """Draw the figure, with `fine` pixels for one of the layout's."""
        canvas = Image.new("RGB", (self.width * fine, self.height * fine), self.ground)
        pen = ImageDraw.Draw(canvas)
        for part in self.parts:
            if isinstance(part, Picture):
                size = (max(round(part.width * fine), 1), max(round(part.height * fine), 1))
                small = Image.fromarray(part.pixels).resize(size, Image.Resampling.LANCZOS)
                canvas.paste(small, (round(part.left * fine), round(part.top * fine)))
            elif isinstance(part, Box):
                place = [round(edge * fine) for edge in (part.left, part.top)]
                place += [round(edge * fine) - 1 for edge in (part.right, part.bottom)]
                place[2:] = [max(place[2], place[0]), max(place[3], place[1])]
                line = max(round(part.line * fine), 1)
                pen.rounded_rectangle(
                    place,
                    part.radius * fine,
                    fill=part.fill,
                    outline=part.outline,
                    width=line if part.outline else 0,
                )
            elif isinstance(part, Text):
                start = (part.left * fine, part.top * fine)
                pen.text(
                    start, part.text, fill=part.ink, font=font_for(part.text, part.size * fine)
                )
            else:
                points = [(x * fine, y * fine) for x, y in part.points]
                pen.line(points, fill=part.ink, width=round(part.line * fine), joint="curve")
        return canvas

    def svg(self) -> str:
        """Return the figure as SVG with everything inside it."""
        drawn = "\n".join(map(_svg, self.parts))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" role="img">\n'
            f"<title>{_plain(self.title)}</title>\n"
            f'<rect width="100%" height="100%" fill="{self.ground}"/>\n{drawn}\n</svg>\n'
        )

    def save(self, out: str | Path) -> None:
        """Write the figure: .svg, or whatever picture Pillow writes by the name's ending."""
        out = Path(out)
        if out.suffix.lower() == ".svg":
            write_atomically(out, self.svg())
            return
        file = io.BytesIO()
        try:
            kind = Image.registered_extensions()[out.suffix.lower()]
            options = {"quality": 90} if out.suffix.lower() in JPEG else {}
            self.image().save(file, kind, **options)
            write_atomically(out, file.getvalue())
        except KeyError:
            reason = f"unknown file extension: {out.suffix}"
            raise InputError(f"{out}: cannot be written as a picture: {reason}") from None
        except (ValueError, OSError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{out}: cannot be written as a picture: {reason}") from None


def data_uri(pixels: Pixels, quality: int = 85) -> str:
    """Return a photograph, (h, w, 3) uint8, as text to put into a page: JPEG in base64."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()


def _svg(part: Picture | Box | Text | Stroke) -> str:
    if isinstance(part, Picture):
        size = (min(part.pixels.shape[1], round(2 * part.width)), 0)
        high = max(round(size[0] * part.pixels.shape[0] / part.pixels.shape[1]), 1)
        small = np.asarray(Image.fromarray(part.pixels).resize((max(size[0], 1), high)))
        return (
            f'<image x="{part.left:.1f}" y="{part.top:.1f}" width="{part.width:.1f}" '
            f'height="{part.height:.1f}" preserveAspectRatio="none" href="{data_uri(small)}">'
            f"<title>{_plain(part.name)}</title></image>"
        )
    if isinstance(part, Box):
        half = part.line / 2 if part.outline else 0  # SVG draws an outline around its edge
        stroke = f' stroke="{part.outline}" stroke-width="{part.line:g}"' if part.outline else ""
        return (
            f'<rect x="{part.left + half:.1f}" y="{part.top + half:.1f}" '
            f'width="{max(part.right - part.left - 2 * half, 0.1):.1f}" '
            f'height="{max(part.bottom - part.top - 2 * half, 0.1):.1f}" '
            f'rx="{part.radius:g}" fill="{part.fill or "none"}"{stroke}/>'
        )
    if isinstance(part, Text):
        length = text_width(part.text, part.size)
        fit = f' textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs"' if length else ""
        # A line's top to its letters' feet.
        return (
            f'<text x="{part.left:.1f}" y="{part.top + 0.95 * part.size:.1f}" fill="{part.ink}" '
            f'font-family="Aileron, Helvetica, Arial, sans-serif" font-size="{part.size:g}"{fit}>'
            f"{_plain(part.text)}</text>"
        )
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in part.points)
    return (
        f'<polyline points="{points}" fill="none" stroke="{part.ink}" stroke-width="{part.line:g}" '
        'stroke-linecap="round" stroke-linejoin="round"/>'
    )


def _plain(text: str) -> str:
    """Return a text for XML: escaped, without the signs that XML cannot hold at all."""
    return escape("".join(sign for sign in text if sign.isprintable()))


def flow(widths: Sequence[float], room: float, gap: float) -> list[list[tuple[int, float]]]:
    """Break pieces into lines that fit; returns each line's pieces as (number, place).

    Args:
        widths: of the pieces; one that is wider than a line has a line to itself.
        room: width of a line.
        gap: between two pieces of a line.

    Example:
        >>> flow([30, 30, 30], 70, 5)
        [[(0, 0.0), (1, 35.0)], [(2, 0.0)]]
    """
    lines: list[list[tuple[int, float]]] = [[]]
    place = 0.0
    for number, wide in enumerate(widths):
        if lines[-1] and place + wide > room:
            lines.append([])
            place = 0.0
        lines[-1].append((number, place))
        place += wide + gap
    return lines


def paragraph(text: str, size: float, room: float) -> list[str]:
    """Return a text as lines that fit."""
    words = text.split()
    if not words:
        return []
    widths = [text_width(word, size) for word in words]
    lines = flow(widths, room, text_width(" ", size))
    return [" ".join(words[number] for number, _ in line) for line in lines]
