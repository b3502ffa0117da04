"""Standard output and error, made so that printing to them never fails in a verb's face."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO


def open_output() -> None:
    r"""Let stdout and stderr take any text, whatever they are.

    What a terminal's encoding lacks is printed as `\xe9`; a stream that the shell has closed
    (`>&-`) swallows what is written.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (for good)
            setattr(sys, name, nowhere)
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def write(text: str) -> None:
    """Write on stdout; once nobody reads it any more (`| head`) the work goes on in silence."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        _drop(sys.stdout)


def close_output(code: int) -> int:
    """Write out what is still held back, and return the exit code that is right then."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop(sys.stdout)
    except OSError as error:
        _drop(sys.stdout)
        if code == 0:
            complain(f"standard output: {error.strerror or error}")
            code = 1
    try:
        sys.stderr.flush()  # what argparse could not write is held back, too
    except OSError:
        _drop(sys.stderr)
    return code


def complain(line: str) -> None:
    """Print one line on stderr."""
    with suppress(OSError):  # the exit code still tells
        sys.stderr.write(f"crossgaze: {line}\n")


def _drop(stream: TextIO) -> None:
    """Send what follows, and what Python would write once more at its end, to nowhere."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
