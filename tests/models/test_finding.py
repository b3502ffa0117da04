"""Where a model is found by its name."""

import json

import pytest

import crossgaze
from crossgaze.errors import InputError
from crossgaze.models import finding
from crossgaze.models.finding import ZOO, find_folder, zoo_models
from crossgaze.models.pretrained import family_of, load
from evaluation_parts import model as matcher


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    """A zoo of a model, a region model, a broken head and a file, and a place to stand in."""
    place, here = tmp_path / "zoo", tmp_path / "here"
    here.mkdir()
    matcher().save_pretrained(place / "two-words")
    for name, head in {"objects": '{"format": "crossgaze-regions"}', "broken": "{"}.items():
        (place / name).mkdir()
        (place / name / "config.json").write_text(head)
    (place / "notes.txt").write_text("no model")
    monkeypatch.setattr(finding, "ZOO", place)
    monkeypatch.chdir(here)
    return place


def test_a_short_name_loads_the_model_that_ships(zoo):
    assert zoo_models() == ("two-words",)
    assert find_folder("two-words") == zoo / "two-words"
    assert crossgaze.load("two-words").family == family_of("two-words") == "scan"


def test_a_folder_of_that_name_goes_first(zoo, tmp_path):
    other = matcher(seed=5)
    other.save_pretrained(tmp_path / "here" / "two-words")
    found, shipped = load("two-words").state_dict(), load(zoo / "two-words").state_dict()
    assert all(bool((found[key] == value).all()) for key, value in other.state_dict().items())
    assert any(bool((found[key] != value).any()) for key, value in shipped.items())


@pytest.mark.parametrize("name", ["daquar", "objects", "broken", "two-words/..", "Two-Words", ""])
def test_another_name_lists_those_that_exist(zoo, name):
    if name in ("", "two-words/.."):  # the folder one stands in; one that is not there
        with pytest.raises(InputError):
            load(name)
        return
    with pytest.raises(InputError, match=rf"^{name}: no such folder, .* that ships: two-words$"):
        load(name)


def test_an_empty_zoo_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(finding, "ZOO", tmp_path)
    with pytest.raises(InputError, match=r"the name of a model that ships: none does yet$"):
        load("daquar")


def test_a_file_of_that_name_is_no_model(zoo, tmp_path):
    (tmp_path / "here" / "two-words").write_text("a file")
    with pytest.raises(InputError, match="two-words: no such folder"):
        load("two-words")


def test_every_model_that_really_ships_loads_and_has_a_card():
    for name in zoo_models():
        model = load(name)
        assert all(p.dtype.is_floating_point and p.element_size() == 4 for p in model.parameters())
        assert "Where it came from" in (ZOO / name / "README.md").read_text("utf-8")
        for said in ("## Data and licence", "## Measured", "## Limits"):
            assert said in (ZOO / name / "README.md").read_text("utf-8"), name
    assert {"default", "default-embedder", "daquar"} <= {*zoo_models()}
    assert sum(path.stat().st_size for path in ZOO.rglob("*") if path.is_file()) < 40e6
    assert json.loads((ZOO / "objects" / "config.json").read_text())["format"] != finding.FORMAT
