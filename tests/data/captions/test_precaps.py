import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.data.captions.precaps import MAX_TOKEN, read_precaps
from crossgaze.errors import FileFormatError, InputError


def put(folder, text):
    path = folder / "dev_precaps.txt"
    path.write_bytes(text.encode())
    return path


@given(
    st.lists(st.lists(st.integers(0, MAX_TOKEN), min_size=1, max_size=6), min_size=1, max_size=8),
    st.sampled_from([",", ", "]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_every_id_comes_back(tmp_path_factory, captions, comma, end):
    text = "".join(comma.join(map(str, caption)) + end for caption in captions)
    path = put(tmp_path_factory.mktemp("precaps"), text)
    assert read_precaps(path) == [tuple(caption) for caption in captions]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "the caption is blank, and leaving it out would shift all that follow"),
        ("1,,2", "token 2 is '', wanted a whole number from 0"),
        ("1,a cat", "token 2 is 'a cat', wanted a whole number from 0"),
        ("1,-2", "token 2 is '-2', wanted"),
        ("1.5", "token 1 is '1.5', wanted"),
        ("\u0663", "token 1 is '\u0663', wanted"),
        ("1 2", "token 1 is '1 2', wanted"),
        ("9" * 5000, "token 1 is '99999999999999999999', wanted"),
        ("10000001", "token 1 is 10000001, 10,000,000 is the most"),
        ("1," * 50_001, "has 100,002 characters, 100,000 are the most"),
    ],
)
def test_bad_lines_are_named(tmp_path, line, message):
    with pytest.raises(FileFormatError) as caught:
        read_precaps(put(tmp_path, f"1,2\n{line}\n3\n"))
    assert f"dev_precaps.txt, line 2: {message}" in str(caught.value)


def test_nothing_to_read(tmp_path):
    with pytest.raises(FileFormatError, match=r"dev_precaps.txt: holds no caption"):
        read_precaps(put(tmp_path, ""))
    with pytest.raises(InputError, match=r"no such file, wanted captions as comma-separated"):
        read_precaps(tmp_path / "none.txt")
