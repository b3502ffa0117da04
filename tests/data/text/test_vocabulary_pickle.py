"""Python's own pickler writes the files and its unpickler reads them: two oracles."""

import functools
import io
import os
import pickle
import struct
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.data.text import vocabulary_pickle
from crossgaze.data.text.vocabulary_pickle import read_vocabulary_pickle
from crossgaze.errors import FileFormatError, InputError

PATH = Path("vocab.pkl")


@pytest.fixture(autouse=True, scope="module")
def public_module():
    """A module `vocab` with the class that the public code pickles."""
    vocab = types.ModuleType("vocab")
    vocab.Vocabulary = type("Vocabulary", (), {"__module__": "vocab"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "vocab", vocab)
        yield vocab


def vocabulary(words, **more):
    found = sys.modules["vocab"].Vocabulary()
    found.word2idx = {word: i for i, word in enumerate(words)}
    found.idx2word = dict(enumerate(words))
    found.idx = len(words)
    found.__dict__.update(more)
    return found


def read(data):
    return read_vocabulary_pickle(PATH, data)


def refused(data, *parts):
    with pytest.raises(InputError) as caught:
        read(data)
    message = str(caught.value)
    assert message.startswith("vocab.pkl: ")
    assert "\n" not in message
    for part in parts:
        assert part in message
    return message


protocols = pytest.mark.parametrize("protocol", range(6))


@protocols
@settings(max_examples=25, deadline=None)
@given(words=st.lists(st.text(), unique=True, max_size=8))
def test_pickles_of_python_3(protocol, words):
    asked = vocabulary(words)
    assert read(pickle.dumps(asked, protocol)) == vars(asked)


@protocols
def test_many_words_and_every_size_of_id(protocol):
    words = [f"word {i}" for i in range(300)]
    asked = vocabulary(words, before=-1, two=65_535, four=65_536, eight=1 << 40)
    assert read(pickle.dumps(asked, protocol)) == vars(asked)


# What Python 2 wrote for Vocabulary(word2idx={'a': 0, u'\xe9': 1}, idx2word=..., idx=2).
PYTHON_2 = {
    "new class, protocol 0": (
        b"ccopy_reg\n_reconstructor\np0\n(cvocab\nVocabulary\np1\nc__builtin__\nobject\np2\nNtp3\n"
        b"Rp4\n(dp5\nS'idx'\np6\nI2\nsS'word2idx'\np7\n(dp8\nS'a'\np9\nI0\nsV\xe9\np10\nI1\nss"
        b"S'idx2word'\np11\n(dp12\nI0\ng9\nsL1L\ng10\nssb."
    ),
    "new class, protocol 1": (
        b"ccopy_reg\n_reconstructor\nq\x00(c__main__\nVocabulary\nq\x01c__builtin__\nobject\nq\x02N"
        b"tq\x03Rq\x04}q\x05(U\x03idxq\x06K\x02U\x08word2idxq\x07}q\x08(U\x01aq\tK\x00X\x02\x00\x00"
        b"\x00\xc3\xa9q\nK\x01uU\x08idx2wordq\x0b}q\x0c(K\x00h\tK\x01h\nuub."
    ),
    "new class, protocol 2": (
        b"\x80\x02cvocab\nVocabulary\nq\x00)\x81q\x01}q\x02(U\x03idxq\x03K\x02U\x08word2idxq\x04}"
        b"q\x05(T\x01\x00\x00\x00aq\x06J\x00\x00\x00\x00X\x02\x00\x00\x00\xc3\xa9q\x07M\x01\x00uU"
        b"\x08idx2wordq\x08}q\t(K\x00h\x06\x8a\x01\x01r\x0a\x00\x00\x00j\x07\x00\x00\x00uub."
    ),
    "old class, protocol 0": (
        b"(ivocab\nVocabulary\np0\n(dp1\nS'idx'\np2\nI2\nsS'word2idx'\n(dS'a'\nI0\nsV\\u00e9\n"
        b"I1\nssS'idx2word'\n(I0\nS\"a\"\nI1\nV\xe9\ndsb."
    ),
    "old class, protocol 2": (
        b"\x80\x02(cvocab\nVocabulary\nq\x00oq\x01}q\x02(U\x03idxq\x03K\x02U\x08word2idx}(U\x01a"
        b"K\x00X\x02\x00\x00\x00\xc3\xa9K\x01uU\x08idx2word}(K\x00U\x01aK\x01X\x02\x00\x00\x00"
        b"\xc3\xa9uub."
    ),
}


@pytest.mark.parametrize("name", PYTHON_2)
def test_pickles_of_python_2(name, public_module, monkeypatch):
    found = read(PYTHON_2[name])
    assert found == {"idx": 2, "word2idx": {"a": 0, "\xe9": 1}, "idx2word": {0: "a", 1: "\xe9"}}
    # Python's own unpickler agrees, so the bytes above are what they claim to be.
    monkeypatch.setattr(sys.modules["__main__"], "Vocabulary", public_module.Vocabulary, False)
    assert vars(pickle.loads(PYTHON_2[name], encoding="latin-1")) == found


@settings(max_examples=100, deadline=None)
@given(raw=st.binary(max_size=20))
def test_strings_of_python_2_are_utf8_or_latin1(raw):
    try:
        wanted = raw.decode("utf-8")
    except UnicodeDecodeError:
        wanted = raw.decode("latin-1")
    quoted = repr(raw)[1:].encode()  # as Python 2 writes a str
    for code in (b"S" + quoted + b"\n", b"U" + bytes([len(raw)]) + raw):
        assert read(b"(ivocab\nVocabulary\n(dU\x04word" + code + b"sb.") == {"word": wanted}


class Evil:
    def __init__(self, call, *arguments):
        self.how = (call, arguments)

    def __reduce__(self):
        return self.how


@protocols
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "inside"])
def test_nothing_is_called(protocol, inside, tmp_path):
    target = str(tmp_path / "made")
    for call, arguments, name in [
        (os.mkdir, (target,), ".mkdir"),
        (os.system, (f"touch {target}",), ".system"),
        (eval, (f"open({target!r}, 'w')",), ".eval"),
        (functools.partial(open, target, "w"), (), "functools.partial"),
        (getattr, (os, "mkdir"), ".getattr"),
    ]:
        evil = Evil(call, *(a for a in arguments if a is not os))
        asked = vocabulary(["a"], idx=evil) if inside else evil
        message = refused(pickle.dumps(asked, protocol), "refused", name)
        assert "wanted nothing but a class Vocabulary" in message
    assert not Path(target).exists()


@protocols
def test_foreign_values_are_named(protocol):
    for value, name in (
        (vocabulary(["a"], idx=np.int64(1)), "numpy"),
        (np.arange(3), "numpy"),
        (vocabulary(["a"], idx=types.SimpleNamespace()), "Namespace"),
    ):
        assert name in refused(pickle.dumps(value, protocol))


def test_persistent_ids_are_refused():
    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return "word" if value == "a" else None

    for protocol in (0, 4):
        file = io.BytesIO()
        Pickler(file, protocol).dump(vocabulary(["a"]))
        assert "persistent id" in refused(file.getvalue())


OPEN = b"\x80\x02cvocab\nVocabulary\n"


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (b"", ["cut short"]),
        (b"cvocab", ["cut short"]),
        (b"\x80\x02U\x09abc.", ["cut short"]),
        (b"\x89PNG", [r"starts with b'\x89'", "JSON", "pickle"]),
        (b"\x80\x02}.", ["holds a dict", "class Vocabulary"]),
        (OPEN + b".", ["holds a class"]),
        (b"\x80\x04N\xff.", ["instruction b'\\xff'"]),
        (b"\x80\x02\x82\x01.", ["EXT1"]),
        (b"\x80\x02]q\x00.", ["EMPTY_LIST"]),
        (b"\x80\x02.", ["takes a value that is not there"]),
        (b"\x80\x02(.", ["takes a value that is not there"]),
        (b"\x80\x02t.", ["mark that is not there"]),
        (b"\x80\x02h\x05.", ["recalls value 5"]),
        (b"\x80\x02}(K\x01u.", ["puts 1 keys and values into a dict"]),
        (b"\x80\x02NK\x01K\x02s.", ["into a NoneType"]),
        (b"\x80\x02}}K\x02s.", ["dict key of type dict"]),
        (OPEN + b")\x81K\x01b.", ["fills a Vocabulary from a int"]),
        (OPEN + b"}b.", ["fills a class from a dict"]),
        (OPEN + b"K\x01\x85\x81.", ["calls a class with 1 arguments"]),
        (OPEN + b")R.", []),
        (OPEN + b"NR.", ["calls a class with 1 arguments"]),
        (OPEN + b"N\x81.", ["calls a class with 1 arguments"]),
        (b"\x80\x02U\x01a)R.", ["calls a str"]),
        (b"\x80\x02(o.", ["calls a NoneType"]),
        (b"\x80\x02(cvocab\nVocabulary\nK\x01o.", ["with 1 arguments"]),
        (b"(I1\nivocab\nVocabulary\n.", ["with 1 arguments"]),
        (b"(ios\nsystem\n.", ["os.system"]),
        (
            b"ccopy_reg\n_reconstructor\n(cvocab\nVocabulary\nc__builtin__\nobject\nI1\ntR.",
            ["calls"],
        ),
        (
            b"ccopy_reg\n_reconstructor\n(c__builtin__\nobject\nc__builtin__\nobject\nNtR.",
            ["calls"],
        ),
        (b"ccopy_reg\n_reconstructor\n(tR.", ["calls a class with 0 arguments"]),
        (b"ccopy_reg\n__newobj__\n.", ["copy_reg.__newobj__"]),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", ["os.system"]),
        (b"\x80\x04K\x01\x8c\x06sys\ntm\x93.", [r"(int).'sys\ntm'"]),
        (b"\x80\x04\x8c\x02os" + b")" + b"\x85" * 50_000 + b"\x93.", ["os.(tuple)"]),
        (b"c\xff\nVocabulary\n.", ["wanted utf-8"]),
        (b"(dV\\u12\nI1\ns.", ["raw-unicode-escape"]),
        (b"(dSabc\nI1\ns.", ["wanted it in quotes"]),
        (b"I" + b"9" * 10_000 + b"\n.", ["for a number"]),
        (b"Iten\n.", ["b'ten' for a number"]),
        (b"\x80\x02\x8a\x09" + b"1" * 9 + b".", ["a number of 9 bytes"]),
    ],
)
def test_what_else_is_refused(data, parts):
    if parts:
        refused(data, *parts)
    else:
        assert read(data) == {}


def test_bombs_do_not_fill_the_memory():
    # A memo index of four thousand million makes Python's own unpickler ask for 64 GB.
    assert read(OPEN + b")\x81r" + struct.pack("<I", 0xFFFFFFFF) + b".") == {}
    refused(b"\x80\x04\x8d" + struct.pack("<Q", 1 << 60) + b"a.", "BINUNICODE8")
    refused(b"\x80\x02T\xff\xff\xff\x7fa.", "cut short")
    start = time.process_time()
    refused(b"\x80\x02)" + b"\x85" * 100_000 + b".", "holds a tuple")
    assert time.process_time() - start < 10


def test_instructions_are_counted(monkeypatch):
    monkeypatch.setattr(vocabulary_pickle, "_MAX_STEPS", 100)
    refused(b"\x80\x02" + b"N" * 99 + b".", "more than 100 pickle instructions")
    assert read(OPEN + b")\x81" + b"q\x00" * 90 + b".") == {}


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_damaged_pickles_are_read_or_refused(data):
    whole = data.draw(
        st.sampled_from(
            [*PYTHON_2.values(), *(pickle.dumps(vocabulary(["a"]), p) for p in range(6))]
        )
    )
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(whole)))
    for tried in (bytes(damaged), whole[:end], bytes(damaged[:end])):
        try:
            assert isinstance(read(tried), dict)
        except FileFormatError:
            continue
