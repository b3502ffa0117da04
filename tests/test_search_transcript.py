"""The page of a search over a folder: what is typed, run for real over a small one."""

import json
import re
import sys

import pytest

import help_worlds

tool = pytest.importorskip("search_transcript", reason="needs tools/")
PICTURE = "3_a.jpg"


def typed(**more):
    return [command for step in tool.steps(PICTURE, **more) for command in step.commands]


def test_regions_that_are_there_are_named_once_and_every_sentence_is_asked():
    with_store, without = typed(stored="Made before."), typed()
    assert with_store[0] == [*without[0], "--store", "regions"]
    assert with_store[1:] == without[1:]
    assert [command[3] for command in without[2:7]] == list(tool.SENTENCES)
    assert without[2][-2:] == ["--html", "report.html"]
    rest = without[7:]
    assert ["--path" in one for one in rest] == [True, False, False, False]
    assert ["--json" in one for one in rest] == [False, True, False, False]
    assert rest[-1][3:5] == ["--image", f"photos/{PICTURE}"]


def test_a_command_is_run_in_its_folder_with_this_python(tmp_path):
    help_worlds.photographs(tmp_path / "photos", ["a.jpg"])
    seconds, shown = tool.run(["crossgaze", "search", "nowhere", "a dog"], tmp_path)
    assert seconds > 0
    assert "nowhere" in shown
    assert shown.endswith("(exit code 2)")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a page over three small photographs, with what else is said to the tool."""
    help_worlds.photographs(tmp_path / "pictures", ["4_b.jpg", PICTURE, "5.jpg"])

    def write(*more):
        words = [tmp_path / "pictures", tmp_path / "work", "--page", tmp_path / "page.md", *more]
        monkeypatch.setattr(sys, "argv", ["search_transcript.py", *map(str, words)])
        tool.main()
        return (tmp_path / "page.md").read_text("utf-8")

    return write


def require_whole(page, tmp_path):
    """Headings, a block a command and its time, and nothing of where it was written."""
    assert "3 photographs, the models that ship" in page
    blocks = re.findall(r"^```console\n\$ (.*)\n((?:.*\n)*?)```\n\n(.*)$", page, re.MULTILINE)
    assert len(blocks) == len(typed())
    assert all(command.startswith("crossgaze ") and shown for command, shown, _ in blocks)
    assert all(re.fullmatch(r"(\d+ min )?\d+ s\.", took) for _, _, took in blocks)
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert headings == [step.title for step in tool.steps(PICTURE)]
    assert str(tmp_path) not in page
    assert "\n\n\n" not in page
    assert re.findall(r"^## .*\n(?!\n)", page, re.MULTILINE) == []
    return [shown for _, shown, _ in blocks]


def test_the_page_is_written_without_the_places_of_this_machine(write, tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "run", lambda command, folder: (61.2, f"{folder.resolve()}/index"))
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "report.json").write_text(json.dumps({"seconds": 125}))
    page = write("--store", tmp_path / "store", "--beside", "Nothing else ran.")
    assert set(require_whole(page, tmp_path)) == {"index\n"}
    assert "which took\n2 min 5 s." in page
    assert "Nothing else ran." in page
    assert page.count("\n1 min 1 s.\n") == len(typed())
    assert (tmp_path / "work" / "regions").resolve() == tmp_path / "store"
    assert (tmp_path / "work" / "sentences.txt").read_text().splitlines() == list(tool.SENTENCES)


def test_a_command_that_fails_leaves_the_page_as_it_was(write, tmp_path, monkeypatch):
    (tmp_path / "page.md").write_text("before")
    monkeypatch.setattr(tool, "run", lambda *_: (1.0, "no room\n(exit code 1)"))
    with pytest.raises(
        SystemExit, match=r"crossgaze index photos --into index failed(.|\n)*no room"
    ):
        write()
    assert (tmp_path / "page.md").read_text() == "before"


def test_an_index_that_is_there_already_is_refused(write, tmp_path, capsys):
    (tmp_path / "work" / "index").mkdir(parents=True)
    with pytest.raises(SystemExit):
        write()
    assert "is there already, wanted a folder without an index" in capsys.readouterr().err


@pytest.mark.slow
def test_the_page_of_a_small_folder_with_the_models_that_ship(write, tmp_path):
    pytest.importorskip("lancedb", reason="needs crossgaze[search]")
    shown = require_whole(write(), tmp_path)
    made, again, *five = shown[:7]
    filtered, program, sentences, picture = shown[7:]
    assert re.search(r"^ *added +3 in ", made, re.MULTILINE)
    assert re.search(r"^ *as before +3 *$", again, re.MULTILINE)
    assert all(len(re.findall(r" photos/\S+\.jpg", one)) == 3 for one in five)
    assert "written to report.html" in five[0]
    assert "0 of 3 looked at" in filtered  # they are small files
    assert '"path": "photos/' in program
    assert re.search(r"added +5 in ", sentences)
    assert re.search(rf"^ *1 +1\.000 +photos/{PICTURE} *$", picture, re.MULTILINE)
    assert all(sentence in picture for sentence in tool.SENTENCES)
    assert (tmp_path / "work" / "report.html").stat().st_size > 1000
