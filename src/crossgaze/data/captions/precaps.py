"""BFAN's captions: `*_precaps.txt`, words already replaced by their numbers in a vocabulary."""

from __future__ import annotations

from pathlib import Path

from crossgaze.data.textfiles import MAX_SENTENCE_CHARS, read_lines
from crossgaze.errors import FileFormatError

MAX_TOKEN = 10_000_000  # no vocabulary of words is larger


def read_precaps(path: str | Path) -> list[tuple[int, ...]]:
    r"""Read token ids, comma-separated, one caption a line; five lines an image, in image order.

    Args:
        path: such as `train_precaps.txt`.

    Returns:
        (M,) the ids of each caption, `<start>` and `<end>` included if the file has them.

    Example:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "dev_precaps.txt"
        >>> _ = path.write_text("1,4,17,2\n1,9,2\n")
        >>> read_precaps(path)
        [(1, 4, 17, 2), (1, 9, 2)]
    """
    path = Path(path)
    lines = read_lines(path, "captions as comma-separated token ids, one a line")
    if not lines:
        raise FileFormatError(path, "holds no caption")
    return [_tokens(path, number, line) for number, line in enumerate(lines, start=1)]


def _tokens(path: Path, number: int, line: str) -> tuple[int, ...]:
    if not line.strip():
        raise FileFormatError(
            path,
            "the caption is blank, and leaving it out would shift all that follow",
            line=number,
        )
    if len(line) > MAX_SENTENCE_CHARS:
        raise FileFormatError(
            path, f"has {len(line):,} characters, {MAX_SENTENCE_CHARS:,} are the most", line=number
        )
    tokens = []
    for place, cell in enumerate(line.split(","), start=1):
        digits = cell.strip()
        # str.isdecimal alone would let other scripts' digits in; ten digits pass any bound.
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10):
            raise FileFormatError(
                path, f"token {place} is {cell[:20]!r}, wanted a whole number from 0", line=number
            )
        if int(digits) > MAX_TOKEN:
            raise FileFormatError(
                path, f"token {place} is {digits}, {MAX_TOKEN:,} is the most", line=number
            )
        tokens.append(int(digits))
    return tuple(tokens)
