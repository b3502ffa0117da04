"""The demonstration, from end to end."""

import json

import pytest

from crossgaze import demo
from crossgaze.cli import main
from crossgaze.errors import InputError, MissingExtraError

for package in ("skimage", "sklearn", "matplotlib"):
    pytest.importorskip(package, reason="the demonstration's photographs come with it")


def test_the_demonstration_runs_and_runs_again(tmp_path, capsys):
    assert main(["demo", "--into", str(tmp_path / "d")]) == 0
    out = capsys.readouterr().out
    assert "16 photographs became 36 regions each" in out
    assert main(["demo", "--into", str(tmp_path / "d"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["report"]["already"] == 16
    assert found["report"]["changed"] == []
    alike = {row["photograph"]: row["most_like"] for row in found["alike"]}
    # Two views of one motorcycle, and two photographs of the ground, are alike to anybody.
    assert alike["motorcycle-left.png"] == "motorcycle-right.png"
    assert alike["grass.png"] == "gravel.png"


def test_missing_packages_and_photographs_are_named(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(demo.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"crossgaze\[demo\]"):
            demo.build_gallery(tmp_path / "p")
    monkeypatch.setattr(demo, "PHOTOGRAPHS", [("skimage", "data", "no.png", "no.png")])
    with pytest.raises(InputError, match="none of the packages carries"):
        demo.build_gallery(tmp_path / "p")
