"""Explanations as files."""

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from crossgaze.errors import InputError
from crossgaze.explain import save, scene
from crossgaze.explain.figure import draw
from crossgaze.explain.page import page
from crossgaze.explain.saving import lacking
from explain_parts import made_up


def test_the_ending_decides(tmp_path):
    seen = made_up()
    save(seen, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text("utf-8") == page(seen)
    save([seen, seen], tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text("utf-8") == draw([seen, seen]).svg()
    save(seen, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == draw(seen).image().size


def test_signs_that_a_pictures_font_lacks_are_told(monkeypatch):
    pytest.importorskip("matplotlib", reason="needs crossgaze[viz]")
    text = "a caf\u00e9, \u05e9\u05dc\u05d5\u05dd \U0001f415?"
    told = "; boxes stand for signs that its font lacks: "
    assert lacking(Path("why.png"), text) == f"{told}\U0001f415"  # matplotlib's font has the rest
    with monkeypatch.context() as patch:
        patch.setattr(scene, "_wider", lambda size: None)
        assert lacking(Path("why.png"), text) == f"{told}\u00e9\u05e9\u05dc\u05d5\u05dd\U0001f415"
    assert lacking(Path("why.svg"), text) == lacking(Path("why.html"), text) == ""
    assert lacking(Path("why.png"), "a dog runs, it's 90 % \u2013 \u201cfine\u201d") == ""


def test_a_map_is_chosen_by_name(tmp_path):
    seen = made_up()
    seen = replace(seen, names=("t-i", "i-t"), weights=seen.weights.repeat(2, 0))
    save(seen, tmp_path / "a.svg", view="i-t")
    assert "0.500, i-t: " in (tmp_path / "a.svg").read_text("utf-8")
    save(seen, tmp_path / "a.html", view="i-t")
    assert (tmp_path / "a.html").read_text("utf-8") == page(seen, "i-t") != page(seen)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.txt", "wanted a name that ends in .html"),
        ("no/a.png", "no: no such folder"),
        ("d.png", "is a folder"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.png").mkdir()
    with pytest.raises(InputError, match=message):
        save(made_up(), name)
