import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze import memory
from crossgaze.data import textfiles
from crossgaze.data.textfiles import (
    kind_of,
    name_problem,
    read_bytes,
    read_json,
    read_jsonl,
    read_lines,
    read_table,
    read_text,
    sentence_problem,
)
from crossgaze.errors import FileFormatError, InputError

COLUMNS = {"image": ("image", "file"), "caption": ("caption", "text")}


def put(tmp_path, content, name="file.txt"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def table(path):
    return read_table(path, "a table", COLUMNS, {"split": ("split",)})


def test_lines_end_at_newlines_only(tmp_path):
    path = put(tmp_path, "\ufeffone\r\ntwo\u2028still two\x0b\x85\n\nfour")
    assert read_lines(path, "x") == ["one", "two\u2028still two\x0b\x85", "", "four"]
    assert read_lines(put(tmp_path, "a\n\n"), "x") == ["a", ""]
    assert read_lines(put(tmp_path, ""), "x") == []


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_bad_bytes_name_their_line(tmp_path, mark):
    path = put(tmp_path, mark + b"one\ntwo\nthr\xff\xffee\n")
    with pytest.raises(FileFormatError, match=r"file.txt, line 3: is not UTF-8 text \(byte 0xff\)"):
        read_text(path, "x")


@pytest.mark.parametrize(
    "value",
    [
        *([[]] * 999, [{"a": {}}] * 999, ["a\u00e9"] * 999, [1.5, 2, -3] * 333, {"a": "b" * 9999}),
        # One wide character makes a text take two or four bytes for each of its others.
        *({"a": "\u2019" + "b" * 9999}, {"a": "\U0001f600" + "b" * 9999}),
        [["\U0001f600" + "b" * 99]] * 99,
    ],
)
@pytest.mark.parametrize("escaped", [True, False])
def test_json_whose_values_would_not_fit_is_refused_before_they_are_made(
    tmp_path, monkeypatch, value, escaped
):
    text = json.dumps(value, ensure_ascii=escaped)
    path = put(tmp_path, text)
    monkeypatch.setattr(textfiles, "LARGE_TEXT", 100)
    tracemalloc.start()
    made = json.loads(text)
    took, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read_json(path, "x") == made == value
    # With just as much memory as the values take it is refused: it is reckoned at no less.
    monkeypatch.setattr(memory, "free_bytes", lambda: took)
    with pytest.raises(InputError, match=r"file.txt: [\d,]+ characters of JSON need .* split the"):
        read_json(path, "x")
    monkeypatch.setattr(memory, "free_bytes", lambda: 12 * took + 10 * len(text))
    assert read_json(path, "x") == value


def test_lines_that_would_not_fit_are_refused_before_they_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(textfiles, "LARGE_TEXT", 100)
    path = put(tmp_path, "ab\n" * 999)
    tracemalloc.start()
    made = read_lines(path, "x")
    took, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made == ["ab"] * 999
    monkeypatch.setattr(memory, "free_bytes", lambda: took)
    with pytest.raises(InputError, match=r"file.txt: 2,997 characters of text need .* split the"):
        read_lines(path, "x")


def test_json_lines_that_would_not_fit_are_refused_before_they_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(textfiles, "LARGE_TEXT", 100)
    path = put(tmp_path, '{"a": [[],[],[],[]]}\n' * 99)  # no line of which is large
    assert len(list(read_jsonl(path, "x"))) == 99
    monkeypatch.setattr(memory, "free_bytes", lambda: 50_000)
    with pytest.raises(InputError, match=r"file.txt: 2,079 characters of JSON need .* split the"):
        list(read_jsonl(path, "x"))


def test_a_line_of_a_table_that_is_megabytes_long_is_refused(tmp_path):
    names = {"image": ["image"], "caption": ["caption"]}
    for text, line in (("image,caption\n" + "," * 1_000_001, 2), ("," * 1_000_001, 1)):
        path = put(tmp_path, text)
        says = rf"file.txt, line {line}: has 1,000,001 characters, wanted 1,000,000 at most"
        with pytest.raises(FileFormatError, match=says):
            read_table(path, "captions", names, {})


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no such file, wanted captions"):
        read_bytes(tmp_path / "none", "captions")
    with pytest.raises(InputError, match="is a folder, wanted captions"):
        read_bytes(tmp_path, "captions")
    path = put(tmp_path, "12345")
    monkeypatch.setattr(textfiles, "MAX_FILE_BYTES", 5)
    assert read_bytes(path, "captions") == b"12345"
    monkeypatch.setattr(textfiles, "MAX_FILE_BYTES", 4)
    with pytest.raises(InputError, match="has 5 bytes, captions may have 4 at most"):
        read_bytes(path, "captions")


def test_a_file_that_may_not_be_opened(tmp_path, monkeypatch):
    path = put(tmp_path, "x")

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "read_bytes", refuse)
    with pytest.raises(InputError, match=r"file.txt: cannot be read: Permission denied"):
        read_text(path, "x")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_json_comes_back(tmp_path_factory, value):
    path = put(tmp_path_factory.mktemp("json"), json.dumps(value))
    assert read_json(path, "x") == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "b": }', "line 2: is not JSON: Expecting value at column 7"),
        ("", "line 1: is not JSON: Expecting value at column 1"),
        ('{"a": 1, "b": 2, "a": 1}', "is not usable JSON: the key 'a' occurs twice in one object"),
        ('{"a": NaN}', "is not usable JSON: NaN is not a JSON number"),
        ("[-Infinity]", "is not usable JSON: -Infinity is not a JSON number"),
        ("[" * 100_000, "is not usable JSON: nested too deeply"),
        ("9" * 5_000, "is not usable JSON: Exceeds the limit"),
    ],
)
def test_json_problems_are_one_line(tmp_path, text, message):
    with pytest.raises(FileFormatError) as caught:
        read_json(put(tmp_path, text), "x")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_json_lines(tmp_path):
    path = put(tmp_path, '\ufeff{"a": 1}\r\n\n{"b": [2]}')
    assert list(read_jsonl(path, "x")) == [(1, {"a": 1}), (3, {"b": [2]})]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "line 2: is a list, wanted an object {...}"),
        ('{"a": 1', "line 2: is not JSON: Expecting ',' delimiter at column 8"),
        ('{"a": 1, "a": 2}', "line 2: is not usable JSON: the key 'a' occurs twice"),
        ("[" * 100_000, "line 2: is not usable JSON: nested too deeply"),
    ],
)
def test_json_line_problems_name_the_line(tmp_path, line, message):
    with pytest.raises(FileFormatError) as caught:
        list(read_jsonl(put(tmp_path, '{"a": 1}\n' + line), "x"))
    assert message in str(caught.value)


@pytest.mark.parametrize("mark", [",", "\t", ";", "|"])
def test_each_delimiter(tmp_path, mark):
    text = f'\ufeffFile{mark} Text {mark}n\r\na.jpg{mark}"one{mark} ""two"""{mark}7\r\n'
    got = table(put(tmp_path, text))
    assert got.rows == [(2, {"image": "a.jpg", "caption": f'one{mark} "two"'})]
    assert got.unread == ("n",)


def test_rows_count_physical_lines(tmp_path):
    text = 'image,caption,split\n\na,"one\nline\nmore",dev\n , ,\nb,two,\n'
    assert table(put(tmp_path, text)).rows == [
        (3, {"image": "a", "caption": "one\nline\nmore", "split": "dev"}),
        (7, {"image": "b", "caption": "two", "split": ""}),
    ]


def test_old_line_ends(tmp_path):
    assert table(put(tmp_path, "image,caption\ra,one\rb,two\r")).rows == [
        (2, {"image": "a", "caption": "one"}),
        (3, {"image": "b", "caption": "two"}),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.jpg,one\n", "line 1: starts with 'a.jpg,one', wanted a header with the columns "
         "image/file and caption/text, separated by comma or tab or semicolon or bar"),
        ("", "line 1: starts with ''"),
        ("x" * 200_000, "line 1: starts with 'xxx"),
        ("image,caption,file\n", "line 1: has the columns 'image' and 'file', both mean image"),
        ("image,caption\na,one, two\n", "line 2: has 3 fields, the header has 2 (a field that "
         'holds a comma must stand in "quotes")'),
        ("image,caption\na,one\nb\n", "line 3: has 1 fields, the header has 2"),
        ('image,caption\na,one\nb,"two\n\n', "line 3: is not a table: unexpected end of data"),
        ('image,caption\na,"one" x\n', "line 2: is not a table: ',' expected after '\"'"),
        ("image,caption\na," + "x" * 200_000, "line 2: is not a table: field larger than"),
    ],
)  # fmt: skip
def test_table_problems_name_the_line(tmp_path, text, message):
    with pytest.raises(FileFormatError) as caught:
        table(put(tmp_path, text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_kinds_in_words():
    values = ({}, [], "", True, 1, 1.5, None, ())
    assert [kind_of(value) for value in values] == [
        "an object",
        "a list",
        "a text",
        "true or false",
        "a number",
        "a number",
        "null",
        "tuple",
    ]


@pytest.mark.parametrize("text", ["A cat .", " 猫 \u2028 ", "x" * 100_000])
def test_good_sentences(text):
    assert sentence_problem(text) is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "is a number, wanted a text"),
        ("", "is blank"),
        (" \t\u3000\xa0", "is blank"),
        ("x" * 100_001, "has 100,001 characters, 100,000 are the most"),
        ("half \ud83d of", "holds half of a character (a lone surrogate)"),
    ],
)
def test_bad_sentences(value, message):
    assert sentence_problem(value) == message


@pytest.mark.parametrize(
    "name", ["a.jpg", "val2014/a b.jpg", "猫\u202f1.png", "a..b.jpg", "...", "x" * 255, ".hidden"]
)
def test_good_names(name):
    assert name_problem(name) is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "is null, wanted a text"),
        ("  ", "is blank"),
        ("a\x00b", "a character that no file name should"),
        ("a\nb", "a character that no file name should"),
        ("a\udc80", "a character that no file name should"),
        ("/etc/passwd", "an absolute path"),
        ("\\\\server\\x", "an absolute path"),
        ("C:\\x.jpg", "an absolute path"),
        ("a/../b", "leads out of its folder"),
        ("a\\..\\b", "leads out of its folder"),
        ("..", "leads out of its folder"),
        ("é" * 128, "too long for a file name"),
        ("a/" * 501, "too long for a file name"),
    ],
)
def test_bad_names(value, message):
    problem = name_problem(value)
    assert message in problem
    assert "\n" not in problem
