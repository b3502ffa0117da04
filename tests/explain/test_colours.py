"""Colours stay apart for those who see fewer of them.

Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision
Deficiency, IEEE TVCG 2009: the matrices of severity 1.0, over linear RGB. Distances are CIE 1976's,
in L*a*b* under D65.
"""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import crossgaze
from crossgaze.explain.drawing import INK, LIT, PALE, PAPER, SHADE
from crossgaze.explain.sheet import RIGHT, WRONG

SEEN = {
    "all colours": np.eye(3),
    "no red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
APART = 14  # about 2 can just be seen side by side


def lab(colour, seen):
    """Return a colour as somebody sees it, in L*a*b*."""
    text = colour.lstrip("#")
    text = "".join(2 * sign for sign in text) if len(text) == 3 else text
    rgb = np.array([int(text[place : place + 2], 16) for place in (0, 2, 4)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(np.asarray(SEEN[seen]) @ linear, 0, 1) / TO_XYZ.sum(1)
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one, other, seen):
    return float(np.linalg.norm(lab(one, seen) - lab(other, seen)))


def themes():
    """Return the page's colours by name, light and dark."""
    style = (Path(crossgaze.__file__).parent / "web" / "static" / "style.css").read_text()
    light, dark = style.split("prefers-color-scheme: dark", 1)
    first = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6})\b", light))
    return first, first | dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6})\b", dark))


def test_the_distance_is_what_it_is_known_to_be():
    assert lab("#ffffff", "all colours") == pytest.approx([100, 0, 0], abs=0.02)
    assert lab("#ff0000", "all colours") == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    # What Machado's figures show: without green, a red and a green of like brightness come close.
    assert distance("#a05000", "#607800", "no green") < 0.4 * distance(
        "#a05000", "#607800", "all colours"
    )


@pytest.mark.parametrize("seen", SEEN)
def test_right_and_wrong_on_a_sheet_are_told_apart(seen):
    assert distance(RIGHT, WRONG, seen) > APART


@pytest.mark.parametrize("seen", SEEN)
def test_what_lies_beside_each_other_in_a_figure_is_told_apart(seen):
    shade = "#{:02x}{:02x}{:02x}".format(*SHADE)
    for one, other in ((LIT, "#000000"), (LIT, PAPER), (shade, PAPER), (shade, PALE), (INK, PALE)):
        assert distance(one, other, seen) > APART, (one, other)


@pytest.mark.parametrize("seen", SEEN)
def test_the_pages_words_have_colours_that_are_told_apart(seen):
    for theme in themes():
        used = [theme[name] for name in ("one", "two", "three", "lit")]
        for one, other in combinations(used, 2):
            assert distance(one, other, seen) > APART, (one, other)
        assert distance(theme["wrong"], theme["page"], seen) > APART
