"""Every verb's help has examples, and they work: run in order, in a folder that has their files."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

import crossgaze
from crossgaze.cli import VERBS
from crossgaze.cli.store import ACTIONS
from help_worlds import WORLDS
from sessions import SERVER, examples, help_of, run_here, shown

# What an example needs beside the core, by what stands in it.
EXTRAS = {"--tensorboard": "tensorboard", "microsoft/": "transformers"}
# Verbs of which each example starts a server or does the whole demonstration. make test-slow runs
# them all, make test the first of each: the demonstration's in test_demo.py, which looks closer.
LONG = {"serve", "demo"}
ELSEWHERE = {"demo"}
PACKAGES = {"index": "lancedb", "search": "lancedb", "serve": "fastapi", "demo": "skimage"}


def test_every_verb_has_a_world():
    assert set(WORLDS) == set(VERBS)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ELSEWHERE])
def test_the_examples_of_the_help_work(verb, tmp_path, monkeypatch, capsys):
    most = 1 if verb in LONG else None
    ran = run_examples(verb, tmp_path, monkeypatch, capsys, most)
    assert ran, f"crossgaze {verb} --help shows no example that can be run"
    assert any(line.split()[1] == verb for line in ran)


@pytest.mark.slow
@pytest.mark.parametrize("verb", sorted(LONG))
def test_all_examples_of_the_help_work(verb, tmp_path, monkeypatch, capsys):
    assert len(run_examples(verb, tmp_path, monkeypatch, capsys)) > 1


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_of_store_shows_its_examples(action, capsys):
    """They are the verb's own, which the test above runs."""
    lines = shown(help_of(["store", action], capsys))
    assert lines
    assert lines == [line for line in examples("store", capsys) if line.split()[2] == action]


@pytest.mark.slow
def test_several_processes_train_as_the_help_says(tmp_path, monkeypatch, capsys):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    WORLDS["train"](here)
    lines = [line.strip() for line in help_of(["train"], capsys).splitlines()]
    (line,) = [line for line in lines if line.startswith("torchrun ")]
    # Small, and where torchrun is on no path; all else is as it is shown.
    words = [*line.split()[1:], "model.size=16", "epochs=1", "--out", "runs/together"]
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *words, "--device", "cpu"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((here / "runs" / "together" / "summary.json").read_text())["epochs"] == 1
    assert crossgaze.load(here / "runs" / "together" / "best").family == "bfan"


def run_examples(verb, tmp_path, monkeypatch, capsys, most=None):
    """Run the examples of a verb, the first few or all, and return them."""
    if verb in PACKAGES:
        pytest.importorskip(PACKAGES[verb])
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv("CROSSGAZE_TOKEN", raising=False)
    WORLDS[verb](here)
    lines = examples(verb, capsys)
    left = [line for line in lines if SERVER not in line and _has_what_it_needs(line)][:most]
    for line in left:
        run_here(line, capsys)
        if " --out " in line:
            assert (here / line.split(" --out ")[1].split()[0]).exists(), line
    return left


def _has_what_it_needs(line):
    needed = [package for sign, package in EXTRAS.items() if sign in line]
    return all(importlib.util.find_spec(package) is not None for package in needed)
