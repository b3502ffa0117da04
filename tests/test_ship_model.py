"""A trained model on its way into the zoo."""

import json

import pytest
import torch
from safetensors.torch import load_file

from asking_parts import answerer, photograph
from command_line import run as command
from crossgaze.errors import FileFormatError, InputError
from crossgaze.models import finding
from crossgaze.models.pretrained import load_answerer
from evaluation_parts import model as matcher

ship_model = pytest.importorskip("ship_model", reason="needs tools/")


@pytest.fixture(autouse=True)
def cards(tmp_path, monkeypatch):
    """What the cards of the models here say of data and limits."""
    monkeypatch.setattr(ship_model, "CARDS", tmp_path / "cards")
    (tmp_path / "cards").mkdir()
    for name in ("toy", "scan-toy"):
        (tmp_path / "cards" / f"{name}.md").write_text("## Limits\n\nIt is a toy.\n")


@pytest.fixture
def run(tmp_path):
    """A run whose best snapshot is a small r-DAN."""
    answerer().save_pretrained(tmp_path / "run" / "best")
    return tmp_path / "run"


def test_what_ships_is_half_as_large_and_loads_as_single_precision(run, tmp_path):
    said = ship_model.ship(run, "toy", tmp_path / "zoo")
    shipped = tmp_path / "zoo" / "toy"
    names = sorted(path.name for path in shipped.iterdir())
    assert names == ["README.md", "config.json", "model.safetensors", "vocab.json"]
    stored = load_file(shipped / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    size = sum(path.stat().st_size for path in shipped.iterdir())
    assert said == f"{shipped}: {size / 1e6:.2f} MB"
    whole, half = load_answerer(run / "best"), load_answerer(shipped)
    assert {tensor.dtype for tensor in half.state_dict().values()} == {torch.float32}
    assert half.config == whole.config
    assert half.origin == whole.origin
    for key, value in whole.state_dict().items():
        torch.testing.assert_close(half.state_dict()[key], value, rtol=1e-3, atol=1e-6)
        torch.testing.assert_close(half.state_dict()[key], value.half().float(), rtol=0, atol=0)
    assert 'crossgaze.load("toy")' in (shipped / "README.md").read_text()


def test_ask_finds_it_by_its_name(run, tmp_path, monkeypatch, capsys):
    ship_model.main([str(run), "toy", "--zoo", str(tmp_path / "zoo")])
    capsys.readouterr()
    photograph(tmp_path / "a.jpg")
    question = ("a.jpg", "is the lamp on?", "--json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(finding, "ZOO", tmp_path / "zoo")
    code, out, _ = command(capsys, "ask", "toy", *question)
    assert code == 0
    _, whole, _ = command(capsys, "ask", run / "best", *question)
    found, wanted = (json.loads(text)["answers"] for text in (out, whole))
    for one, other in zip(found, wanted, strict=True):
        assert one["answer"] == other["answer"]
        assert one["probability"] == pytest.approx(other["probability"], abs=1e-3)
    code, _, err = command(capsys, "ask", "tot", *question)
    assert code == 2
    assert "tot: no such folder" in err
    assert err.endswith("a model that ships: toy\n")


def test_one_above_the_limit_is_refused_and_leaves_what_was_there(run, tmp_path):
    ship_model.ship(run, "toy", tmp_path / "zoo")
    before = (tmp_path / "zoo" / "toy" / "model.safetensors").read_bytes()
    size = sum(path.stat().st_size for path in (tmp_path / "zoo" / "toy").iterdir()) / 1e6
    answerer(reads="image").save_pretrained(tmp_path / "other")
    with pytest.raises(InputError, match=r"other: 0\.\d\d MB in half precision, wanted 0\.01 at"):
        ship_model.ship(tmp_path / "other", "toy", tmp_path / "zoo", limit=0.01)
    assert (tmp_path / "zoo" / "toy" / "model.safetensors").read_bytes() == before
    assert [path.name for path in (tmp_path / "zoo").iterdir()] == ["toy"]
    ship_model.ship(run, "toy", tmp_path / "zoo", limit=size)  # exactly as large as it may be
    with pytest.raises(SystemExit, match=r"wanted 0\.01 at most"):
        ship_model.main([str(run), "toy", "--limit", "0.01", "--zoo", str(tmp_path / "zoo")])


def test_weights_that_half_precision_cannot_hold_are_refused(tmp_path):
    model = answerer()
    model.classify.weight.data[0, 0] = 1e5
    model.save_pretrained(tmp_path / "m")
    with pytest.raises(FileFormatError, match=r"classify\.weight holds values that are not finite"):
        ship_model.ship(tmp_path / "m", "toy", tmp_path / "zoo")
    assert not (tmp_path / "zoo" / "toy").exists()


def test_regions_that_are_not_made_here_are_refused(tmp_path):
    model = answerer()
    model.origin["regions"]["weights"] = "another"
    model.save_pretrained(tmp_path / "m")
    with pytest.raises(InputError, match="trained on regions with weights 'another'"):
        ship_model.ship(tmp_path / "m", "toy", tmp_path / "zoo")


def test_a_model_that_matches_ships_as_well(tmp_path):
    matcher().save_pretrained(tmp_path / "m")
    ship_model.ship(tmp_path / "m", "scan-toy", tmp_path / "zoo")
    assert finding.find_folder(tmp_path / "zoo" / "scan-toy").is_dir()


def test_the_card_has_what_was_measured(run, tmp_path):
    figures = {"accuracy": {"value": 31.254, "low": 30.0, "high": 32.5}}
    data = {"name": "daquar", "splits": ["test"], "questions": 5673}
    result = tmp_path / "r.json"
    result.write_text(
        json.dumps({"measured": {"figures": figures, "data": data}, "commands": ["python x.py"]})
    )
    ship_model.ship(run, "toy", tmp_path / "zoo", results=[result])
    card = (tmp_path / "zoo" / "toy" / "README.md").read_text()
    assert "On 5,673 questions of daquar, test, before" in card
    assert "precision (`python x.py`):" in card
    assert "| right answers, % | 31.25 | 30 to 32.5 |" in card
    assert card.endswith("\n## Limits\n\nIt is a toy.\n")
    result.write_text("{}")
    with pytest.raises(InputError, match=r"r\.json: does not read as a result"):
        ship_model.ship(run, "toy", tmp_path / "zoo", results=[result])


def test_the_card_of_a_model_that_matches(tmp_path):
    matcher().save_pretrained(tmp_path / "m")
    one = {"value": 306.204, "low": 294.4, "high": 318.4}
    attention = {
        name: {"value": 0.21785, "low": 0.2, "high": 0.25} for name in ship_model.ATTENTION
    }
    measured = {
        "data": {"name": "flickr8k", "splits": ["test"], "images": 1000, "captions": 5000},
        "protocols": [{"figures": {"rsum": one}}],
        "attention": [{"figures": attention}],
    }
    for name in ("a", "b"):
        (tmp_path / name).write_text(json.dumps({"measured": measured, "commands": [name]}))
    results = [tmp_path / "a", tmp_path / "b"]
    ship_model.ship(tmp_path / "m", "scan-toy", tmp_path / "zoo", results=results)
    card = (tmp_path / "zoo" / "scan-toy" / "README.md").read_text()
    assert "On 1,000 images and 5,000 sentences of flickr8k, test, before" in card
    assert card.count("| sum of the six percentages | 306.2 | 294.4 to 318.4 |") == 2
    assert card.count("| attention: F1 of the two | 0.2179 | 0.2 to 0.25 |") == 2


def test_no_model_ships_without_a_word_on_its_data(run, tmp_path):
    with pytest.raises(InputError, match=r"other\.md: no such file, wanted what the card says"):
        ship_model.ship(run, "other", tmp_path / "zoo")
    assert not (tmp_path / "zoo").exists()


@pytest.mark.parametrize("name", ["Toy", "a/b", "..", "", "a_b", "-a"])
def test_a_name_is_plain(run, tmp_path, name):
    with pytest.raises(InputError, match=r"name: got .* wanted small letters, digits and dashes"):
        ship_model.ship(run, name, tmp_path / "zoo")
    with pytest.raises(InputError, match="nowhere: no such folder, wanted a training run"):
        ship_model.ship(tmp_path / "nowhere", "toy", tmp_path / "zoo")
