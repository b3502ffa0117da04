"""`crossgaze explain` as a person meets it."""

import json

import pytest
import torch
from PIL import Image

from asking_parts import GRID, answerer, photograph
from command_line import run
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.families import family
from crossgaze.models.pretrained import load
from crossgaze.vision.sources.making import make_source
from search_parts import WORDS


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Models that remember a small grid, and a photograph."""
    monkeypatch.chdir(tmp_path)
    made = {**make_source(GRID, torch.device("cpu")).made_by, "fit": "stretch"}
    for kind in ("scan", "bfan", "vsrn", "vse++"):
        torch.manual_seed(0)
        model, config = family(kind)
        ready = model(config(region_width=1280, size=8), WORDS).eval()
        ready.origin = {"regions": made}
        ready.save_pretrained(tmp_path / kind)
    photograph(tmp_path / "a.jpg")
    return tmp_path


def test_each_words_region_is_printed_and_files_are_written(capsys, here):
    words = ["explain", "scan", "a.jpg", "a red zork runs"]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    for part in ("strongest region", "red", "runs", "its weights sum to 1", "does not know: zork"):
        assert part in out
    for name in ("why.html", "why.svg", "why.png"):
        code, out, _ = run(capsys, *words, "--out", name)
        assert code == 0
        assert f"written to {name}" in out
    assert "<svg" in (here / "why.svg").read_text()
    assert 'data-word="2"' in (here / "why.html").read_text()
    with Image.open("why.png") as picture:
        assert picture.width > 1000


def test_json_has_the_raw_weights_and_boxes_and_two_models_stand_beside(capsys, here):
    code, out, _ = run(capsys, "explain", "scan", "a.jpg", "a red dog", "--json")
    told = json.loads(out)
    assert code == 0
    assert (told["width"], told["height"], told["image"]) == (96, 64, "a.jpg")
    assert told["regions"][3]["box"] == [48, 32, 96, 64]
    (only,) = told["maps"]
    assert only["name"] == "t-i"
    assert [sum(row) for row in only["weights"]] == pytest.approx([1] * 5, abs=1e-4)
    words = ["explain", "scan", "a.jpg", "a red dog", "--beside", "bfan", "--json"]
    code, out, _ = run(capsys, *words, "--out", "both.html")
    assert [one["model"] for one in json.loads(out)] == ["scan", "bfan"]
    assert (here / "both.html").read_text().count("<section") == 2


def test_a_map_can_be_chosen_and_families_without_words_say_so(capsys, here):
    words = ["explain", "bfan", "a.jpg", "a red dog", "--map", "i-t", "--out", "back.html"]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "every word (i-t)" in (here / "back.html").read_text()
    code, out, _ = run(capsys, "explain", "vsrn", "a.jpg", "a red dog")
    assert "the sentence plays no part" in out
    code, out, _ = run(capsys, "explain", "vse++", "a.jpg", "a red dog", "--out", "no.png")
    assert code == 0
    assert "there is no attention in vse++" in out


def test_every_member_of_an_ensemble_is_explained(capsys, here):
    Ensemble([load("scan"), load("bfan")]).save_pretrained(here / "pair")
    words = ["explain", "pair", "a.jpg", "a red dog", "--out", "pair.html"]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert out.count("one of 2 models that score together") == 2
    assert "by pair/0 (scan)" in out
    assert "by pair/1 (bfan)" in out
    assert (here / "pair.html").read_text().count("<section") == 2
    _, out, _ = run(capsys, *words[:4], "--beside", "scan", "--json")
    told = json.loads(out)
    assert [one["model"] for one in told] == ["pair/0", "pair/1", "scan"]
    assert told[0]["maps"] == told[2]["maps"]  # it is the same model


def test_a_word_that_no_region_answered_has_no_place(capsys, here):
    torch.manual_seed(0)
    model, config = family("sum-max")
    ready = model(config(region_width=1280, size=8, direction="i-t"), WORDS).eval()
    ready.origin = load("scan").origin
    ready.save_pretrained(here / "taken")
    # Seven words for four regions, each of which takes one.
    code, out, _ = run(capsys, "explain", "taken", "a.jpg", "red green blue dog cat runs snow")
    assert code == 0
    unanswered = [line for line in out.splitlines() if " none " in line]
    assert len(unanswered) >= 3
    assert all(line.split()[1:] == ["none", "0.0", "%"] for line in unanswered)


def test_regions_may_be_others(capsys, here):
    words = ["explain", "scan", "a.jpg", "a red dog", "--regions", "grid", "--json"]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert len(json.loads(out)["regions"]) == 36  # and not the 4 of the model's own grid


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], 'wanted MODEL IMAGE "SENTENCE", or --sheet'),
        (["scan", "a.jpg"], 'wanted MODEL IMAGE "SENTENCE", or --sheet'),
        (["scan", "a.jpg", "zork"], "sentence: the model knows no word of 'zork'"),
        (["scan", "no.jpg", "a dog"], "no.jpg: "),
        (["scan", "a.jpg", "a dog", "--out", "x.txt"], "x.txt: wanted a name that ends in .html"),
        (["scan", "a.jpg", "a dog", "--out", "no/x.png"], "no: no such folder, wanted"),
        (["scan", "a.jpg", "a dog", "--map", "i-t"], "map: got 'i-t', this model has t-i"),
        (["scan", "a.jpg", "a dog", "--photos", "."], "--photos: goes with --sheet"),
        (["scan", "a.jpg", "a dog", "--regions", "cells"], "regions: got 'cells', wanted"),
        (["scan", "a.jpg", "a dog", "--store", "no"], "no: no such folder"),
        (["scan", "a.jpg", "a dog", "--store", "no", "--whole"], "--store: holds regions"),
        (["nowhere", "a.jpg", "a dog"], "nowhere: no such folder, wanted a model's folder"),
        (["rdan", "a.jpg", "a dog"], "rdan: is a r-dan, which compares no sentence"),
        (["scan", "a.jpg", "a dog", "--top", "3"], "--top: goes with --sheet"),
        (["scan", "a.jpg", "a dog", "--of", "images"], "--of: goes with --sheet"),
        (["scan", "--sheet", "r.json"], "--sheet: needs no model and no image, got 'scan'"),
        (["--sheet", "r.json"], "--sheet: wanted --photos with it"),
        (["--sheet", "r.json", "--photos", "."], "--sheet: wanted --out with it"),
        (["--sheet", "r.json", "--photos", ".", "--out", "x.html"], "x.html: wanted a name"),
        (["--sheet", "r.json", "--photos", ".", "--out", "x.png"], "r.json: no such file"),
    ],
)
def test_bad_input_is_one_line_and_code_two(capsys, here, words, message):
    if words[:1] == ["rdan"]:
        answerer().save_pretrained(here / "rdan")
    code, _, err = run(capsys, "explain", *words)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_a_sheet_is_drawn(capsys, here):
    top = [{"image": "a.jpg", "score": 0.9}]
    captions = [{"caption": 0, "text": "a dog", "image": "a.jpg", "rank": 1, "top": top}]
    images = [{"image": "a.jpg", "rank": 1, "top": [{"caption": 0, "score": 0.9}]}]
    queries = {"captions": captions, "images": images}
    tree = {"format": "crossgaze-evaluation", "protocols": [{"folds": 1, "queries": queries}]}
    (here / "r.json").write_text(json.dumps(tree))
    for side in ("sentences", "images"):
        words = ["--sheet", "r.json", "--photos", ".", "--of", side, "--out", "sheet.svg"]
        code, out, err = run(capsys, "explain", *words)
        assert (code, err, out) == (0, "", "written to sheet.svg\n")
        assert "a dog" in (here / "sheet.svg").read_text()
