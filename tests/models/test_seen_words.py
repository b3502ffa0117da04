"""The words of training captions, kept beside a model that reads by a BERT."""

import pytest

from crossgaze.errors import InputError
from crossgaze.models.pretrained import load
from crossgaze.models.seen_words import FILE, words_of
from model_parts import bert_vse


@pytest.fixture
def model(tmp_path):
    return bert_vse(tmp_path / "bert")


def test_words_are_kept_beside_the_model_and_read_again(model, tmp_path):
    model.text.seen = words_of(["A red Dog's cats!", "dogs"])
    model.save_pretrained(tmp_path / "m")
    assert (tmp_path / "m" / FILE).read_text() == "'s\na\ncats\ndog\ndogs\nred\n"
    again = load(tmp_path / "m")
    assert again.text.seen == model.text.seen
    again.text.seen = None
    again.save_pretrained(tmp_path / "m")  # and gone with a save that knows of none
    assert not (tmp_path / "m" / FILE).exists()
    assert load(tmp_path / "m").text.seen is None


def test_a_word_is_unknown_if_it_was_not_seen_and_is_pieces_of_none(model):
    words = ("dog", "dogs", "cats", "xyzzy", "red-zebra", "red-zebras")
    assert all(map(model.text.knows, words))  # nobody wrote down what it has seen
    model.text.seen = frozenset({"a", "dogs"})
    # [UNK] is the hyphen's, of which this small BERT has none.
    known = [model.text.knows(word) for word in words]
    assert known == [True, True, False, False, False, False]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe", "is not UTF-8 text"), (b"a\n" * (9 << 20), "bytes, a model's words may have")],
)
def test_a_damaged_file_is_named(model, tmp_path, content, message):
    model.save_pretrained(tmp_path / "m")
    (tmp_path / "m" / FILE).write_bytes(content)
    with pytest.raises(InputError, match=rf"words.txt.*{message}"):
        load(tmp_path / "m")
