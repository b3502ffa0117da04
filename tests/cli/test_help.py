"""Every verb's help has examples, and they work: run in order, in a folder that has their files."""

import importlib.util

import pytest

from crossgaze.cli import VERBS, main
from help_worlds import WORLDS
from sessions import SERVER, run_here, shown

# What an example needs beside the core, by what stands in it.
EXTRAS = {"--tensorboard": "tensorboard", "microsoft/": "transformers"}
# Verbs of which each example starts a server or does the whole demonstration: one is run, and all
# of them by make test-slow.
LONG = {"serve", "demo"}
PACKAGES = {"index": "lancedb", "search": "lancedb", "serve": "fastapi", "demo": "skimage"}


def examples(verb, capsys):
    """Return what the help itself shows."""
    capsys.readouterr()
    assert main([verb, "--help"]) == 0
    return shown(capsys.readouterr().out)


def test_every_verb_has_a_world():
    assert set(WORLDS) == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_of_the_help_work(verb, tmp_path, monkeypatch, capsys):
    run_examples(verb, tmp_path, monkeypatch, capsys, most=1 if verb in LONG else None)


@pytest.mark.slow
@pytest.mark.parametrize("verb", sorted(LONG))
def test_all_examples_of_the_help_work(verb, tmp_path, monkeypatch, capsys):
    run_examples(verb, tmp_path, monkeypatch, capsys)


def run_examples(verb, tmp_path, monkeypatch, capsys, most=None):
    if verb in PACKAGES:
        pytest.importorskip(PACKAGES[verb])
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv("CROSSGAZE_TOKEN", raising=False)
    WORLDS[verb](here)
    lines = examples(verb, capsys)
    assert any(line.split()[1] == verb for line in lines)
    left = [line for line in lines if SERVER not in line and _has_what_it_needs(line)]
    assert left, f"crossgaze {verb} --help shows no example that can be run"
    for line in left[:most]:
        run_here(line, capsys)
        if " --out " in line:
            assert (here / line.split(" --out ")[1].split()[0]).exists(), line


def _has_what_it_needs(line):
    needed = [package for sign, package in EXTRAS.items() if sign in line]
    return all(importlib.util.find_spec(package) is not None for package in needed)
