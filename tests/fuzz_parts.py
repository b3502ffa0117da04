"""Reading bad files under guard: no error but ours, no hang, no gluttony, no stray write."""

import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from crossgaze.errors import InputError
from fuzz_mutations import bad_bytes_of, bad_file

SECONDS = 60  # a file of some kilobytes; only a hang takes that long, however busy the machine
MEMORY = 2 << 30  # bytes beyond what the process has


@dataclass(frozen=True)
class Reader:
    """A reader under test.

    Args:
        name: what is read, for the table.
        make: writes a good source into a folder.
        read: reads a source; the second folder is where it may write.
        share: of the number of inputs; 1 for a reader that takes about a millisecond.
        malice: whether bad content may stand behind checksums that are right. Not for a user's
            own run and a database's files, which are trusted but may be damaged.
        grows: whether what is read is also written to, as a run that goes on is.
    """

    name: str
    make: Callable[[Path], object]
    read: Callable[[Path, Path], object]
    share: float = 1.0
    malice: bool = True
    grows: bool = False


@dataclass
class Tally:
    """How many inputs were read, and how many refused."""

    read: int = 0
    refused: int = 0


class HangError(BaseException):
    """Reading took longer than SECONDS. Not an Exception, so that no reader catches it."""


_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Audit events that change a path, and how many of their first arguments are paths.
_CHANGES = {
    **dict.fromkeys(("os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod"), 1),
    **dict.fromkeys(("os.chown", "os.utime", "os.mkfifo", "shutil.rmtree"), 1),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink", "shutil.move"), 2),
}
_NEVER = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect")
_watched: list[Any] = []  # (where writing is allowed, what was done elsewhere), while guarded


def _hook(event, args):
    if not _watched:
        return
    allowed, strays = _watched[-1]
    if event in _NEVER and args[0] != "git":  # a run's summary asks it for its own version
        strays.append((event, str(args)[:200]))
    elif event == "open" and isinstance(args[0], str | bytes | os.PathLike):
        mode, flags = args[1], args[2] or 0
        if any(sign in mode for sign in "wax+") if isinstance(mode, str) else flags & _WRITES:
            _judge(event, args[0], allowed, strays)
    elif event in _CHANGES:
        for path in args[: _CHANGES[event]]:
            _judge(event, _in_folder(path, args[-1]), allowed, strays)


def _in_folder(path, folder):
    """Return a path that was given inside an open folder, as shutil.rmtree does."""
    if isinstance(path, str) and isinstance(folder, int) and folder > 2 and path[:1] != "/":
        link = f"/proc/self/fd/{folder}"
        return os.path.join(os.path.realpath(link), path)  # noqa: PTH118
    return path


def _judge(event, path, allowed, strays):
    if not isinstance(path, str | bytes | os.PathLike):
        return
    where = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 (an audit hook stays simple)
    # What a library leaves when it is first used: bytecode, folders for its own caches.
    parts = Path(where).parts
    caches = ("__pycache__", "matplotlib", ".cache")
    if where == "/dev/null" or any(p in caches or p.startswith("torchinductor_") for p in parts):
        return
    if not any(where == place or where.startswith(place + os.sep) for place in allowed):
        strays.append((event, where))


sys.addaudithook(_hook)


@contextmanager
def guarded(*allowed: Path):
    """Watch the block: it ends in time, stays in memory, writes nowhere but into `allowed`.

    Python's own writes are seen as they happen; those of compiled code, which no hook sees, by what
    lies beside the allowed folders before and after.
    """

    def stop(signum, frame):
        raise HangError(f"after {SECONDS} seconds")

    strays: list[tuple[str, str]] = []
    before = signal.signal(signal.SIGALRM, stop)
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    _watched.append((tuple(map(str, allowed)), strays))
    beside = sorted(set(allowed[0].parent.rglob("*")) - _inside(allowed))
    evil = {path for path in _evil(allowed[0]) if not path.exists()}
    try:
        yield
    finally:
        _watched.pop()
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not strays, f"wrote or ran something elsewhere: {strays}"
    assert sorted(set(allowed[0].parent.rglob("*")) - _inside(allowed)) == beside
    assert not any(path.exists() for path in evil)


def _evil(folder):
    """Return where the hostile names of fuzz_mutations.py lead, from anywhere that they may be."""
    starts = (Path.cwd(), folder, *(path for path in folder.iterdir() if path.is_dir()))
    names = ("evil", "../../evil", "../../../../tmp/evil", "/tmp/evil")
    return {Path(os.path.normpath(start / name)) for start in starts for name in names}


def _inside(folders):
    return {path for folder in folders for path in (folder, *folder.rglob("*"))}


def good_files(reader: Reader, folder: Path) -> dict[str, bytes]:
    """Make a good source, show that its copy is read, and return its files' contents."""
    source, tally = folder / "good", Tally()
    source.mkdir()
    reader.make(source)
    files = {
        path.relative_to(source).as_posix(): path.read_bytes()
        for path in sorted(source.rglob("*"))
        if path.is_file()
    }
    try_reading(reader, files, folder, tally)  # where the bad ones will lie
    assert tally.read, "a good source is refused"
    return files


def try_reading(reader: Reader, files: dict[str, bytes], folder: Path, tally: Tally) -> None:
    """Write a source and read it; anything but success and an InputError of one line fails."""
    source, target = folder / "source", folder / "target"
    for made in (source, target):
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
    for name, content in files.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    try:
        with guarded(target, *([source] if reader.grows else [])):
            reader.read(source, target)
        tally.read += 1
    except InputError as error:
        if len(str(error).splitlines()) != 1:
            raise AssertionError(f"wanted one line: {str(error)!r}") from error
        tally.refused += 1


def throw(reader: Reader, folder: Path, count: int) -> Tally:
    """Read `count` bad sources, each with one bad file; return how it went."""
    files, tally = good_files(reader, folder), Tally()
    damage = bad_file if reader.malice else bad_bytes_of

    @settings(
        max_examples=count,
        deadline=None,  # the guard has one of its own, which ends a hang instead of noting it
        database=None,
        derandomize=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def run(data):
        name = data.draw(st.sampled_from(sorted(files)))
        bad = data.draw(damage(name, files[name]))
        try_reading(reader, files | {name: bad}, folder, tally)

    run()
    return tally
