"""The models that an index takes when nobody names any: those that ship."""

import shutil

import pytest

import search_parts
from crossgaze.models import finding
from crossgaze.search.defaults import NAMES
from crossgaze.search.index import Index

pytest.importorskip("lancedb", reason="needs crossgaze[search]")


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    place = tmp_path / "zoo"
    place.mkdir()
    monkeypatch.setattr(finding, "ZOO", place)
    return place


def ship(zoo, tmp_path, *roles):
    made = dict(zip(("embedder", "reranker"), search_parts.save_models(tmp_path), strict=True))
    for role in roles:
        shutil.copytree(made[role], zoo / NAMES[role])


def test_what_ships_is_taken_and_found_again_by_name(zoo, tmp_path, monkeypatch):
    ship(zoo, tmp_path, "embedder", "reranker")
    search_parts.make_photo(tmp_path / "photos" / "a.png", 1)
    # A folder of the user's that happens to have the name of one is not meant.
    (tmp_path / "here" / NAMES["reranker"]).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    index = Index.create(tmp_path / "index", source=search_parts.CellSource())
    index.add(tmp_path / "photos")
    assert index.head.embedder.source == NAMES["embedder"]
    assert index.head.reranker.source == NAMES["reranker"]
    hits = index.search("a red dog").hits
    # Installed elsewhere, the index is the same.
    zoo.rename(tmp_path / "other")
    monkeypatch.setattr(finding, "ZOO", tmp_path / "other")
    again = Index.open(tmp_path / "index", source=search_parts.CellSource())
    assert again.search("a red dog").hits == hits


def test_a_reranker_of_ones_own_goes_with_the_embedder_that_ships(zoo, tmp_path):
    ship(zoo, tmp_path, "embedder")
    mine = tmp_path / "reranker"
    index = Index.create(tmp_path / "i", reranker=mine, source=search_parts.CellSource())
    assert index.head.embedder.source == NAMES["embedder"]
    assert index.head.reranker.source == str(mine)
