"""Output that cannot be written, or not as it is."""

import json
import os
from pathlib import Path

import pytest

from command_line import shell
from crossgaze import __version__


def test_a_closed_pipe_is_quiet_and_keeps_the_code(tmp_path):
    done = shell("crossgaze --help | true; echo ${PIPESTATUS[0]}")
    assert (done.stdout, done.stderr) == ("0\n", "")
    (tmp_path / "head.json").write_text("{}")  # a damaged store
    done = shell(f"crossgaze store verify {tmp_path} | true; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout, done.stderr) == ("1\n", "")


@pytest.mark.parametrize("words", ["--help", "--version", "extract --help", "data easy-vqa"])
def test_closed_output_is_quiet(words):
    pytest.importorskip("easy_vqa")
    done = shell(f"crossgaze {words} >&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_closed_errors_still_give_the_code():
    done = shell("crossgaze extrakt 2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
    assert shell("crossgaze --version 2>&-").stdout == f"crossgaze {__version__}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
@pytest.mark.parametrize("words", ["--help", "--version", "extract --help"])
def test_a_full_disk_is_one_line_and_code_one(words):
    done = shell(f"crossgaze {words} >/dev/full")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr
    assert shell("crossgaze extrakt 2>/dev/full").returncode == 2


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_names_that_the_terminal_cannot_show(tmp_path, encoding):
    folder = tmp_path / "caf\u00e9 \U0001f600"
    folder.mkdir()
    (folder / "captions.csv").write_text("image,caption\n\u00e9\u4e2d.jpg,a cat\n", "utf-8")
    command = f"crossgaze data '{folder}/captions.csv' --images '{folder}'"
    done = shell(command, PYTHONIOENCODING=encoding)
    assert done.returncode == 2
    assert "crossgaze: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_json_in_every_encoding(tmp_path, encoding):
    path = tmp_path / "caf\u00e9 \U0001f600.csv"
    path.write_text("image,caption\na.jpg,a cat\n")
    done = shell(f"crossgaze data '{path}'", PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    done = shell(f"crossgaze data '{path}' --json", PYTHONIOENCODING=encoding)
    assert "caf\u00e9 \U0001f600" in json.loads(done.stdout)["name"]


def test_a_name_that_is_no_text(tmp_path):
    name = os.fsencode(tmp_path) + b"/caf\xe9"
    done = shell("crossgaze extract \"$(printf 'caf\\xe9')\" out")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert r"caf\udce9" in done.stderr
    assert not Path(os.fsdecode(name)).exists()
