"""The words of a text as a model reads them, for people who want to see what it did with each."""

from __future__ import annotations

from reprlib import repr as shown

from crossgaze.data.text.words import caption_words
from crossgaze.data.textfiles import MAX_SENTENCE_CHARS
from crossgaze.errors import InputError
from crossgaze.models.base import Model
from crossgaze.models.pieces import join_pieces


def read_words(model: Model, name: str, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words that are read, and those of them that the model does not know.

    A word that is not known is read as <unk>, or in pieces, but stands here as it was written. A
    text without any known word is refused. What a model of word pieces knows says its `words.txt`;
    without one it knows every word.

    Args:
        model: any.
        name: what the text is to the caller ("question", "sentence"), for the refusal.
        text: in words.
    """
    if isinstance(text, str) and len(text) > MAX_SENTENCE_CHARS:
        raise InputError(
            f"{name}: has {len(text):,} characters, {MAX_SENTENCE_CHARS:,} are the most"
        )
    if not isinstance(text, str) or not model.text.tokenize(text):
        raise InputError(f"{name}: {shown(text)} has no word in it")
    vocabulary = model.vocabulary
    if vocabulary is None:
        read = tuple(model.text.tokens(text))
        words = join_pieces(read)[0][1:-1]  # without the marks of beginning and end
        strange = {word for word in words if _is_said(word) and not model.text.knows(word)}
        unknown = tuple(word for word in dict.fromkeys(words) if word in strange)
    else:
        words = tuple(caption_words(text))
        read, unknown = ("<start>", *words, "<end>"), vocabulary.unknown_words(text)
    if not any(_is_said(word) and word not in unknown for word in words):
        raise InputError(f"{name}: the model knows no word of {shown(text)}")
    return read, unknown


def _is_said(word: str) -> bool:
    return word != "[UNK]" and any(map(str.isalnum, word))
