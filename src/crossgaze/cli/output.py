"""Tables for people and JSON for programs, both on stdout."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from crossgaze.cli.streams import write
from crossgaze.errors import UNSHOWN, one_line

UNLIMITED = 1_000_000  # columns of an output that is no terminal


def add_json(parser: argparse.ArgumentParser) -> None:
    """Give a verb its `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def print_json(value: Any) -> None:  # noqa: ANN401 (JSON is Any)
    """Print a value as JSON; signs are escaped that stdout lacks or a terminal would obey."""
    plain = (sys.stdout.encoding or "").lower().startswith("utf")
    lines = json.dumps(value, indent=2, ensure_ascii=not plain).split("\n")
    write(
        "".join(UNSHOWN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", line) + "\n" for line in lines)
    )


def print_table(
    rows: Iterable[Sequence[object]], header: Sequence[str] = (), title: str = ""
) -> None:
    """Print rows as a table, nothing cut: folded in a terminal, each row a line elsewhere.

    A file may be called anything: signs that a terminal would obey are written out.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*header, show_header=bool(header), box=None)
    for row in rows:
        table.add_row(*(Text(one_line(shown(cell))) for cell in row))
    for column in table.columns:
        column.overflow = "fold"  # a path with an ellipsis in it is none
    width = None if sys.stdout.isatty() else UNLIMITED
    console = Console(file=sys.stdout, width=width, highlight=False)
    with console.capture() as drawn:
        if title:  # by itself: a table would fold it at its own width
            console.print(Text(one_line(title), style="table.title"), soft_wrap=True)
        console.print(table)
    write(drawn.get())


def shown(value: object) -> str:
    """Return a value for people: large numbers with commas, switches as yes and no.

    Example:
        >>> shown(12345), shown(True)
        ('12,345', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def say(text: str) -> None:
    """Print a line on stdout, or several, without signs that a terminal would obey."""
    write("".join(f"{one_line(line)}\n" for line in text.split("\n")))


def program() -> str:
    """Return what to type for this program here: its path where the shell would not find it."""
    if shutil.which("crossgaze"):
        return "crossgaze"
    beside = Path(sys.executable).with_name("crossgaze")
    if not beside.is_file():
        return f"{sys.executable} -m crossgaze"
    inside = beside.is_relative_to(Path.cwd())
    return str(beside.relative_to(Path.cwd()) if inside else beside)


def readable_bytes(count: float) -> str:
    """Return a number of bytes for people.

    Example:
        >>> readable_bytes(1_500_000_000)
        '1.5 GB'
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
