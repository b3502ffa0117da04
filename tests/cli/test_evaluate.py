"""`crossgaze evaluate`."""

import io
import json
import re
import sys
from contextlib import contextmanager

import numpy as np
import pytest

import evaluation_parts as parts
from command_line import run
from crossgaze.data.captions.reading import read_captions
from crossgaze.errors import FileFormatError
from crossgaze.evaluation.recall import FIGURES, mean_figures
from crossgaze.evaluation.report import read_ranks


@pytest.fixture
def world(tmp_path):
    """Return the words of a command: a model, data and a store."""
    parts.model().save_pretrained(tmp_path / "scan")
    parts.model("vse", seed=4).save_pretrained(tmp_path / "vse")
    data = parts.write_flickr8k(tmp_path / "flickr8k")
    parts.write_store(tmp_path / "regions", read_captions(data).images)
    parts.write_entities(tmp_path / "annotations.zip")
    return ["evaluate", tmp_path / "scan", data, "--store", tmp_path / "regions"]


def test_a_table_beside_the_papers(capsys, world):
    code, out, err = run(capsys, *world, "--resamples", 50)
    assert (code, err) == (0, "")
    (measured,) = [line for line in out.splitlines() if "measured here  " in line]
    assert re.search(r"measured here +scan +flickr8k test, 10 images +[\d. ]+$", measured)
    assert "95 % interval" in out
    assert re.search(r"the paper's +SCAN table 1: SCAN t-i AVG .* 61.8 +87.5 +93.7", out)
    assert "were not measured here, and on other data" in out
    bare = run(capsys, *world, "--no-papers", "--resamples", 0)[1]
    assert "SCAN table" not in bare
    assert "interval" not in bare


def test_everything_is_written_and_read_back(capsys, world, tmp_path):
    out = tmp_path / "result.json"
    code, printed, _ = run(
        capsys, *world, "--out", out, "--folds", "1,5", "--top", 3, "--resamples", 50, "--json"
    )
    assert code == 0
    shown, written = json.loads(printed), json.loads(out.read_text())
    assert "queries" not in shown["protocols"][0]
    for entry in written["protocols"]:
        (same,) = [e for e in shown["protocols"] if e["folds"] == entry["folds"]]
        assert {key: value for key, value in entry.items() if key != "queries"} == same
        assert set(entry["figures"]) == set(FIGURES)
    assert [entry["folds"] for entry in written["protocols"]] == [1, 5]
    assert written["model"]["families"] == ["scan"]
    assert written["command"].startswith("crossgaze evaluate ")
    ranks = read_ranks(out)
    for entry in written["protocols"]:
        images, folds = ranks[entry["folds"]]
        assert len(images) == 10
        value = {name: figure["value"] for name, figure in entry["figures"].items()}
        assert mean_figures(folds) == pytest.approx(value, abs=0.006)
    queries = written["protocols"][0]["queries"]
    captions = {entry["caption"]: entry for entry in queries["captions"]}
    for image in queries["images"]:
        scores = [answer["score"] for answer in image["top"]]
        assert scores == sorted(scores, reverse=True)
        assert len(scores) == 3
        first = captions[image["top"][0]["caption"]]
        assert (image["rank"] == 1) == (first["image"] == image["image"])
    for caption in queries["captions"]:
        assert (caption["rank"] == 1) == (caption["top"][0]["image"] == caption["image"])
        found = [answer["image"] for answer in caption["top"]]
        assert (caption["rank"] <= 3) == (caption["image"] in found)
    # In a fold of two images only these two can be found, and captions of these.
    for entry in written["protocols"][1]["queries"]["images"]:
        row = [e["image"] for e in queries["images"]].index(entry["image"])
        fold = {e["image"] for e in queries["images"][row // 2 * 2 : row // 2 * 2 + 2]}
        assert {captions[answer["caption"]]["image"] for answer in entry["top"]} <= fold


def test_the_command_in_a_result_is_one_that_runs(capsys, world, tmp_path):
    import shlex

    out = tmp_path / "result.json"
    run(capsys, *world, "--out", out, "--first", 6, "--ensemble", tmp_path / "vse", "--seed", 3)
    first = json.loads(out.read_text())
    words = shlex.split(first["command"])[1:]
    code, printed, _ = run(capsys, *words, "--json")
    assert code == 0
    again = json.loads(printed)
    assert [e["figures"] for e in again["protocols"]] == [e["figures"] for e in first["protocols"]]
    assert again["model"]["families"] == ["scan", "vse++"]


def test_attention_is_measured(capsys, world, tmp_path):
    words = [*world, "--entities", tmp_path / "annotations.zip", "--resamples", 20]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "flickr8k, 1 phrases" in out
    assert re.search(r"the paper's +CCR/CCS table 4: SCAN +Flickr30K 1K +0.201 +0.858 +0.305", out)
    assert "pointing game" in out
    both = run(capsys, *words, "--ensemble", tmp_path / "vse")[1]
    assert "scan of scan + vse: attention" in both  # one member's, and said so
    assert "vse++: has no map 't-i'" in both
    (entry,) = json.loads(run(capsys, *words, "--json")[1])["attention"]
    assert entry["phrases"] == 1
    assert 0 <= entry["figures"]["f1"]["value"] <= 1


def test_what_attention_did_on_each_image_is_in_the_file_alone(capsys, world, tmp_path):
    words = ("--entities", tmp_path / "annotations.zip", "--resamples", 20, "--json")
    shown = json.loads(run(capsys, *world, *words, "--out", tmp_path / "result.json")[1])
    (entry,) = json.loads((tmp_path / "result.json").read_text())["attention"]
    assert "by_image" not in shown["attention"][0]
    sums = entry.pop("by_image")
    assert shown["attention"] == [entry]
    assert (len(sums["phrases"]), sum(sums["phrases"])) == (10, entry["phrases"])
    assert sum(sums["pointing"]) / entry["phrases"] == entry["figures"]["pointing"]["value"]


def test_differences_to_an_earlier_result(capsys, world, tmp_path):
    out = tmp_path / "old.json"
    other = [*world[:1], tmp_path / "vse", *world[2:]]
    assert run(capsys, *other, "--out", out)[0] == 0
    code, printed, _ = run(capsys, *world, "--against", out)
    assert code == 0
    assert f"against {out}" in printed
    shown = json.loads(run(capsys, *world, "--against", out, "--json")[1])["protocols"][0]
    earlier = json.loads(out.read_text())["protocols"][0]["figures"]
    for name, change in shown["against"].items():
        wanted = shown["figures"][name]["value"] - earlier[name]["value"]
        assert change["value"] == pytest.approx(wanted, abs=0.011)
    same = json.loads(run(capsys, *other, "--against", out, "--json")[1])["protocols"][0]
    assert set(map(tuple, (c.values() for c in same["against"].values()))) == {(0.0, 0.0, 0.0)}
    code, _, err = run(capsys, *world, "--against", out, "--first", 5)
    assert (code, err.count("\n")) == (2, 1)
    assert "was measured on other images" in err
    code, _, err = run(capsys, *world, "--against", out, "--folds", 5)
    assert code == 2
    assert "no protocol with as many folds" in err


def test_a_precomp_folder_needs_no_store(capsys, tmp_path):
    parts.model().save_pretrained(tmp_path / "scan")
    folder = tmp_path / "f30k_precomp"
    folder.mkdir()
    (folder / "test_caps.txt").write_text("two pups near a lake\n" * 20)
    np.save(folder / "test_ims.npy", np.random.default_rng(0).random((4, 3, 6), np.float32))
    code, out, _ = run(capsys, "evaluate", tmp_path / "scan", folder, "--json")
    assert code == 0
    figures = json.loads(out)["protocols"][0]["figures"]
    # One caption for all: every image scores the same with all, and ties count against it.
    assert figures["i2t_r10"]["value"] == 0
    assert figures["i2t_median"]["value"] == 16


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (["--folds", "3"], "folds: got 3 for 10 images"),
        (["--folds", "x"], "folds: got 'x', wanted numbers such as 1 or 1,5"),
        (["--top", "-1"], "top: got -1"),
        (["--batch", "0"], "batch: got 0"),
        (["--resamples", "-5"], "resamples: got -5"),
        (["--first", "0"], "first is 0"),
        (["--split", "tset"], "no split 'tset' (did you mean 'test'?)"),
        (["--device", "nonsense"], "device: 'nonsense' cannot be used here"),
        (["--entities", "no.zip"], "no.zip: no such file"),
        (["--against", "no.json"], "no.json: no such file"),
        (["--ensemble", "./no-model"], "no-model: no such folder"),
        (["--out", "no/result.json"], "no: no such folder, wanted a folder to write the result to"),
        (["--out", "."], "is a folder, wanted a file"),
    ],
)
def test_bad_input_is_one_line(capsys, monkeypatch, world, tmp_path, change, says):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *world, *change)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_store_of_other_regions_is_refused(capsys, world, tmp_path):
    np.save(tmp_path / "wide.npy", np.zeros((10, 2, 9), np.float32))
    from crossgaze.data.regions.import_npy import import_npy

    import_npy(tmp_path / "wide.npy", tmp_path / "wide", ids=read_captions(world[2]).images)
    code, _, err = run(capsys, *world[:3], "--store", tmp_path / "wide")
    assert code == 2
    assert "wide: has regions of width 9, the model takes 6" in err


def test_a_result_that_cannot_be_written_leaves_nothing(capsys, world, tmp_path, monkeypatch):
    out = tmp_path / "results" / "r.json"
    out.parent.mkdir()
    out.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device", str(out))

    monkeypatch.setattr("os.fsync", full)
    code, _, err = run(capsys, *world, "--out", out)
    assert code == 1
    assert "No space left" in err
    assert out.read_text() == "old"
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "does not read as an evaluation"),
        ("[]", "does not read as an evaluation"),
        ('{"format": "other", "version": 1}', "it is 'other' version 1"),
        ('{"format": "crossgaze-evaluation", "version": 1, "protocols": [{}]}', "KeyError"),
        (
            '{"format": "crossgaze-evaluation", "version": 1, "protocols": [{"folds": 2, '
            '"queries": {"images": [{"image": "a", "rank": 1}], "captions": []}}]}',
            "folds: got 2 for 1 images",
        ),
    ],
)
def test_a_file_that_is_no_result_is_refused(tmp_path, content, says):
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(FileFormatError, match=re.escape(says)):
        read_ranks(path)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_one_bar_at_a_time(capsys, world, tmp_path, monkeypatch):
    """Not every version of rich can draw two."""
    events = []

    @contextmanager
    def bar(label, unit):
        events.append(f"{label} of {unit}")
        yield lambda done, total: None
        events.append(f"{label} ends")

    monkeypatch.setattr("crossgaze.progress.progress_bar", bar)
    assert run(capsys, *world, "--entities", tmp_path / "annotations.zip")[0] == 0
    first, second = "Attention of captions", "Scoring of images"
    assert events == [first, "Attention ends", second, "Scoring ends"]


def test_a_bar_for_each_stage_where_somebody_watches(capsys, world, tmp_path, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    words = [*world, "--entities", tmp_path / "annotations.zip", "--resamples", 0]
    code, out, _ = run(capsys, *words)
    assert code == 0
    drawn = screen.getvalue()
    assert "Attention" in drawn
    assert "Scoring" in drawn
    assert "10/10" in drawn
    assert "Scoring" not in out
