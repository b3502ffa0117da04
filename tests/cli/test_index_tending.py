"""`crossgaze index` that takes out and that watches, and what file names do to a terminal."""

import json
import shutil
import time

import pytest
import torch
from PIL import Image

import search_parts
from command_line import FAST, run
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.search.index import Index

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
COLOURS = {"red": (220, 20, 20), "green": (20, 200, 40), "blue": (9, 9, 220)}


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """Three photographs in two folders, and an index of them."""
    folder = tmp_path_factory.mktemp("world")
    torch.manual_seed(0)
    Vse(VseConfig(region_width=1280, size=8), search_parts.WORDS).save_pretrained(folder / "vse")
    Scan(ScanConfig(region_width=1280, size=8), search_parts.WORDS).save_pretrained(folder / "scan")
    for name, colour in COLOURS.items():
        place = folder / "photos" / ("old" if name == "blue" else "new") / f"{name}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (48, 32), colour).save(place)
    return folder


@pytest.fixture
def made(once, tmp_path, capsys):
    """The same, to be changed by a test."""
    shutil.copytree(once / "photos", tmp_path / "photos")
    models = ["--embedder", once / "vse", "--reranker", once / "scan", *FAST]
    words = ["index", tmp_path / "photos", "--into", tmp_path / "index", *models]
    assert run(capsys, *words)[0] == 0
    return tmp_path


def test_photographs_of_a_folder_that_is_gone_are_taken_out_by_the_command_that_is_named(
    capsys, made
):
    shutil.rmtree(made / "photos")
    words = ["index", made / "photos", "--into", made / "index"]
    code, out, err = run(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "; 3 photographs of it stay in the index, crossgaze index --into" in err
    code, out, _ = run(capsys, "index", "--into", made / "index", "--remove", "photos/new/*")
    assert code == 0
    assert "2 photographs removed from the index, by 'photos/new/*'" in out
    assert out.split("photographs  ")[1].split()[0] == "1"
    pattern = f"{made}/photos/*"
    assert f"--remove '{pattern}'" in err or f"--remove {pattern} " in err
    code, out, _ = run(capsys, "index", "--into", made / "index", "--remove", pattern, "--json")
    found = json.loads(out)
    assert (code, found["removed"], found["index"]["photographs"]) == (0, 1, 0)
    code, out, _ = run(capsys, "index", "--into", made / "index", "--remove", pattern)
    assert (code, "0 photographs removed" in out) == (0, True)


def test_what_is_taken_out_and_still_there_comes_back(capsys, made):
    words = ["index", made / "photos", "--into", made / "index", "--remove", "old/*", "--json"]
    code, out, _ = run(capsys, *words)
    found = json.loads(out)
    assert (code, found["removed"], found["photographs"]["added"]) == (0, 1, 1)
    assert found["index"]["photographs"] == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["PHOTOS", "--remove", ""], "remove is empty"),
        (["PHOTOS", "--watch", "--every", "0"], "every: got 0.0, wanted seconds above 0"),
        (["PHOTOS", "--watch", "--every", "inf"], "every: got inf"),
        (["PHOTOS", "--watch", "--every", "nan"], "every: got nan"),
        (["NOWHERE", "--watch", "--tag", "\n"], "tags: got '\\n'"),
        (["FILE", "--watch"], "is not a photograph by its name"),
        (["NOWHERE", "--sentences", "NOWHERE", "--watch"], "nowhere: no such file"),
    ],
)
def test_bad_input_changes_nothing(capsys, made, words, message):
    Image.new("RGB", (40, 40), (9, 200, 9)).save(made / "photos" / "late.jpg")
    (made / "file.txt").touch()
    places = {"PHOTOS": "photos", "NOWHERE": "nowhere", "FILE": "file.txt"}
    given = [str(made / places[word]) if word in places else word for word in words]
    code, out, err = run(capsys, "index", *given, "--into", made / "index")
    assert (code, out) == (2, "")
    assert message in err
    with Index.open(made / "index") as index:
        assert len(index) == 3


@pytest.mark.parametrize("json_", [False, True])
def test_a_watch_begins_while_the_disk_is_away(capsys, made, monkeypatch, json_):
    (made / "photos").rename(made / "away")
    looks = []

    def sleep(seconds):
        looks.append(seconds)
        if len(looks) == 2:
            (made / "away").rename(made / "photos")
            Image.new("RGB", (40, 40), (200, 200, 9)).save(made / "photos" / "yellow.jpg")
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    words = ["index", made / "photos", "--into", made / "index", "--watch"]
    code, out, err = run(capsys, *words, *(["--json"] if json_ else []))
    assert code == 0
    assert err.count("\n") == 1  # said once
    assert "photos: cannot be opened" in err
    assert err.endswith("; waiting for it\n")
    if json_:
        first, second = [json.loads(line) for line in out.splitlines()]
        assert first["index"]["photographs"] == 3
        assert "photographs" not in first
        assert (second["photographs"]["added"], second["index"]["photographs"]) == (1, 4)
    else:
        assert "1 added, 0 changed, 0 removed; 4 photographs" in out


def test_a_watch_of_a_new_index_wants_its_folder(capsys, once, tmp_path):
    models = ["--embedder", once / "vse", "--reranker", once / "scan", *FAST]
    words = ["index", tmp_path / "nowhere", "--into", tmp_path / "index", *models, "--watch"]
    code, _, err = run(capsys, *words)
    assert (code, "cannot be opened" in err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_watch_of_an_index_that_is_being_written_is_refused(capsys, made):
    with Index.open(made / "index") as index, index.writing():
        words = ["index", made / "photos", "--into", made / "index", "--watch"]
        code, _, err = run(capsys, *words)
    assert (code, "is being written by another process" in err) == (2, True)


def test_names_of_files_give_a_terminal_no_orders(capsys, made, monkeypatch):
    nasty, shown = "a\x1b[31m\nb\u202e", r"a\x1b[31m\nb\u202e"
    (made / "photos" / "new" / "red.jpg").rename(made / "photos" / "new" / f"{nasty}.jpg")
    (made / "photos" / f"bad{nasty}.jpg").write_bytes(b"half")
    (made / "photos" / f"{nasty}.txt").touch()
    (made / f"{nasty}.png").write_bytes((made / "photos" / "old" / "blue.jpg").read_bytes())
    printed = []
    code, out, err = run(capsys, "index", made / "photos", "--into", made / "index")
    assert code == 0
    assert f"unreadable: bad{shown}.jpg: " in out
    assert "left out: 1 files with another extension" in out
    printed += [out, err]
    for words in (["a red dog"], ["--image", made / f"{nasty}.png"]):
        code, out, err = run(capsys, "search", made / "index", *words)
        assert code == 0
        assert f"/photos/new/{shown}.jpg" in out
        assert len([line for line in out.splitlines() if "/photos/" in line]) == 3
        printed += [out, err]
    assert f"{made}/{shown}.png" in out  # the title
    seen = []

    def sleep(seconds):
        seen.append(seconds)
        if len(seen) == 2:
            raise KeyboardInterrupt
        (made / "photos" / f"worse{nasty}.jpg").write_bytes(b"half")

    monkeypatch.setattr(time, "sleep", sleep)
    words = ["index", made / "photos", "--into", made / "index", "--watch"]
    code, out, err = run(capsys, *words)
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith(f"crossgaze: worse{shown}.jpg: cannot be read now")
    printed += [out, err]
    odd = [sign for text in printed for sign in text if not sign.isprintable() and sign != "\n"]
    assert odd == []
    code, out, _ = run(capsys, "search", made / "index", "a red dog", "--json")
    assert f"{made}/photos/new/{nasty}.jpg" in [hit["path"] for hit in json.loads(out)["hits"]]
