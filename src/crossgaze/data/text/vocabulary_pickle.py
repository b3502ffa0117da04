"""Read the attributes of a pickled `Vocabulary` without unpickling it.

VSRN and VSE++ ship their vocabularies as pickles, and a pickle is a program that can run anything.
This reads the few instructions that such a vocabulary is made of (words, numbers, dicts and one
plain object; Python 2 and 3, protocols 0 to 5) on a stack of its own: nothing is imported, looked
up or called, and whatever else a file asks for is refused by name.
"""

from __future__ import annotations

import pickletools
import re
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from crossgaze.errors import FileFormatError

# A million words take seven million instructions; the public vocabularies have up to 12,000 words.
_MAX_STEPS = 10_000_000
_DIGITS = re.compile(rb"-?[0-9]{1,19}")
# What Python 2 writes for characters of a string that it cannot print.
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|([\\'\"nrt]))")
_CONTROL = bytes.maketrans(b"nrt", b"\n\r\t")


class _Named(Enum):
    """What a pickle may name, kept as a mark: it stands for nothing that could be called."""

    VOCABULARY = "Vocabulary"
    REBUILD = "copyreg._reconstructor"
    OBJECT = "builtins.object"


class _Record:
    """The one object that can be built: attributes and nothing else."""

    def __init__(self) -> None:
        self.attributes: dict[object, object] = {}


def read_vocabulary_pickle(path: Path, data: bytes) -> dict[object, object]:
    r"""Return the attributes of the `Vocabulary` object pickled in `data`.

    Args:
        path: the file that `data` comes from, for messages.
        data: the whole pickle.

    Example:
        >>> read_vocabulary_pickle(Path("v.pkl"), b"(ivocab\nVocabulary\n(dS'idx'\nI4\nsb.")
        {'idx': 4}
    """
    found = _Reader(path, data).run()
    if not isinstance(found, _Record):
        raise FileFormatError(path, f"holds a {_kind(found)}, wanted an object of class Vocabulary")
    return found.attributes


def _kind(value: object) -> str:
    kinds: dict[type, str] = {_Named: "class", _Record: "Vocabulary"}
    return kinds.get(type(value), type(value).__name__)


def _shown(name: object) -> str:
    """Show a name on one line; other values by their type, for they may be nested without end."""
    if not isinstance(name, str):
        return f"({_kind(name)})"
    return name[:80] if name.isprintable() else repr(name[:80])


def _python2_string(raw: bytes) -> str:
    """Python 2 kept bytes and no word about them: they are UTF-8, or else Latin-1."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _unescape(found: re.Match[bytes]) -> bytes:
    if found[1]:
        return bytes.fromhex(found[1].decode("ascii"))
    return found[2].translate(_CONTROL)


class _Reader:
    """A stack of plain values, what it remembers of them, and a place in the data."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self.data = data
        self.place = 0
        self.stack: list[object] = []
        self.marks: list[int] = []
        self.memo: dict[int, object] = {}

    def run(self) -> object:
        """Carry out the instructions up to the stop sign, return the value it stops with."""
        for _ in range(_MAX_STEPS):
            code = self.take(1)
            if code == b".":
                return self.pop()
            step = _STEPS.get(code)
            if step is None:
                raise self.unknown(code)
            step(self)
        raise self.wrong(f"has more than {_MAX_STEPS:,} pickle instructions, no vocabulary does")

    def wrong(self, problem: str) -> FileFormatError:
        return FileFormatError(self.path, problem)

    def unknown(self, code: bytes) -> FileFormatError:
        if self.place == 1:
            return self.wrong(f"starts with {code!r}, wanted SCAN's JSON or VSRN's pickle")
        names = {op.code: op.name for op in pickletools.opcodes}
        name = names.get(code.decode("latin-1"), repr(code))
        meaning = "a persistent id, " if "PERSID" in name else ""
        return self.wrong(f"refused: {meaning}pickle instruction {name}, no part of a vocabulary")

    # Reading the data.

    def take(self, count: int) -> bytes:
        taken = self.data[self.place : self.place + count]
        if len(taken) < count:
            raise self.wrong("is cut short, wanted a whole pickle")
        self.place += count
        return taken

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.place)
        if end < 0:
            raise self.wrong("is cut short, wanted a whole pickle")
        taken = self.data[self.place : end]
        self.place = end + 1
        return taken

    def number(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)

    def long(self) -> int:
        size = self.number(1)
        if size > 8:
            raise self.wrong(f"has a number of {size} bytes, wanted a word's id")
        return self.number(size, signed=True)

    def digits(self) -> int:
        text = self.line().removesuffix(b"L")
        if not _DIGITS.fullmatch(text):
            raise self.wrong(f"has {text[:20]!r} for a number, wanted a word's id")
        return int(text)

    def text(self, raw: bytes, encoding: str = "utf-8") -> str:
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            raise self.wrong(f"has the text {raw[:40]!r}, wanted {encoding}") from None

    def quoted_string(self) -> str:
        line = self.line()
        if len(line) < 2 or line[:1] not in (b"'", b'"') or line[:1] != line[-1:]:
            raise self.wrong(f"has the text {line[:40]!r}, wanted it in quotes")
        return _python2_string(_ESCAPE.sub(_unescape, line[1:-1]))

    # The stack.

    def push(self, value: object) -> None:
        self.stack.append(value)

    def pop(self) -> object:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise self.wrong("is not a well-formed pickle: it takes a value that is not there")
        return self.stack.pop()

    def last(self, count: int) -> list[object]:
        return [self.pop() for _ in range(count)][::-1]

    def since_mark(self) -> list[object]:
        if not self.marks:
            raise self.wrong(
                "is not a well-formed pickle: it goes back to a mark that is not there"
            )
        mark = self.marks.pop()
        values = self.stack[mark:]
        del self.stack[mark:]
        return values

    def store(self, index: int) -> None:
        value = self.pop()
        self.memo[index] = value
        self.push(value)

    def recall(self, index: int) -> None:
        if index not in self.memo:
            raise self.wrong(f"is not a well-formed pickle: it recalls value {index}, never stored")
        self.push(self.memo[index])

    # Dicts.

    def marked_dict(self) -> None:
        values = self.since_mark()
        self.push({})
        self.fill(values)

    def fill(self, values: list[object]) -> None:
        """Put keys and values, by turns in `values`, into the dict on top of the stack."""
        target = self.pop()
        if not isinstance(target, dict) or len(values) % 2:
            raise self.wrong(
                f"is not a well-formed pickle: it puts {len(values)} keys and values into "
                f"a {_kind(target)}"
            )
        for key in values[::2]:
            if not isinstance(key, str | int):
                raise self.wrong(f"has a dict key of type {_kind(key)}, wanted a word or a number")
        target.update(zip(values[::2], values[1::2], strict=True))
        self.push(target)

    # Names and the one object.

    def named(self, module: object, name: object) -> _Named:
        if name == "Vocabulary":
            return _Named.VOCABULARY
        if name == "_reconstructor" and module in ("copyreg", "copy_reg"):
            return _Named.REBUILD
        if name == "object" and module in ("builtins", "__builtin__"):
            return _Named.OBJECT
        raise self.wrong(
            f"refused: the pickle asks for {_shown(module)}.{_shown(name)}, "
            "wanted nothing but a class Vocabulary"
        )

    def record(self, what: object, arguments: list[object]) -> None:
        if what is not _Named.VOCABULARY or arguments:
            raise self.wrong(
                f"refused: the pickle calls a {_kind(what)} with {len(arguments)} arguments, "
                "wanted nothing but a plain Vocabulary"
            )
        self.push(_Record())

    def reduce(self) -> None:
        what, arguments = self.last(2)
        given = list(arguments) if isinstance(arguments, tuple) else [arguments]
        if what is _Named.REBUILD and given[1:] == [_Named.OBJECT, None]:
            what, given = given[0], []
        self.record(what, given)

    def new_object(self) -> None:
        what, arguments = self.last(2)
        self.record(what, list(arguments) if isinstance(arguments, tuple) else [arguments])

    def old_object(self) -> None:
        values = self.since_mark()
        self.record(values[0] if values else None, values[1:])

    def old_instance(self) -> None:
        what = self.named(self.text(self.line()), self.text(self.line()))
        self.record(what, self.since_mark())

    def build(self) -> None:
        target, state = self.last(2)
        if not isinstance(target, _Record) or not isinstance(state, dict):
            raise self.wrong(
                f"refused: the pickle fills a {_kind(target)} from a {_kind(state)}, "
                "wanted a Vocabulary and a dict"
            )
        target.attributes = state
        self.push(target)


# What each instruction does. Those of protocol 0 are letters with a line of text after them.
_STEPS: dict[bytes, Callable[[_Reader], object]] = {
    b"\x80": lambda r: r.take(1),  # the number of the protocol
    b"\x95": lambda r: r.take(8),  # the length of a frame
    b"(": lambda r: r.marks.append(len(r.stack)),
    b"N": lambda r: r.push(None),
    b"I": lambda r: r.push(r.digits()),
    b"L": lambda r: r.push(r.digits()),
    b"J": lambda r: r.push(r.number(4, signed=True)),
    b"K": lambda r: r.push(r.number(1)),
    b"M": lambda r: r.push(r.number(2)),
    b"\x8a": lambda r: r.push(r.long()),
    b"S": lambda r: r.push(r.quoted_string()),
    b"T": lambda r: r.push(_python2_string(r.take(r.number(4)))),
    b"U": lambda r: r.push(_python2_string(r.take(r.number(1)))),
    b"V": lambda r: r.push(r.text(r.line(), "raw-unicode-escape")),
    b"X": lambda r: r.push(r.text(r.take(r.number(4)))),
    b"\x8c": lambda r: r.push(r.text(r.take(r.number(1)))),
    b")": lambda r: r.push(()),
    b"t": lambda r: r.push(tuple(r.since_mark())),
    b"\x85": lambda r: r.push(tuple(r.last(1))),
    b"\x86": lambda r: r.push(tuple(r.last(2))),
    b"\x87": lambda r: r.push(tuple(r.last(3))),
    b"}": lambda r: r.push({}),
    b"d": _Reader.marked_dict,
    b"s": lambda r: r.fill(r.last(2)),
    b"u": lambda r: r.fill(r.since_mark()),
    b"p": lambda r: r.store(r.digits()),
    b"q": lambda r: r.store(r.number(1)),
    b"r": lambda r: r.store(r.number(4)),
    b"\x94": lambda r: r.store(len(r.memo)),
    b"g": lambda r: r.recall(r.digits()),
    b"h": lambda r: r.recall(r.number(1)),
    b"j": lambda r: r.recall(r.number(4)),
    b"c": lambda r: r.push(r.named(r.text(r.line()), r.text(r.line()))),
    b"\x93": lambda r: r.push(r.named(*r.last(2))),
    b"R": _Reader.reduce,
    b"\x81": _Reader.new_object,
    b"i": _Reader.old_instance,
    b"o": _Reader.old_object,
    b"b": _Reader.build,
}
