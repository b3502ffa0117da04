"""`crossgaze demo`, from end to end."""

import json

import pytest

from command_line import run

for package in ("skimage", "sklearn", "matplotlib"):
    pytest.importorskip(package, reason="the demonstration's photographs come with it")


def test_the_demonstration_runs_and_runs_again(tmp_path, capsys):
    code, out, _ = run(capsys, "demo", "--into", tmp_path / "d")
    assert code == 0
    assert "16 photographs became up to 37 regions each" in out
    assert f"store verify {tmp_path}/d/regions" in out
    code, out, _ = run(capsys, "demo", "--into", tmp_path / "d", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["report"]["already"] == 16
    assert found["report"]["changed"] == []
    alike = {row["photograph"]: row["most_like"] for row in found["alike"]}
    # Two views of one motorcycle, and two photographs of the ground, are alike to anybody.
    assert alike["motorcycle-left.png"] == "motorcycle-right.png"
    assert alike["grass.png"] == "gravel.png"
