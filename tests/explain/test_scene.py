"""One layout as pixels and as SVG."""

import base64
import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from crossgaze.errors import InputError
from crossgaze.explain.scene import Box, Picture, Scene, Stroke, Text, flow, paragraph, text_width

SPACE = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def scene():
    made = Scene(100, 60, "a <b> & more")
    made.add(
        Picture(np.full((20, 30, 3), 90, np.uint8), 10, 10, 30, 20, "x"),
        Box(50, 10, 70, 30, fill="#ff0000", outline="#0000ff", line=2),
        Text("dogs & <cats>", 10, 40, 10, "#000000"),
        Stroke(((80, 10), (90, 30)), "#00ff00", 2),
    )
    return made


def test_parts_lie_where_they_are_said_to(scene):
    pixels = np.asarray(scene.image(2))
    assert pixels.shape == (120, 200, 3)
    assert pixels[40, 50].tolist() == [90] * 3
    assert pixels[40, 120].tolist() == [255, 0, 0]
    assert pixels[21, 101].tolist() == [0, 0, 255]
    assert pixels[5, 5].tolist() == [255] * 3
    assert pixels[40, 170].tolist() == [0, 255, 0]
    assert (pixels[80:104, 20:60] < 128).any()


def test_svg_says_the_same_and_is_escaped(scene):
    tree = ET.fromstring(scene.svg())
    assert (tree.get("width"), tree.get("height")) == ("100", "60")
    assert tree.find(f"{SPACE}title").text == "a <b> & more"
    text = tree.find(f"{SPACE}text")
    assert text.text == "dogs & <cats>"
    assert float(text.get("textLength")) == pytest.approx(text_width("dogs & <cats>", 10), abs=0.1)
    image = tree.find(f"{SPACE}image")
    kind, data = image.get("href").split(",")
    assert kind == "data:image/jpeg;base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        assert picture.size == (30, 20)
    box = tree.findall(f"{SPACE}rect")[1]
    edges = [float(box.get(name)) for name in ("x", "y", "width", "height", "stroke-width")]
    assert edges == [51, 11, 18, 18, 2]  # an outline lies around its path


def test_signs_that_xml_cannot_hold_are_left_out():
    made = Scene(10, 10, "a\x00b\x1f\ud800")
    made.add(Text("c\x08d", 0, 0, 5, "#000000"))
    tree = ET.fromstring(made.svg())
    assert tree.find(f"{SPACE}title").text == "ab"
    assert tree.find(f"{SPACE}text").text == "cd"


def test_texts_are_broken_into_lines_that_fit():
    text = "two dogs play in the white snow beside a very long fence"
    lines = paragraph(text, 12, 90)
    assert " ".join(lines) == text
    assert all(text_width(line, 12) <= 90 for line in lines)
    assert paragraph("  ", 12, 90) == []
    assert flow([100, 10], 50, 5) == [[(0, 0.0)], [(1, 0.0)]]


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.jpg", "a.webp"])
def test_it_is_written_by_its_ending(scene, tmp_path, name):
    scene.save(tmp_path / name)
    if name == "a.svg":
        assert (tmp_path / name).read_text("utf-8") == scene.svg()
        return
    with Image.open(tmp_path / name) as picture:
        assert picture.size == (200, 120)


def test_what_cannot_be_written_is_named(scene, tmp_path):
    for name, message in (("a.xyz", "unknown file extension"), ("no/a.png", "No such file")):
        with pytest.raises(InputError, match=f"cannot be written as a picture: {message}"):
            scene.save(tmp_path / name)
