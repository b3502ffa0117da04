"""`crossgaze index` and `crossgaze search` as a person meets them."""

import json
import shutil
import threading
import time

import pytest
import torch
from PIL import Image

import search_parts
from command_line import run
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.search.index import Index

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
GRID = ["--regions", "grid", "--backbone", "efficientnet-lite0", "--size", "64", "--grid", "2"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Photographs, two untrained models on a small grid, and an index, made by the command."""
    folder = tmp_path_factory.mktemp("world")
    torch.manual_seed(0)
    Vse(VseConfig(region_width=1280, size=8), search_parts.WORDS).save_pretrained(folder / "vse")
    Scan(ScanConfig(region_width=1280, size=8), search_parts.WORDS).save_pretrained(folder / "scan")
    (folder / "photos").mkdir()
    for name, colour in (("red", (220, 20, 20)), ("green", (20, 200, 40)), ("blue", (9, 9, 220))):
        Image.new("RGB", (48, 32), colour).save(folder / "photos" / f"{name}.jpg")
    return folder


def index(capsys, made, *words):
    models = ["--embedder", made / "vse", "--reranker", made / "scan", *GRID]
    return run(capsys, "index", made / "photos", "--into", made / "index", *models, *words)


def test_index_then_search(capsys, made):
    code, out, err = index(capsys, made, "--tag", "mine")
    assert (code, err) == (0, "")
    assert "photographs found  3" in out
    assert "vse++" in out
    code, out, _ = run(capsys, "index", made / "photos", "--into", made / "index", "--json")
    assert json.loads(out)["photographs"]["unchanged"] == 3
    code, out, err = run(capsys, "search", made / "index", "a red dog zebra", "-k", "2")
    assert code == 0
    assert "words that the model does not know: zebra" in err
    assert out.count(".jpg") == 2
    assert "two stages by both models, 3 of 3 looked at" in out
    _, out, _ = run(capsys, "search", made / "index", "a red dog", "--rank-by", "reranker")
    assert "two stages by the re-ranker, 3 of 3 looked at" in out
    words = ["search", made / "index", "a red dog", "--json", "--html", made / "r.html"]
    code, out, _ = run(capsys, *words, "--tag", "mine", "--path", "photos/b*", "--larger", "1")
    found = json.loads(out)
    assert [hit["path"].rpartition("/")[2] for hit in found["hits"]] == ["blue.jpg"]
    assert (made / "r.html").read_text("utf-8").startswith("<!doctype html>")


def test_pictures_and_sentences(capsys, made):
    index(capsys, made)
    (made / "lines.txt").write_text("a red dog\nthe snow\n")
    code, out, _ = run(capsys, "index", "--sentences", made / "lines.txt", "--into", made / "index")
    assert (code, "sentences found  2" in out) == (0, True)
    picture = made / "photos" / "green.jpg"
    code, out, _ = run(capsys, "search", made / "index", "--image", picture, "-k", "2")
    assert code == 0
    first = out.splitlines()[2].split()
    assert first[:2] == ["1", "1.000"]
    assert first[2].endswith("green.jpg")
    assert "a red dog" in out
    (made / "lines.txt").unlink()
    words = ["--into", made / "index", "--forget-sentences", made / "lines.txt"]
    code, out, _ = run(capsys, "index", *words)
    assert (code, "2 sentences removed from the index" in out) == (0, True)


def test_move_compact_and_info(capsys, made):
    index(capsys, made)
    code, out, _ = run(capsys, "index", "--from", made / "index", "--into", made / "moved")
    assert (code, "3 photographs" in out) == (0, True)
    code, out, _ = run(capsys, "index", "--into", made / "moved", "--compact", "--info", "--json")
    assert json.loads(out)["index"]["photographs"] == 3


@pytest.mark.parametrize(
    ("more", "keys"),
    [
        ([], {"photographs", "sentences", "into"}),
        (["--info"], {"moved", "index"}),
        (["--compact"], {"moved", "index"}),
        (["PHOTOS"], {"moved", "photographs", "index"}),
    ],
)
def test_move_and_more_is_one_document(capsys, made, tmp_path, more, keys):
    index(capsys, made)
    words = [made / "photos" if word == "PHOTOS" else word for word in more]
    new = tmp_path / "moved"
    code, out, err = run(capsys, "index", "--from", made / "index", "--into", new, "--json", *words)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found.keys() == keys
    moved = found.get("moved", found)
    assert moved == {"photographs": 3, "sentences": moved["sentences"], "into": str(new)}
    if "index" in found:
        assert found["index"]["photographs"] == 3


def test_move_then_info_for_people(capsys, made, tmp_path):
    index(capsys, made)
    words = ["index", "--from", made / "index", "--into", tmp_path / "moved"]
    code, out, _ = run(capsys, *words, "--info")
    assert code == 0
    assert "3 photographs" in out
    assert "kept regions" in out


def test_watch_until_stopped(capsys, made, monkeypatch):
    index(capsys, made)
    looks = []

    def sleep(seconds):
        looks.append(seconds)
        if len(looks) == 2:
            raise KeyboardInterrupt
        Image.new("RGB", (40, 40), (200, 200, 9)).save(made / "photos" / "yellow.jpg")

    monkeypatch.setattr(time, "sleep", sleep)
    words = ["index", made / "photos", "--into", made / "index", "--watch", "--every", "2"]
    code, out, _ = run(capsys, *words)
    (made / "photos" / "yellow.jpg").unlink()
    assert code == 0
    assert "1 added, 0 changed, 0 removed; 4 photographs" in out
    assert "stopped; the index is whole" in out
    assert looks == [2.0, 2.0]
    assert not [t for t in threading.enumerate() if t.name.startswith(("extract", "regions"))]


@pytest.mark.parametrize("json_", [False, True])
def test_watch_names_what_cannot_be_read_and_keeps_json_pure(
    capsys, made, tmp_path, monkeypatch, json_
):
    shutil.copytree(made / "photos", tmp_path / "photos")
    (tmp_path / "photos" / "bad.jpg").write_bytes(b"half")
    looks = []

    def sleep(seconds):
        looks.append(seconds)
        if len(looks) == 1:
            Image.new("RGB", (40, 40), (9, 200, 9)).save(tmp_path / "photos" / "new.jpg")
            (tmp_path / "photos" / "worse.jpg").write_bytes(b"half")
        if len(looks) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    models = ["--embedder", made / "vse", "--reranker", made / "scan", *GRID]
    words = ["index", tmp_path / "photos", "--into", tmp_path / "index", *models, "--watch"]
    code, out, err = run(capsys, *words, *(["--json"] if json_ else []))
    assert code == 0
    assert err.count("\n") == 1  # bad.jpg is in the first report, and worse.jpg is named once
    assert err.startswith("crossgaze: worse.jpg: cannot be read now: is not a")
    if json_:
        first, second = [json.loads(line) for line in out.splitlines()]
        assert [one[0] for one in first["photographs"]["unreadable"]] == ["bad.jpg"]
        assert first["index"]["photographs"] == 3
        assert second["photographs"]["added"] == 1
        assert second["index"]["photographs"] == 4
    else:
        assert "unreadable: bad.jpg" in out
        assert "1 added, 0 changed, 0 removed; 4 photographs" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["search", "INDEX", " "], "query: is empty"),
        (["search", "INDEX", "zebra qux"], "knows none of its words (zebra, qux)"),
        (["search", "INDEX"], "wanted a SENTENCE or --image FILE"),
        (["search", "INDEX", "dog", "--image", "x.jpg"], "wanted a SENTENCE or --image FILE"),
        (["search", "INDEX", "dog", "-k", "0"], "k: got 0"),
        (["search", "INDEX", "dog", "--since", "soon"], "since: got 'soon'"),
        (["search", "INDEX", "dog", "--embedder", "SCAN"], "was made with the embedder"),
        (["search", "INDEX", "--image", "no.jpg"], "no.jpg: no such file"),
        (["search", "nowhere", "dog"], "nowhere: no such folder, wanted an index"),
        (["search", "PHOTOS", "dog"], "is not an index"),
        (["search", "INDEX", "--image", "x.jpg", "--exhaustive"], "is for a sentence"),
        (["search", "INDEX", "--image", "x.jpg", "--rank-by", "reranker"], "is for a sentence"),
        (["index", "--into", "INDEX"], "--from, --remove, --compact or --info"),
        (["index", "--into", "INDEX", "--info", "--tag", "x"], "--tag: wanted PHOTOS"),
        (["index", "PHOTOS", "--into", "INDEX", "--every", "3"], "--every: wanted --watch"),
        (["index", "--from", "INDEX", "--into", "new", "--embedder", "VSE"], "says nothing with"),
        (["index", "PHOTOS", "--into", "new", "--sentences", "no.txt"], "no.txt: no such file"),
        (["index", "--into", "INDEX", "--forget-sentences", "no.txt"], "holds no sentence of it"),
        (["index", "--into", "new", "--forget-sentences", "no.txt"], "new: is not an index"),
        (["search", "INDEX", "dog", "--until", "9999-12-31T23:59:59-12:00"], "until: got 9999"),
        (["index", "--into", "new", "--info"], "new: is not an index"),
        (["index", "PHOTOS", "--into", "new", "--regions", "grid"], "takes regions of width 1792"),
        (["index", "PHOTOS", "--into", "PHOTOS", "--embedder", "VSE"], "is not empty"),
        (["index", "EMPTY", "--into", "INDEX"], "holds no photograph"),
        (["index", "--sentences", "EMPTY", "--into", "INDEX"], "is a folder"),
        (["index", "--into", "INDEX", "--info", "--watch"], "--watch: wanted PHOTOS"),
        (["index", "PHOTOS", "--into", "INDEX", "--grid", "3"], "--grid: got 3"),
        (["index", "PHOTOS", "--into", "INDEX", "--engine", "milvus"], "to move it: crossgaze"),
        (["index", "PHOTOS", "--into", "new", "--engine", "x"], "engine: got 'x'"),
        (["index", "--from", "nowhere", "--into", "new"], "nowhere: no such folder"),
    ],
)
def test_bad_input_is_one_line_and_code_two(capsys, made, tmp_path, monkeypatch, words, message):
    if not (made / "index").exists():
        index(capsys, made)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    places = {"INDEX": "index", "PHOTOS": "photos", "SCAN": "scan", "VSE": "vse"}
    given = [str(made / places[word]) if word in places else word for word in words]
    given = [str(tmp_path / "empty") if word == "EMPTY" else word for word in given]
    code, out, err = run(capsys, *given)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("engine", ["lance", "milvus"])
def test_where_nothing_comes_in_no_index_is_left(capsys, made, tmp_path, engine):
    if engine == "milvus":
        pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.jpg").write_bytes(b"x")
    (tmp_path / "blank.txt").write_text("\n\n")
    before = sorted(tmp_path.rglob("*"))
    models = ["--embedder", made / "vse", "--reranker", made / "scan", *GRID, "--engine", engine]
    for what, message in (
        ([tmp_path / "empty"], "holds no photograph"),
        ([tmp_path / "bad"], "none of the 1 photographs could be read"),
        (["--sentences", tmp_path / "blank.txt"], "holds no sentence"),
    ):
        code, _, err = run(capsys, "index", *what, "--into", tmp_path / "new", *models)
        assert code == 2
        assert message in err
        assert sorted(tmp_path.rglob("*")) == before
    # What came in stays, whatever else was refused.
    words = [made / "photos", "--sentences", tmp_path / "blank.txt"]
    assert run(capsys, "index", *words, "--into", tmp_path / "new", *models)[0] == 2
    code, out, _ = run(capsys, "index", "--into", tmp_path / "new", "--info", "--json")
    assert (code, json.loads(out)["index"]["photographs"] > 0) == (0, True)


def test_python_and_the_command_find_the_same(capsys, made):
    index(capsys, made)
    _, out, _ = run(capsys, "search", made / "index", "a green cat", "--json")
    with Index.open(made / "index") as opened:
        hits = opened.search("a green cat").hits
    assert [hit["path"] for hit in json.loads(out)["hits"]] == [hit.path for hit in hits]
