"""Reading text, JSON, JSON Lines and tables so that every problem names its file and line.

Files are UTF-8, with or without a byte-order mark, and no larger than MAX_FILE_BYTES: what a user
gives by mistake (a video, a feature file) is refused before it fills the memory.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossgaze.errors import FileFormatError, InputError, require_file
from crossgaze.memory import require_room

# The largest public caption file (Karpathy's MS-COCO) has 144 MB.
MAX_FILE_BYTES = 1 << 30
MAX_HEAD_BYTES = 1 << 24  # of a file that says what lies beside it: a page, with many labels more
LARGE_TEXT = 1 << 26  # characters beyond which it is reckoned first what is made of them
# Bytes at most of a place in a list and the number there, a list, an object, half of a string.
JSON_BYTES = {",": 40, "[": 96, "{": 240, '"': 28}
LINE_BYTES = {"\n": 64}  # a place in a list, and of a text what is not its characters
MAX_SENTENCE_CHARS = 100_000
MAX_ROW_CHARS = 1_000_000  # on one line of a table: ten of the longest sentences
MAX_NAME_CHARS = 1_000
DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_UNUSABLE_IN_NAME = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
# What a text of four or two bytes a character holds, and what JSON writes it as: the halves that
# begin a character beyond \uffff, any that is not Latin-1.
_WIDTHS = (
    (4, re.compile("[\U00010000-\U0010ffff]"), re.compile(r"\\u[dD][89abAB]")),
    (2, re.compile("[^\x00-\xff]"), re.compile(r"\\u(?!00)")),
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_bytes(path: str | Path, what: str, most: int | None = None) -> bytes:
    """Return the bytes of a file of at most `most`; `what` says what it should have been."""
    path = require_file(path, what)
    most = MAX_FILE_BYTES if most is None else most
    try:
        size = path.stat().st_size
        if size > most:
            raise InputError(f"{path}: has {size:,} bytes, {what} may have {most:,} at most")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def read_text(path: str | Path, what: str, most: int | None = None) -> str:
    """Return the text of a UTF-8 file without its byte-order mark, line ends as they are."""
    return decode(read_bytes(path, what, most), path)


def decode(content: bytes, path: str | Path) -> str:
    """Return the text of a file's UTF-8 without its byte-order mark; `path` is for errors."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The position counts from after the mark, which is on line 1 anyway.
        line = error.object.count(b"\n", 0, error.start) + 1
        found = error.object[error.start]
        raise FileFormatError(path, f"is not UTF-8 text (byte 0x{found:02x})", line=line) from None


def read_lines(path: str | Path, what: str) -> list[str]:
    r"""Return the lines of a UTF-8 file, line i + 1 of the file at place i, without line ends.

    Only "\n" and "\r\n" end a line: str.splitlines would also cut at U+2028 and its kin, which
    stand inside captions of the web.
    """
    return _lines(read_text(path, what), path)


def _lines(text: str, path: str | Path) -> list[str]:
    _require_room(text, path, LINE_BYTES, "characters of text")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_json(path: str | Path, what: str) -> object:
    """Return the value in a JSON file; a key twice in one object is an error."""
    return _parse(read_text(path, what), path)


def read_json_text(path: str | Path, what: str) -> str:
    """Return the text of a file to be parsed as JSON, if its values will fit into memory."""
    text = read_text(path, what)
    require_json_room(text, path)
    return text


def require_json_room(text: str, path: str | Path) -> None:
    """Refuse JSON whose values would not fit into memory: `[[],[],` takes thirty times its size."""
    _require_room(text, path, JSON_BYTES, "characters of JSON")


def _require_room(text: str, path: str | Path, each: Mapping[str, int], unit: str) -> None:
    if len(text) <= LARGE_TEXT:
        return
    need = _width(text) * len(text) + sum(text.count(sign) * more for sign, more in each.items())
    require_room(str(path), len(text), -(-need // len(text)), unit, "split the file")


def _width(text: str) -> int:
    r"""Return how many bytes Python takes for each character of the widest texts made of this one.

    All of a text take as many as its widest, be it written as itself or as JSON's \u2019.
    """
    for width, wide, escaped in _WIDTHS:
        if (not text.isascii() and wide.search(text)) or escaped.search(text):
            return width
    return 1


def parse_head(path: Path, what: str, most: int = MAX_HEAD_BYTES) -> Any:  # noqa: ANN401 (JSON is Any)
    """Return the JSON of a file that says what lies beside it, of at most `most` bytes.

    Raises:
        InputError: if it is too large or not UTF-8.
        ValueError: if it is not JSON, or holds NaN or 1e999, which nothing could write back.
        RecursionError: if it is nested too deeply.
    """
    return json.loads(read_text(path, what, most), parse_constant=_refuse, parse_float=_finite)


def read_jsonl(path: str | Path, what: str) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield (line number, object) for each line of a JSON Lines file; blank lines hold nothing."""
    for number, line in enumerate(_lines(read_json_text(path, what), path), start=1):
        if line.strip():
            yield number, parse_object(line, path, number)


def parse_object(text: str, path: str | Path, line: int) -> dict[str, object]:
    """Return the JSON object that a line of a file holds; file and number are for errors."""
    value = _parse(text, path, line=line)
    if not isinstance(value, dict):
        raise FileFormatError(path, f"is {kind_of(value)}, wanted an object {{...}}", line=line)
    return value


def _parse(text: str, path: str | Path, line: int | None = None) -> object:
    require_json_room(text, path)
    try:
        value: object = _DECODER.decode(text)
        return value
    except json.JSONDecodeError as error:
        at = error.lineno if line is None else line
        raise FileFormatError(
            path, f"is not JSON: {error.msg} at column {error.colno}", line=at
        ) from None
    except RecursionError:
        raise FileFormatError(path, "is not usable JSON: nested too deeply", line=line) from None
    except ValueError as error:  # a key twice, NaN, or a number with thousands of digits
        raise FileFormatError(path, f"is not usable JSON: {error}", line=line) from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice!r} occurs twice in one object")
    return found


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not a JSON number")


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(f"{text[:20]} is more than any number")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)


@dataclass(frozen=True)
class Table:
    """The rows of a table file.

    Args:
        rows: (line number, value of each wanted field that has a column), in file order.
        unread: columns of the file that no wanted field names.
    """

    rows: list[tuple[int, dict[str, str]]]
    unread: tuple[str, ...]


def read_table(
    path: str | Path,
    what: str,
    required: Mapping[str, Sequence[str]],
    optional: Mapping[str, Sequence[str]],
) -> Table:
    """Read a CSV file whose first line names its columns.

    The delimiter (comma, tab, semicolon or bar) is the one under which the header has the required
    columns. Fields may be quoted, and a quoted field may hold line ends. A row of blanks holds
    nothing.

    Args:
        path: the file.
        what: what it should be, for messages.
        required: the column names that stand for each field that must be there.
        optional: the same for fields that may be there.
    """
    text = read_text(path, what)
    header = next(_bounded(path, text), "").rstrip("\r\n")
    for delimiter in DELIMITERS:
        columns = _columns(header, delimiter)
        lowered = {name.lower() for name in columns}
        if all(lowered.intersection(names) for names in required.values()):
            break
    else:
        wanted = " and ".join("/".join(names) for names in required.values())
        raise FileFormatError(
            path,
            f"starts with {header[:80]!r}, wanted a header with the columns {wanted}, "
            f"separated by {' or '.join(DELIMITERS.values())}",
            line=1,
        )
    place = {}
    for field, names in {**required, **optional}.items():
        places = [i for i, name in enumerate(columns) if name.lower() in names]
        if len(places) > 1:
            both = " and ".join(repr(columns[i]) for i in places)
            raise FileFormatError(path, f"has the columns {both}, both mean {field}", line=1)
        if places:
            place[field] = places[0]
    rows = [
        (line, {field: row[i].strip() for field, i in place.items()})
        for line, row in _rows(path, text, delimiter, len(columns))
    ]
    unread = tuple(name for i, name in enumerate(columns) if i not in place.values())
    return Table(rows, unread)


def _columns(header: str, delimiter: str) -> list[str]:
    try:
        return [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
    except csv.Error:  # a first line longer than any header
        return []


def _rows(
    path: str | Path, text: str, delimiter: str, width: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line on which it starts, fields) for each row under the header."""
    reader = csv.reader(_bounded(path, text), delimiter=delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            if line > 1 and "".join(row).strip():
                if len(row) != width:
                    raise FileFormatError(
                        path,
                        f"has {len(row)} fields, the header has {width} (a field that holds a "
                        f'{DELIMITERS[delimiter]} must stand in "quotes")',
                        line=line,
                    )
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise FileFormatError(path, f"is not a table: {error}", line=line) from None


def _bounded(path: str | Path, text: str) -> Iterator[str]:
    """Give the lines of a table: one of commas alone would become a list eight times as large."""
    for number, line in enumerate(io.StringIO(text, newline=""), start=1):
        if len(line) > MAX_ROW_CHARS:
            raise FileFormatError(
                path,
                f"has {len(line):,} characters, wanted {MAX_ROW_CHARS:,} at most",
                line=number,
            )
        yield line


def kind_of(value: object) -> str:
    """Return what a JSON value is, in words.

    Example:
        >>> kind_of([1, 2])
        'a list'
    """
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    kinds |= {int: "a number", float: "a number", type(None): "null"}
    return kinds.get(type(value), type(value).__name__)


def sentence_problem(value: object) -> str | None:
    """Return what keeps `value` from being a caption, or None.

    Example:
        >>> sentence_problem("  ")
        'is blank'
    """
    if not isinstance(value, str):
        return f"is {kind_of(value)}, wanted a text"
    if not value.strip():
        return "is blank"
    if len(value) > MAX_SENTENCE_CHARS:
        return f"has {len(value):,} characters, {MAX_SENTENCE_CHARS:,} are the most"
    if not value.isascii() and _SURROGATE.search(value):
        return "holds half of a character (a lone surrogate)"
    return None


def name_problem(value: object) -> str | None:
    r"""Return what keeps `value` from naming a file inside the images folder, or None.

    Both "/" and "\\" count as separators, so that a name is as safe on one system as on another.

    Example:
        >>> name_problem("../secret.jpg")
        "is '../secret.jpg', which leads out of its folder"
    """
    if not isinstance(value, str):
        return f"is {kind_of(value)}, wanted a text"
    if not value.strip():
        return "is blank"
    if _UNUSABLE_IN_NAME.search(value):
        return f"is {value!r}, which holds a character that no file name should"
    if value[0] in "/\\" or re.match("[A-Za-z]:", value):
        return f"is {value!r}, an absolute path; wanted one inside the images folder"
    parts = value.replace("\\", "/").split("/")
    if ".." in parts:
        return f"is {value!r}, which leads out of its folder"
    if len(value) > MAX_NAME_CHARS or any(len(part.encode()) > 255 for part in parts):
        return f"is {value[:40]!r}..., too long for a file name"
    return None
