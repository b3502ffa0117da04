"""The demonstration: its gallery, what it says of a search, and its report."""

import re

import pytest
import torch

import asking_parts
import search_parts
from crossgaze import demo
from crossgaze.errors import InputError, MissingExtraError
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.search.results import Found, Hit

WIDTH = 1792  # of the regions of the region model that ships


def test_the_gallery_is_the_same_twice(tmp_path):
    pytest.importorskip("skimage")
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    first = [(p.name, p.stat().st_mtime_ns) for p in demo.build_gallery(tmp_path / "p")]
    again = [(p.name, p.stat().st_mtime_ns) for p in demo.build_gallery(tmp_path / "p")]
    assert first == again
    assert len(first) == len(demo.PHOTOGRAPHS)


def test_missing_packages_and_photographs_are_named(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(demo.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"crossgaze\[demo\]"):
            demo.build_gallery(tmp_path / "p")
    pytest.importorskip("skimage")
    monkeypatch.setattr(demo, "PHOTOGRAPHS", [("skimage", "data", "no.png", "no.png")])
    with pytest.raises(InputError, match="none of the packages carries"):
        demo.build_gallery(tmp_path / "p")


def search(*names, wanted="cat.png"):
    hits = tuple(hit(rank, name) for rank, name in enumerate(names, 1))
    return demo.Search("a cat", wanted, Found("a cat", hits=hits))


def hit(rank, name):
    return Hit(rank, 1 / rank, f"/somewhere/{name}", uid=rank)


def test_a_sentence_that_fails_is_said_to_fail():
    right, wrong = search("cat.png", "dog.png"), search("dog.png", "cup.png", "cat.png")
    assert (right.rank, wrong.rank) == (1, 3)
    assert demo.verdict(right) == "cat.png came first, as it should."
    assert demo.verdict(wrong) == "cat.png should have come first, and came as number 3."


def test_what_a_person_would_choose_is_in_the_gallery():
    names = {name for *_, name in demo.PHOTOGRAPHS}
    assert {wanted for _, wanted in demo.SENTENCES} | {demo.QUESTION[0]} <= names


def test_models_that_know_nothing_are_shown_failing(tmp_path):
    """The report of untrained models says so, sentence by sentence."""
    for package in ("skimage", "sklearn", "matplotlib", "lancedb"):
        pytest.importorskip(package)
    torch.manual_seed(0)
    text = TextConfig(word_size=8)
    models = {
        "embedder": Vse(VseConfig(WIDTH, 8, text), search_parts.WORDS),
        "reranker": Scan(ScanConfig(WIDTH, 8, text), search_parts.WORDS),
    }
    done = demo.run_demo(tmp_path / "d", **models, answerer=asking_parts.answerer())
    assert done.indexed.found == len(demo.PHOTOGRAPHS)
    page = done.page.read_text("utf-8")
    first = sum(one.rank == 1 for one in done.searches)
    assert f"the right photograph came first for {first}." in page
    assert first < len(demo.SENTENCES)
    for one in done.searches:
        assert one.sentence in page
        assert demo.verdict(one) in page
    assert done.reply.answers[0][0] in page
    assert re.findall(r"(?:src|href)=\"(?!data:|#)", page) == []
    again = demo.run_demo(tmp_path / "d", **models, answerer=asking_parts.answerer())
    assert again.indexed.added == 0
    assert [one.to_dict() for one in again.searches] == [one.to_dict() for one in done.searches]
