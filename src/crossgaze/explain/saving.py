"""Explanations to files: HTML, SVG or a picture, by the name's ending."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crossgaze.errors import InputError, require_folder
from crossgaze.explain.explanation import Explanation
from crossgaze.files import write_atomically

PICTURES = (".png", ".svg", ".jpg", ".jpeg", ".webp")
PAGES = (".html", ".htm")


def save(
    seen: Explanation | Sequence[Explanation],
    out: str | Path,
    *,
    view: str | None = None,
    importance: bool = True,
) -> None:
    """Write one explanation, or several of the same pair side by side.

    Args:
        seen: what `explain` gave.
        out: a file; .html is the page that answers to the pointer, .png, .svg, .jpg and .webp are
            figures.
        view: which map (`Explanation.views`): the one of a figure of words and regions, the one
            that a page, which has all, opens with.
        importance: whether a figure's panels of words that counted for less are darker; a page has
            one word at a time, and lights each by itself.
    """
    path = require_target(out)
    if path.suffix.lower() in PAGES:
        from crossgaze.explain.page import page

        write_atomically(path, page(seen, view))
        return
    from crossgaze.explain.figure import draw

    draw(seen, view, importance=importance).save(path)


def lacking(out: Path, text: str) -> str:
    """Return what to add to a picture's name where its font lacks signs of a text, else nothing."""
    from crossgaze.explain.scene import unwritten

    signs = "" if out.suffix.lower() in (*PAGES, ".svg") else unwritten(text)
    return f"; boxes stand for signs that its font lacks: {signs}" if signs else ""


def require_target(
    out: str | Path, endings: Sequence[str] = (*PAGES, *PICTURES), what: str = "a name"
) -> Path:
    """Return a file name that can be written, or say what is wrong with it.

    Args:
        out: the name.
        endings: what it may end in.
        what: is wanted, for people.
    """
    path = Path(out)
    if path.suffix.lower() not in endings:
        raise InputError(f"{path}: wanted {what} that ends in {', '.join(endings)}")
    if path.is_dir():
        raise InputError(f"{path}: is a folder, wanted a file to write")
    require_folder(path.parent, "a folder to write to")
    return path
