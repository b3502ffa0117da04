"""A pipe in the place of a file, in folders from anybody: no reader opens it, and so none waits."""

import ctypes
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

import fuzz_arrays
import fuzz_texts
from crossgaze.config import load_recipe
from crossgaze.data.captions.own import read_own
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.checkpoints import import_checkpoint
from crossgaze.vision.settings import ExtractConfig

# LanceDB opens its files itself, in an index of one's own, which is trusted; a date is read from
# bytes, so there the fuzzer would be the one that waits.
NOT_OURS = ("index: all files", "photograph: EXIF in JPEG", "photograph: EXIF in TIFF")
READERS = {
    reader.name: reader
    for reader in (*fuzz_texts.READERS, *fuzz_arrays.READERS)
    if reader.name not in NOT_OURS
}
# Lets whoever opens the pipe $1 find its end at once, instead of waiting for good.
OPEN = 'while :; do exec 3>"$1"; exec 3>&-; done'
IN_OPEN = 0x20


@contextmanager
def never_opened(pipe):
    """Make a pipe; whoever opens it in the block is not kept waiting, and fails the test."""
    os.mkfifo(pipe)
    libc = ctypes.CDLL(None)
    told = libc.inotify_init1(os.O_NONBLOCK)
    libc.inotify_add_watch(told, os.fsencode(pipe), IN_OPEN)
    with subprocess.Popen(["sh", "-c", OPEN, "sh", str(pipe)]) as child:
        try:
            yield
        finally:
            child.kill()
    try:
        # The child's own opening of it ends only when somebody else has opened it, too.
        with pytest.raises(BlockingIOError):
            os.read(told, 4096)
    finally:
        os.close(told)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")
@pytest.mark.parametrize("file", ["/proc/kmsg", "/proc/self/environ", "/sys/kernel/notes"])
def test_what_the_kernel_makes_up_is_not_opened(tmp_path, file):
    if not Path(file).is_file():
        pytest.skip(f"{file} is not here")
    (tmp_path / "captions.txt").symlink_to(file)
    recipe = partial(load_recipe, ExtractConfig)
    for read in (read_own, recipe, Vocabulary.load, partial(import_checkpoint, family="scan")):
        with pytest.raises(InputError, match=r"captions.txt: is made up by the kernel"):
            read(tmp_path / "captions.txt")


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's inotify")
@pytest.mark.parametrize("name", READERS)
def test_no_reader_waits_for_a_pipe(tmp_path, monkeypatch, name):
    # The checksums of a good model are right, and no copy could be made of a pipe.
    monkeypatch.setattr(fuzz_arrays, "_signed", lambda source, target: source)
    reader = READERS[name]
    good, source, target = tmp_path / "good", tmp_path / "source", tmp_path / "target"
    good.mkdir()
    reader.make(good)
    files = [path.relative_to(good) for path in sorted(good.rglob("*")) if path.is_file()]
    assert files
    for file in files:
        for folder in (source, target):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(good, source)
        target.mkdir()
        (source / file).unlink()
        with never_opened(source / file), suppress(InputError):
            reader.read(source, target)
