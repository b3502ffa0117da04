"""Writing files so that a reader never meets half of one."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from crossgaze.errors import InputError


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let what the system says of an open file (no space left, ...) name the file.

    The system knows a file that it opens by its name, one that is written by a number.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def sync_folder(folder: Path) -> None:
    """Make the folder's entries durable (a new or renamed file survives a power cut)."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with naming(folder):
            os.fsync(handle)
    finally:
        os.close(handle)


def bytes_in(folder: Path) -> int:
    """Return how many bytes the files in a folder have, whoever removes some meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_file():
                total += path.stat().st_size
    return total


def stamp_of(status: os.stat_result) -> tuple[int, int]:
    """Return size and date (ns since 1970), by which a file is known to be the same.

    Some file systems keep dates past the year 2262, which a store's 64 bits do not hold: those
    begin again with 1677, and still tell one date from the next.
    """
    half = 1 << 63
    return status.st_size, (status.st_mtime_ns + half) % (2 * half) - half


def sync_tree(folder: Path, known: set[tuple[str, int]]) -> set[tuple[str, int]]:
    """Make the files in a folder durable that are new or changed, and their names.

    Args:
        folder: with all folders in it.
        known: path and date of files that need no more, as the last call returned them.

    Returns:
        The same for what is there now.
    """
    there: set[tuple[str, int]] = set()
    for place, folders, files in os.walk(folder):
        found = {(os.path.join(place, name), 0) for name in folders}  # noqa: PTH118 (often, many)
        for name in files:
            path = os.path.join(place, name)  # noqa: PTH118
            with suppress(FileNotFoundError):
                found.add((path, os.stat(path).st_mtime_ns))  # noqa: PTH116
        for path, _ in found - known:
            with suppress(FileNotFoundError):
                sync_folder(Path(path))  # a file is made durable in the same way
        if found - known:
            sync_folder(Path(place))
        there |= found
    return there


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write `content` to `path`: whoever opens it finds the old content or the new, whole.

    A temporary file beside it is renamed over it; if writing fails nothing is left behind. A link
    stays, and what it leads to is written. What is no file but is there, such as /dev/null, is
    written to and never replaced: root could, and every program of the machine would miss it.
    """
    # Half a sign, which a stranger's JSON may hold, has no UTF-8; JSON writes it \ud800.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    if is_special(path):
        # Appended, as what is printed may go there, too. A pipe that nobody reads is an error: to
        # wait for somebody would be for ever.
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        with naming(path), os.fdopen(handle, "wb") as file:
            os.set_blocking(handle, True)
            file.write(data)
        return
    path = Path(os.path.realpath(path))
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with naming(path), partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def is_special(path: Path) -> bool:
    """Tell whether a path is a device, a pipe or a terminal: there, and neither file nor folder.

    Example:
        >>> is_special(Path("/dev/null")), is_special(Path("/dev")), is_special(Path("/nowhere"))
        (True, False, False)
    """
    where = os.path.abspath(path)  # noqa: PTH100 (a link's own place, not where it leads)
    if where.startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return path.exists()  # an open file, which others write to as well
    return path.exists() and not path.is_file() and not path.is_dir()


def write_json(path: Path, value: Any) -> None:  # noqa: ANN401 (JSON is Any)
    """Write `value` as readable JSON, atomically."""
    write_atomically(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def exchange(one: Path, other: Path) -> bool:
    """Let two paths of one folder trade places in one step; False where the system has none.

    Linux's renameat2: whoever looks finds the one or the other, and a kill comes before or after.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):  # macOS, and glibc before 2.28
        return False
    here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    done: int = libc.renameat2(here, os.fsencode(one), here, os.fsencode(other), swap)
    return done == 0


LOCK = ".crossgaze.lock"


@contextmanager
def only_writer(folder: Path, what: str) -> Iterator[None]:
    """Hold the folder's lock for the block; a second writer is refused with the first one's pid.

    The lock is the kernel's (`flock`), so it ends with the process however that ends.
    """
    # Unbuffered: on a full disk, closing the file would try to write once more.
    with (folder / LOCK).open("ab+", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().decode(errors="replace").strip() or "unknown"
            raise InputError(
                f"{folder}: {what} is being written by another process (pid {holder}); "
                "wait for it or stop it"
            ) from None
        with naming(folder / LOCK):
            file.seek(0)
            file.truncate()
            file.write(str(os.getpid()).encode())
        yield
