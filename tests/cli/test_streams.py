"""Output that cannot be written, or not as it is."""

import io
import json
import os
import sys
from pathlib import Path

import pytest

from command_line import shell
from crossgaze import __version__
from crossgaze.cli import streams


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_is_quiet_and_keeps_the_code(tmp_path, unbuffered):
    (tmp_path / "head.json").write_text("{}")  # a damaged store
    for words, code in (("--help", 0), (f"store verify {tmp_path}", 1)):
        # The reader is gone before anything is written.
        done = shell(
            f"(sleep 0.2; crossgaze {words}; echo $? >&2) | true", PYTHONUNBUFFERED=unbuffered
        )
        assert (done.stdout, done.stderr) == ("", f"{code}\n")


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
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line_and_code_one(words, unbuffered):
    done = shell(f"crossgaze {words} >/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr
    done = shell("crossgaze extrakt 2>/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 2


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


class Broken(io.StringIO):
    """A stream that fails."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error

    def flush(self):
        raise self.error


def test_streams_of_a_program_that_calls_main(capsys, monkeypatch):
    """The same within one process, where stdout may be no file at all."""
    monkeypatch.setattr(sys, "stdout", Broken(BrokenPipeError()))
    streams.open_output()
    streams.write("x")
    assert [streams.close_output(code) for code in (0, 1)] == [0, 1]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys, "stdout", Broken(OSError(28, "No space left on device")))
    assert streams.close_output(2) == 2
    assert capsys.readouterr().err == ""
    assert streams.close_output(0) == 1
    assert capsys.readouterr().err == "crossgaze: standard output: No space left on device\n"
    monkeypatch.setattr(sys, "stderr", Broken(OSError()))
    streams.complain("x")
    monkeypatch.setattr(sys, "stdout", None)
    streams.open_output()
    with sys.stdout as nowhere:
        assert nowhere.name == os.devnull
