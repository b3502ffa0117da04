"""Damage and malice as Hypothesis strategies: a good file's bytes in, a bad file's bytes out.

Containers are opened and closed again, so that what is bad lies behind a checksum that is right:
members of zips, heads of safetensors and .npy files, signed lines of a store's log.
"""

import ast
import io
import json
import re
import struct
import zipfile
import zlib
from copy import deepcopy

import yaml
from hypothesis import strategies as st

DEEP = 3000
TOKENS = [
    b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"\t", b" ", b'"', b"'", b",",
    b"\xed\xa0\x80", b"\xe2\x80\xa8", b"{", b"}", b"[", b"]", b"[" * DEEP, b'{"a":' * DEEP,
    b"-1", b"0", b"1e999", b"NaN", b"-Infinity", b"9" * 5000, b"0x10", b"1_0", b"null", b"true",
    b"../../../../tmp/evil", b"/etc/passwd", b"..", b"/", b"\\", b"a" * 70_000, b"word " * 20_000,
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"&b;", b"<![CDATA[", b"-->", b"</annotation>", b"[/EN#1/x",
    b"!!python/object/apply:os.system [touch evil]", b"&a [*a]", b"<<: *a", b"? ", b"2001-99-99",
    b"cos\nsystem\n(S'touch evil'\ntR.", b"\x80\x05\x8c\x05posix\x8c\x06system\x93",
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 127, 255, 65_535, 1 << 31, (1 << 31) - 1, 1 << 32, (1 << 63) - 1, 1 << 63]
NUMBERS += [-(1 << 31), -(1 << 63), 1 << 80, 10**400, 0.5, -0.0, 1e-320, 1e308]
VALUES = [
    None, True, False, *NUMBERS, "", " ", "a", "0", "../../evil", "/etc/passwd", "a/b", "\0",
    "\ud800", "\u202e", "x" * 101_000, "<script>alert(1)</script>", [], {}, [[]], [{}], [None],
    {"": None}, [0] * 1000, {"__class__": "os.system"},
]  # fmt: skip
DTYPES = ["<f8", "<f2", "<i4", "|O", "|b1", "<U9999999", "|V8", "<M8[ns]", "<c16", "x", ">f4", ""]
SHAPES = [(), (0,), (-1,), (10**12,), (1 << 62, 1 << 62), (0, 36, 8), (1, 0, 4), (3,), (2, 3)]

_ROOM = st.integers(0, (1 << 16) - 1)  # a place, as a share of what there is


def _at(share: int, length: int) -> int:
    return share * length >> 16


@st.composite
def bad_bytes(draw, data: bytes) -> bytes:
    """Bytes that were flipped, cut, doubled, overwritten or grew a hostile piece."""
    for _ in range(draw(st.integers(1, 3))):
        start = _at(draw(_ROOM), len(data))
        how = draw(st.integers(0, 8))
        if how == 0 and data:
            flipped = data[start] ^ (1 << draw(st.integers(0, 7)))
            data = data[:start] + bytes([flipped]) + data[start + 1 :]
        elif how == 1:
            data = data[:start]
        elif how == 2:
            data = data[:start] + data[start + draw(st.integers(1, 40)) :]
        elif how == 3:
            data = data[:start] + draw(st.sampled_from(TOKENS)) + data[start:]
        elif how == 4:
            number = struct.pack("<q", draw(st.sampled_from(NUMBERS[:11])))
            piece = number[: draw(st.integers(1, 8))]
            data = data[:start] + piece + data[start + len(piece) :]
        elif how == 5:
            stop = start + draw(st.integers(1, 200))
            data = data[:stop] + data[start:]
        elif how == 6:
            data = _other_number(draw, data)
        elif how == 7:
            data = _other_line(draw, data)
        else:
            data = data[:start] + draw(st.binary(max_size=12)) + data[start:]
    return data


def _other_number(draw, data):
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", data[:200_000]))
    if not found:
        return data
    match = found[_at(draw(_ROOM), len(found))]
    text = str(draw(st.sampled_from(NUMBERS))).encode()
    return data[: match.start()] + text + data[match.end() :]


def _other_line(draw, data):
    lines = data.split(b"\n")
    one, other = (_at(draw(_ROOM), len(lines)) for _ in range(2))
    lines[one] = draw(st.sampled_from([lines[other], b"", lines[one] + b"\n" + lines[other]]))
    return b"\n".join(lines)


@st.composite
def bad_tree(draw, tree):
    """A JSON value some of whose parts were replaced, removed, wrapped or moved."""
    tree = json.loads(json.dumps(tree))
    for _ in range(draw(st.integers(1, 2))):
        places = list(_places(tree))
        if not places:
            return deepcopy(draw(st.sampled_from(VALUES)))
        parent, key = places[_at(draw(_ROOM), len(places))]
        how = draw(st.integers(0, 4))
        if how <= 1:
            parent[key] = deepcopy(draw(st.sampled_from(VALUES)))  # it may be changed in turn
        elif how == 2:
            del parent[key]
        elif how == 3:
            other, at = places[_at(draw(_ROOM), len(places))]
            parent[key] = json.loads(json.dumps(other[at]))
        elif isinstance(parent, dict):
            parent[draw(st.sampled_from(["", "x", "../x", "0", "-1"]))] = parent.pop(key)
        else:
            parent[key] = [parent[key]]
    return tree


def _places(tree):
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def bad_bytes_of(name: str, data: bytes):
    """A damaged version of a file, whatever it is."""
    return bad_bytes(data)


@st.composite
def bad_file(draw, name: str, data: bytes) -> bytes:
    """A bad version of a file, by what its name says it is."""
    inside = next((how for end, how in INSIDE.items() if name.endswith(end)), None)
    if inside is None or draw(st.integers(0, 2)) == 0:
        return draw(bad_bytes(data))
    return inside(draw, data)


def _json(draw, data):
    return json.dumps(draw(bad_tree(json.loads(data)))).encode()


def _yaml(draw, data):
    return json.dumps(draw(bad_tree(yaml.safe_load(data)))).encode()


def _jsonl(draw, data):
    lines = data.splitlines()
    row = _at(draw(_ROOM), len(lines))
    lines[row] = _json(draw, lines[row])
    return b"\n".join(lines) + b"\n"


def _log(draw, data):
    """A store's log: the line's checksum is right again."""
    lines = data.splitlines()
    row = _at(draw(_ROOM), len(lines))
    text = _json(draw, lines[row].partition(b" ")[2])
    lines[row] = b"%08x %s" % (zlib.crc32(text), text)
    return b"\n".join(lines) + b"\n"


# torch.save packs nothing, and most readers of zips refuse what zipfile inflates whole.
PACKED = (
    4 * [zipfile.ZIP_STORED] + 2 * [zipfile.ZIP_DEFLATED] + [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)


def _zip(draw, data):
    """Another content or another name for a member; checksums are right again."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        chosen = names[_at(draw(_ROOM), len(names))]
        how = draw(st.sampled_from(PACKED))
        for name in names:
            content, called = old.read(name), name
            if name == chosen:
                if draw(st.integers(0, 3)):
                    content = draw(bad_file(name, content))
                else:
                    called = draw(st.sampled_from(["../../evil", "/tmp/evil", "x", "a" * 300, "é"]))
            new.writestr(called, content, how)
    return out.getvalue()


def _safetensors(draw, data):
    """Another head, of which the length is right again."""
    (length,) = struct.unpack("<Q", data[:8])
    head = _json(draw, data[8 : 8 + length])
    return struct.pack("<Q", len(head)) + head + data[8 + length :]


def _npy(draw, data):
    """Another shape or type of numbers, in a header that is whole."""
    (length,) = struct.unpack("<H", data[8:10])
    head = ast.literal_eval(data[10 : 10 + length].decode("latin1"))
    key = draw(st.sampled_from(["descr", "shape", "fortran_order"]))
    kinds = {"descr": DTYPES, "shape": SHAPES, "fortran_order": [True, None, 3]}
    head[key] = draw(st.sampled_from(kinds[key]))
    text = (repr(head) + "\n").encode("latin1")
    return data[:8] + struct.pack("<H", len(text)) + text + data[10 + length :]


INSIDE = {
    "log.jsonl": _log,
    ".jsonl": _jsonl,
    ".json": _json,
    ".yaml": _yaml,
    ".zip": _zip,
    ".npz": _zip,
    ".npy": _npy,
    ".pth": _zip,
    ".pth.tar": _zip,
    ".pt": _zip,
    ".safetensors": _safetensors,
}
