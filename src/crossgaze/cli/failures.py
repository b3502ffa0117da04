"""What the command line says, and with which exit code it ends, when something went wrong."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from crossgaze.errors import InputError

BAD_INPUT, FAILED, STOPPED = 2, 1, 130

# What the system says of a path that cannot be what the user wanted it to be ...
_OF_THE_PATH = frozenset(
    (
        *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY),
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP),
    )
)
# ... and of a machine that cannot go on, whatever the path.
_OF_THE_MACHINE = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
)
# What torch says, of a GPU, of Windows and of Linux.
_NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory")
_BUG = "internal error"
NEEDS_LESS = {
    "extract": "; try a smaller batch= or size=, or fewer workers=",
    "store import": "; try fewer --regions, or --dtype float16",
    "train": "; try a smaller batch= or model.size=",
    "evaluate": "; try a smaller --batch, or --folds 5 instead of all at once",
    "index": "; try --store with what extract made with a smaller batch= or fewer workers=",
    "search": "; try fewer --candidates, and not --exhaustive",
    "serve": "; try --answerer none",
    "ask": "; try a smaller copy of the photograph, or --device cpu where a GPU has too little",
    "explain": "; try --store with what extract made, or of a --sheet fewer --rows",
}
LONGEST = 500  # signs of a foreign message that are shown


def explain(error: BaseException, words: Sequence[str]) -> tuple[int, str]:
    """Return the exit code and the one line for what ended a command.

    Args:
        error: what was raised.
        words: the command's words, to know which paths the user gave.

    Example:
        >>> explain(InputError("grid: got 0"), ["extract", "photos", "out"])
        (2, 'grid: got 0')
    """
    if isinstance(error, KeyboardInterrupt):
        return STOPPED, "stopped; what was finished is kept, the same command goes on from there"
    if isinstance(error, InputError):
        # A reader may have wrapped what the disk said.
        return FAILED if _is_the_machine(error.__context__) else BAD_INPUT, _one_line(error)
    if _is_out_of_memory(error):
        return FAILED, f"out of memory{_needs_less(words)}"
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        why = error.strerror or str(error) or type(error).__name__
        theirs = error.errno in _OF_THE_PATH and _is_given(error.filename, words)
        return BAD_INPUT if theirs else FAILED, _one_line(f"{where}{why}")
    if str(error).startswith("Symlink loop"):  # how Path.resolve puts it before Python 3.13
        return BAD_INPUT, _one_line(error)
    said = _one_line(f"{type(error).__name__}: {error}")
    return FAILED, f"{_BUG}: {said}; this is a bug, CROSSGAZE_DEBUG=1 shows where"


def is_unexpected(error: BaseException) -> bool:
    """Tell a bug from what a user or a machine can cause."""
    return explain(error, [])[1].startswith(_BUG)


def _is_the_machine(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno in _OF_THE_MACHINE


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    # torch.OutOfMemoryError, by its name: this file is read before anything heavy is imported.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    told = str(error).lower() if isinstance(error, RuntimeError) else ""
    return any(sign in told for sign in _NO_MEMORY)


def _needs_less(words: Sequence[str]) -> str:
    """Return which settings of a verb, or of one of its actions, need less."""
    return NEEDS_LESS.get(" ".join(words[:2]), NEEDS_LESS.get(" ".join(words[:1]), ""))


def _is_given(filename: object, words: Sequence[str]) -> bool:
    """Tell whether a path is one that the user gave, lies in it or on the way to it.

    Or beside it under a longer name: a file is written so before it gets its own.
    """
    if not isinstance(filename, str | bytes | os.PathLike):
        return False
    path = Path(os.path.realpath(os.fsdecode(filename)))
    for word in words:
        for text in {word, word.partition("=")[2]} - {""}:
            given = Path(os.path.realpath(text))
            if path.is_relative_to(given) or given.is_relative_to(path):
                return True
            if path.parent == given.parent and given.name in path.name:
                return True
    return False


def _one_line(message: object) -> str:
    line = "\\n".join(str(message).splitlines())
    return (
        line if isinstance(message, InputError) or len(line) <= LONGEST else f"{line[:LONGEST]}..."
    )
