"""The words of a text as a model reads them."""

import pytest

from crossgaze.errors import InputError
from crossgaze.models.reading import read_words
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig
from evaluation_parts import model
from model_parts import save_bert


def test_words_stand_as_they_were_written_with_the_models_marks():
    words, unknown = read_words(model(), "text", "Two pups, zork!")
    assert words == ("<start>", "two", "pups", ",", "zork", "!", "<end>")
    assert unknown == (",", "zork", "!")
    assert len(words) == len(model().text.tokenize("Two pups, zork!"))


@pytest.mark.parametrize("text", ["", "  ", None, 3])
def test_a_text_without_a_word_is_refused(text):
    with pytest.raises(InputError, match=r"caption: .* has no word in it"):
        read_words(model(), "caption", text)


def test_a_text_of_unknown_words_is_refused():
    with pytest.raises(InputError, match="text: the model knows no word of 'zork blah'"):
        read_words(model(), "text", "zork blah")


def test_words_of_a_bert_are_unknown_that_no_caption_and_no_piece_of_one_is(tmp_path):
    save_bert(tmp_path, ("a", "dog", "xy", "##zzy", "runs", "'", "s", "."))
    config = VseConfig(region_width=8, size=8, text=TextConfig(kind="bert", bert=str(tmp_path)))
    matcher = Vse(config)
    text = "A xyzzy's dog runs \u2603."
    read, unknown = read_words(matcher, "text", text)
    assert read == ("[CLS]", "a", "xy", "##zzy", "'", "s", "dog", "runs", "[UNK]", ".", "[SEP]")
    assert unknown == ()  # nobody wrote down what it has seen
    with pytest.raises(InputError, match="text: the model knows no word of"):
        read_words(matcher, "text", "\u2603")
    matcher.text.seen = frozenset({"a"})
    assert read_words(matcher, "text", text) == (read, ("xyzzy",))
    for strange in ("xyzzy xyzzy", "\u2603"):
        with pytest.raises(InputError, match="text: the model knows no word of"):
            read_words(matcher, "text", strange)


def test_a_million_words_are_refused_before_they_are_read():
    with pytest.raises(InputError, match="caption: has 5,000,000 characters, 100,000 are the most"):
        read_words(model(), "caption", "word " * 1_000_000)
