"""The errors that users meet."""

import pickle

import pytest

from crossgaze.errors import (
    FileFormatError,
    InputError,
    MissingExtraError,
    nearest,
    require_file,
    require_folder,
)


@pytest.mark.parametrize(
    "error",
    [
        InputError("size: got 0, wanted 1 or more"),
        FileFormatError("a.txt", "has no tab", line=3),
        FileFormatError("a.txt", "is empty"),
        MissingExtraError("the demo", "skimage", "demo"),
        InputError("two\nlines"),
        FileFormatError("a\nb.txt", "has\x1b[31m"),
    ],
)
def test_errors_come_back_from_another_process_as_they_were(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert getattr(again, "line", None) == getattr(error, "line", None)


def test_what_a_path_should_have_been_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    assert require_file(tmp_path / "file", "captions") == tmp_path / "file"
    assert require_folder(str(tmp_path), "photographs") == tmp_path
    with pytest.raises(InputError, match="is a folder, wanted captions"):
        require_file(tmp_path, "captions")
    with pytest.raises(InputError, match="no such file, wanted captions"):
        require_file(tmp_path / "no", "captions")
    with pytest.raises(InputError, match="is a file, wanted photographs"):
        require_folder(tmp_path / "file", "photographs")
    with pytest.raises(InputError, match="no such folder, wanted photographs"):
        require_folder(tmp_path / "no", "photographs")


def test_the_nearest_name_is_offered_only_if_it_is_near():
    assert nearest("backbon", ["backbone", "grid"]) == " (did you mean 'backbone'?)"
    assert nearest("zzz", ["backbone", "grid"]) == ""


@pytest.mark.parametrize(
    "sign", ["\n", "\r", "\x1b[2J", "\u2028", "\u202e", "\ud800", "\0", "\x9b"]
)
def test_a_message_is_one_line_that_no_terminal_obeys(sign):
    for error in (InputError(f"name: got 'a{sign}b'"), FileFormatError(f"{sign}.txt", "is odd")):
        assert len(str(error).splitlines()) == 1
        assert sign[0] not in str(error)
        str(error).encode()


def test_what_people_write_stays_as_it_is():
    text = "Fotos/Übersicht 猫 🐈.jpg: ist größer"
    assert str(InputError(text)) == text
