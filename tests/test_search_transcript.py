"""The page of a search over a folder: what is typed, run for real over a small one."""

import pytest

import help_worlds

tool = pytest.importorskip("search_transcript", reason="needs tools/")


def test_regions_that_are_there_are_named_once_and_every_sentence_is_asked():
    with_store, without = tool.commands(stored=True), tool.commands(stored=False)
    assert with_store[0] == [*without[0], "--store", "regions"]
    assert with_store[1:] == without[1:]
    assert [command[3] for command in without[2:]] == list(tool.SENTENCES)
    assert without[2][-2:] == ["--html", "report.html"]


def test_a_command_is_run_in_its_folder_with_this_python(tmp_path):
    help_worlds.photographs(tmp_path / "photos", ["a.jpg"])
    seconds, shown = tool.run(["crossgaze", "search", "nowhere", "a dog"], tmp_path)
    assert seconds > 0
    assert "nowhere" in shown
    assert shown.endswith("(exit code 2)")
