"""The one family of errors a user can cause, and so the one family the command line explains."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from pathlib import Path

# Line ends, and signs that move a terminal's cursor, turn its text round, or are half a sign.
UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class InputError(Exception):
    r"""Something the user gave cannot be used.

    The message is one line that names the file or argument, what was found and what was wanted.
    What it quotes may come from anybody's file, so signs that are not shown are written out.
    The command line prints it and exits with code 2; from Python it is an ordinary exception.

    Example:
        >>> str(InputError("caption: got 'two\nlines'"))
        "caption: got 'two\\nlines'"
    """

    def __init__(self, *parts: object) -> None:
        super().__init__(*(one_line(part) if isinstance(part, str) else part for part in parts))


def one_line(text: str) -> str:
    r"""Return a text whose line ends and other signs that are not shown are written out.

    Example:
        >>> one_line("a\tb")
        'a\\tb'
    """
    return UNSHOWN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


class FileFormatError(InputError):
    """A file does not hold what its format promises.

    Example:
        >>> str(FileFormatError("caps.txt", "has no tab", line=3))
        'caps.txt, line 3: has no tab'
    """

    def __init__(self, path: str | Path, problem: str, *, line: int | None = None) -> None:
        self.path = Path(path)
        self.line = line
        self.problem = problem
        where = f"{path}, line {line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {problem}")

    def __reduce__(self) -> tuple[object, ...]:  # so that it comes back from a worker process
        return partial(FileFormatError, line=self.line), (self.path, self.problem)


class MissingExtraError(InputError):
    """A feature needs a package that the light core does not install."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        self.needs = (feature, package, extra)
        super().__init__(f"{feature} needs the package {package}: pip install 'crossgaze[{extra}]'")

    def __reduce__(self) -> tuple[object, ...]:
        return MissingExtraError, self.needs


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ' (did you mean ...?)' for the known name closest to `name`, or nothing.

    Example:
        >>> nearest("backbon", ["backbone", "grid"])
        " (did you mean 'backbone'?)"
    """
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def require_path(name: str, value: object) -> Path:
    """Return what was given as a path, if it can be one.

    Example:
        >>> require_path("index", "photos").name
        'photos'
    """
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise InputError(f"{name}: got {value!r}, wanted a path")
    return Path(value)


def require_file(path: str | Path, what: str) -> Path:
    """Return `path` as a Path if it is a file, else say what it should have been."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: is a folder, wanted {what}")
    if not path.is_file():
        # One of a pipe's kind is not opened: that would wait until somebody writes to it.
        found = "is a pipe, socket or device" if path.exists() else "no such file"
        raise InputError(f"{path}: {found}, wanted {what}")
    if {"/proc", "/sys"} & set(map(str, path.resolve().parents)):
        # A link may lead there. They say that they are empty, and some never end, as /proc/kmsg.
        raise InputError(f"{path}: is made up by the kernel when it is read, wanted {what}")
    return path


def require_folder(path: str | Path, what: str) -> Path:
    """Return `path` as a Path if it is a folder, else say what it should have been."""
    path = Path(path)
    if path.is_file():
        raise InputError(f"{path}: is a file, wanted {what}")
    if not path.is_dir():
        raise InputError(f"{path}: no such folder, wanted {what}")
    return path
