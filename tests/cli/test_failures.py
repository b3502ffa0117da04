"""Which failure is whose: 2 is what the user gave, 1 is the machine or a bug."""

import errno
import os
import re
from dataclasses import fields

import pytest
from PIL import Image

from command_line import FAST, run
from crossgaze.cli import main
from crossgaze.cli.failures import LONGEST, NEEDS_LESS, explain, is_unexpected
from crossgaze.errors import InputError
from crossgaze.training.config import TrainConfig
from crossgaze.vision.settings import ExtractConfig


def system_error(number, path):
    return OSError(number, os.strerror(number), path)


@pytest.mark.parametrize(
    "number",
    [
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EEXIST,
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENAMETOOLONG,
        errno.ELOOP,
    ],
)
@pytest.mark.parametrize("path", ["/given", "/given/out", "/given/out/head.json", b"/given/out"])
def test_a_given_path_that_cannot_be_is_bad_input(number, path):
    for words in (["extract", "in", "/given/out"], ["extract", "x", "weights=/given/out"]):
        code, line = explain(system_error(number, path), words)
        assert code == 2
        assert os.strerror(number) in line
        assert "given" in line
    assert explain(system_error(number, path), ["extract", "in", "/elsewhere"])[0] == 1


def test_a_relative_path_and_the_file_written_before_it_is_renamed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["data", "x", "--vocabulary", "v.json"]
    for path in ("v.json", f"{tmp_path}/v.json", ".v.json.17.partial"):
        assert explain(system_error(errno.EACCES, path), words)[0] == 2
    for path in ("w.json", "sub/.v.json.17.partial", 3, None):
        assert explain(system_error(errno.EACCES, path), words)[0] == 1


def test_a_link_is_the_path_it_leads_to(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    error = system_error(errno.EACCES, str(tmp_path / "real" / "x"))
    assert explain(error, ["extract", str(tmp_path / "link")])[0] == 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EMFILE])
def test_a_machine_that_fails_is_code_one_even_on_a_given_path(number):
    words = ["extract", "in", "/given"]
    error = system_error(number, "/given/features.bin")
    assert explain(error, words) == (1, f"/given/features.bin: {os.strerror(number)}")
    wrapped = InputError("/given: cannot be written")
    wrapped.__context__ = error  # as Python sets it on what an `except` block raises
    assert explain(wrapped, words) == (1, "/given: cannot be written")


class OutOfMemoryError(RuntimeError):
    """Named as torch's own, which a machine without a GPU cannot be made to raise."""


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OutOfMemoryError("no room"),
        RuntimeError("[enforce fail at alloc] DefaultCPUAllocator: not enough memory: you tried"),
        RuntimeError("CUDA error: out of memory\nmore"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_out_of_memory_says_what_needs_less(error):
    code, line = explain(error, ["extract", "in", "out"])
    assert code == 1
    assert line == "out of memory; try a smaller batch= or size=, or fewer workers="
    for words in (["data", "x"], ["store", "verify", "x"], ["store"]):
        assert explain(error, words) == (1, "out of memory")
    assert explain(error, []) == (1, "out of memory")
    assert not is_unexpected(error)


@pytest.mark.parametrize("named", NEEDS_LESS)
def test_what_needs_less_is_a_setting_that_the_verb_has(named, capsys):
    _, line = explain(MemoryError(), [*named.split(), "x"])
    hint = line.removeprefix("out of memory; try ")
    assert hint != line
    assert main([*named.split(), "--help"]) == 0
    said = capsys.readouterr().out
    flags, keys = re.findall(r"--[a-z]+", hint), re.findall(r"([a-z.]+)=", hint)
    assert flags or keys
    for flag in flags:
        assert re.search(rf"{flag}\b", said), flag
    # An index is made with what extract made, which has settings of its own.
    config = TrainConfig if named == "train" else ExtractConfig
    known = {field.name for field in fields(config)} | {"model.size"}
    assert set(keys) <= known


def test_torchs_error_has_the_name_that_is_looked_for():
    import torch

    assert torch.OutOfMemoryError.__name__ == "OutOfMemoryError"
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60)
    assert explain(caught.value, ["extract"])[1].startswith("out of memory; try")


def test_anything_else_is_a_bug_and_short():
    code, line = explain(RuntimeError("x" * 10_000), ["extract"])
    assert code == 1
    assert line.startswith("internal error: RuntimeError: xxx")
    assert len(line) < LONGEST + 100
    assert is_unexpected(RuntimeError("x"))
    assert not is_unexpected(InputError("x"))
    assert not is_unexpected(OSError())
    assert explain(OSError(), []) == (1, "OSError")
    assert explain(InputError("a\nb"), []) == (2, r"a\nb")


def test_paths_on_a_real_disk(capsys, tmp_path):
    file = tmp_path / "photo.png"
    Image.new("RGB", (9, 9)).save(file)
    (tmp_path / "circle").symlink_to("circle")
    for out in (file / "out", tmp_path / ("x" * 300), tmp_path / "circle" / "out"):
        code, _, err = run(capsys, "extract", file, out, *FAST)
        assert code == 2
        assert str(tmp_path) in err
        assert err.count("\n") == 1
    code, _, err = run(capsys, "demo", "--into", file)
    assert code == 2
    assert "photo.png" in err
