"""Every verb's help has examples, and they work: run in order, in a folder that has their files."""

import importlib.util

import pytest

from crossgaze.cli import VERBS
from help_worlds import WORLDS
from sessions import SERVER, examples, run_here

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
