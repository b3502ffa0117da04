"""Writing files whole."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crossgaze.errors import InputError
from crossgaze.files import (
    bytes_in,
    exchange,
    naming,
    only_writer,
    sync_folder,
    sync_tree,
    write_atomically,
    write_json,
)


def test_the_old_content_stays_until_the_new_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        write_atomically(path, "new")
    assert path.read_text() == '{\n  "a": 1\n}\n'
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    monkeypatch.undo()
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "link.html").symlink_to("far/a.html")
    for text in ("one", "two"):  # the first makes it
        write_atomically(tmp_path / "link.html", text)
        assert (tmp_path / "link.html").is_symlink()
        assert (tmp_path / "far" / "a.html").read_text() == text
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["a.html"]


def test_what_is_no_file_is_written_to_and_never_replaced(tmp_path):
    """Root may replace /dev/null, and then all that is thrown away is kept there."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, "text")
        assert os.read(reading, 100) == b"text"
    finally:
        os.close(reading)
    with pytest.raises(OSError, match="No such device or address"):  # nobody reads: no waiting
        write_atomically(pipe, "text")
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    null = Path("/dev/null").stat()
    write_atomically(Path("/dev/null"), "text")
    assert Path("/dev/null").stat().st_ino == null.st_ino
    assert Path("/dev/null").is_char_device()


def test_standard_output_may_be_named(tmp_path):
    code = "import sys; from pathlib import Path; from crossgaze.files import write_atomically; "
    code += "print('before', flush=True); write_atomically(Path('/dev/stdout'), 'text')"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "before\ntext"
    with (tmp_path / "out").open("w") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert (tmp_path / "out").read_text() == "before\ntext"


def fail(number):
    """Return a call of the system that fails as those do which know a file by a number."""

    def call(*args):
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_what_the_system_says_names_the_file(tmp_path, monkeypatch, number):
    monkeypatch.setattr(os, "fsync", fail(number))
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        write_atomically(tmp_path / "a.html", "text")
    assert caught.value.filename == str(tmp_path / "a.html")
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        sync_folder(tmp_path)
    assert caught.value.filename == str(tmp_path)


def test_a_file_that_the_system_named_keeps_its_name(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, naming(tmp_path / "other"):
        (tmp_path / "a").open()
    assert caught.value.filename == str(tmp_path / "a")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is always full")
def test_a_full_disk_is_named_by_what_is_written_to_it(tmp_path):
    """Also where bytes wait in a buffer until the file is closed."""
    (tmp_path / f".a.html.{os.getpid()}.partial").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(tmp_path / "a.html", "text")
    assert caught.value.filename == str(tmp_path / "a.html")


def test_a_value_that_json_cannot_hold_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
    assert not list(tmp_path.iterdir())


def test_a_tree_is_flushed_once(tmp_path, monkeypatch):
    flushed = []
    fsync = os.fsync
    monkeypatch.setattr(
        os,
        "fsync",
        lambda f: flushed.append(str(Path(f"/proc/self/fd/{f}").readlink())) or fsync(f),
    )
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a").write_text("a")
    known = sync_tree(tmp_path, set())
    assert sorted(flushed) == [str(tmp_path), *2 * [str(tmp_path / "deep")], f"{tmp_path}/deep/a"]
    flushed.clear()
    known = sync_tree(tmp_path, known)
    assert flushed == []
    (tmp_path / "b").write_text("b")
    os.utime(tmp_path / "deep" / "a", ns=(1, 1))  # written again
    sync_tree(tmp_path, known)
    assert set(flushed) == {str(tmp_path), *map(str, tmp_path.rglob("*"))}


def test_bytes_are_counted_whoever_removes_files_meanwhile(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    (tmp_path / "a").write_text("abc")
    (tmp_path / "deep" / "b").write_text("de")
    assert bytes_in(tmp_path) == 5
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    assert bytes_in(tmp_path) == 5


def test_another_process_is_refused_while_one_writes_and_let_in_after(tmp_path):
    script = (
        "import sys; from pathlib import Path; from crossgaze.files import only_writer\n"
        "with only_writer(Path(sys.argv[1]), 'it'): print('in')"
    )

    def other():
        return subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True
        )

    with only_writer(tmp_path, "it"):
        refused = other()
        with pytest.raises(InputError, match=f"pid {os.getpid()}"), only_writer(tmp_path, "it"):
            pass
    assert f"pid {os.getpid()}" in refused.stderr
    assert other().stdout == "in\n"


def test_half_signs_are_written_as_json_can(tmp_path):
    write_json(tmp_path / "a.json", {"a": "\ud800", "b": "ü"})
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == {"a": "\ud800", "b": "ü"}
    write_json(tmp_path / "a.json", {"b": "ü"})
    assert "ü" in (tmp_path / "a.json").read_text("utf-8")


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's own call")
def test_two_folders_trade_places(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "who").write_text(name)
    assert exchange(tmp_path / "a", tmp_path / "b")
    assert [(tmp_path / name / "who").read_text() for name in "ab"] == ["b", "a"]
    assert not exchange(tmp_path / "a", tmp_path / "no")
    assert (tmp_path / "a" / "who").read_text() == "b"
