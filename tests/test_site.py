"""The documentation builds without a network, all of it is reached, and nobody else is asked."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import crossgaze

pytest.importorskip("mkdocs", reason="needs crossgaze[dev]")
pytest.importorskip("mkdocstrings", reason="needs crossgaze[dev]")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BUILD = """
import socket

def refuse(*args, **options):
    raise OSError("the documentation is built without a network")

socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from mkdocs.__main__ import cli
cli()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages as a reader gets them; a warning is an error."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, "build", "--strict", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def pages(site):
    return {str(path.relative_to(site)): path.read_text("utf-8") for path in site.rglob("*.html")}


def test_every_page_is_in_the_navigation():
    tree = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert [section for entry in tree for section in entry] == [
        *("Start", "Guides", "Reference", "Results")
    ]
    named = [page for entry in tree for part in entry.values() for page in part]
    assert sorted(named) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_nobody_else_is_asked(site):
    found = pages(site)
    assert len(found) > 20
    for name, text in found.items():
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", text):
            assert not re.search(r'(?:src|href)="(?:https?:)?//', tag), (name, tag)


def test_every_public_name_is_in_the_reference(site):
    shown = "".join(text for name, text in pages(site).items() if name.startswith("reference/"))
    known = set(re.findall(r'id="(crossgaze[\w.]*)"', shown))
    asked = {
        name
        for page in (DOCS / "reference").glob("*.md")
        for name in re.findall(r"^::: ([\w.]+)$", page.read_text("utf-8"), re.MULTILINE)
    }
    assert {f"crossgaze.{name}" for name in crossgaze.__all__} <= asked <= known
    matcher = "crossgaze.models.matcher.Matcher"
    for method in ("encode_images", "encode_texts", "similarity", "attention", "save_pretrained"):
        assert f"{matcher}.{method}" in known
    for method in ("create", "open", "add", "search", "look"):
        assert f"crossgaze.Index.{method}" in known
    # Of the docstrings, and not of what somebody typed once: a sentence of `similarity`.
    assert "Return the similarity of every image with every sentence" in shown
    assert "_encode_regions" not in known
