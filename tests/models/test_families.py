"""Families of one's own: registered from Python, or by a file that the environment names."""

import sys
from dataclasses import dataclass

import pytest
import torch

import crossgaze
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models import families
from crossgaze.models.answerer import Answerer
from crossgaze.models.families import ANSWERERS, FAMILIES, VARIABLE, answers, family, register
from crossgaze.models.regions import EncoderConfig, FragmentMatcher
from crossgaze.models.text import TextConfig

FILE = """
from __future__ import annotations

from dataclasses import dataclass

from crossgaze.models.families import register
from crossgaze.models.regions import EncoderConfig, FragmentMatcher


@dataclass(frozen=True)
class MineConfig(EncoderConfig):
    factor: float = 2.0


@register
class Mine(FragmentMatcher):
    family = "{name}"
    config: MineConfig

    def _pairs(self, regions, words, k_mask, n_mask):
        return self.config.factor * (regions.sum(1) * words.sum(1)).sum(1)

    def attention(self, images, texts):
        raise NotImplementedError
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No family of one test is there in another."""
    monkeypatch.setattr(families, "_own", {})
    monkeypatch.delenv(VARIABLE, raising=False)
    yield
    for name in [name for name in sys.modules if name.startswith("crossgaze_own_")]:
        del sys.modules[name]


@dataclass(frozen=True)
class OwnConfig(EncoderConfig):
    pass


def own(name="own", bases=(FragmentMatcher,), config=OwnConfig):
    return type("Own", bases, {"family": name, "__annotations__": {"config": config}})


def test_what_is_registered_is_found():
    model = register(own())
    assert family("own") == (model, OwnConfig)
    again = register(own())  # as a cell of a notebook that is run again
    assert family("own") == (again, OwnConfig)


def test_a_file_of_ones_own_is_loaded_saved_and_loaded_again(tmp_path, monkeypatch):
    one, two = tmp_path / "a" / "model.py", tmp_path / "b" / "model.py"  # the same name twice
    for path, name in ((one, "first"), (two, "second")):
        path.parent.mkdir()
        path.write_text(FILE.format(name=name))
    monkeypatch.setenv(VARIABLE, f"{one}:{two}")
    made, config = family("second")
    assert family("first")[0] is not made
    assert not answers("second")
    text = TextConfig(word_size=3)
    model = made(config(4, 5, text, factor=0.5), Vocabulary.build(["a dog"], 1)).eval()
    model.save_pretrained(tmp_path / "saved")
    again = crossgaze.load(tmp_path / "saved")
    assert type(again) is made
    assert again.config.factor == 0.5
    images = again.encode_images(torch.ones(2, 3, 4))
    texts = again.encode_texts(["a dog", "dog"])
    v, e = images.fragments.sum(1), texts.fragments.sum(1)
    torch.testing.assert_close(again.similarity(images, texts), 0.5 * v @ e.T)


def test_a_file_is_not_run_for_families_that_ship(tmp_path, monkeypatch):
    path = tmp_path / "bad.py"
    path.write_text("raise SystemError('was run')")
    monkeypatch.setenv(VARIABLE, str(path))
    for name in (*FAMILIES, *ANSWERERS):
        family(name)
        assert answers(name) == (name in ANSWERERS)
    with pytest.raises(SystemError, match="was run"):
        family("other")
    path.write_text(FILE.format(name="other"))  # mended, it is run again
    assert family("other")[0].__name__ == "Mine"


def test_one_that_answers_is_known_as_such():
    register(own("asked", (Answerer,)))
    assert answers("asked")
    assert not answers("nobody's")


@pytest.mark.parametrize("name", ["scan", "r-dan", "ensemble"])
def test_a_name_that_ships_is_not_taken(name):
    with pytest.raises(InputError, match=f"the family '{name}' ships, wanted a name of your own"):
        register(own(name))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": ""}, "got family '', wanted a name as a text"),
        ({"name": 3}, "got family 3, wanted"),
        ({"config": int}, "wanted `config: A_DATACLASS`"),
        ({"config": OwnConfig | None}, "wanted `config: A_DATACLASS`"),
    ],
)
def test_what_cannot_be_registered(given, said):
    with pytest.raises(InputError, match="Own: ") as caught:
        register(own(**given))
    assert said in str(caught.value)


def test_a_subclass_wants_a_name_of_its_own():
    base = register(own())
    with pytest.raises(InputError, match="got family None"):
        register(type("Sub", (base,), {}))


def test_files_that_are_no_models(tmp_path, monkeypatch):
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "notes.txt").write_text("x = 1\n")
    for given, said in (
        ("nowhere.py", "no such file, wanted a model's Python file"),
        ("empty.py", "registers no model, wanted @register before its class"),
        ("notes.txt", "is not a Python file"),
        ("", "unknown name 'mine', wanted one of vse++, sum-max"),
    ):
        monkeypatch.setenv(VARIABLE, str(tmp_path / given) if given else "")
        with pytest.raises(InputError) as caught:
            family("mine")
        assert said in str(caught.value)
