"""The words of a text as a model reads them, for people who want to see what it did with each."""

from __future__ import annotations

from reprlib import repr as shown

from crossgaze.data.text.words import caption_words
from crossgaze.data.textfiles import MAX_SENTENCE_CHARS
from crossgaze.errors import InputError
from crossgaze.models.base import Model


def read_words(model: Model, name: str, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words that are read, and those of them that the model does not know.

    A word that is not known is read as <unk>, but stands here as it was written. A text without
    any known word is refused; a model of word pieces knows every word.

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
        return tuple(model.text.tokens(text)), ()
    unknown = vocabulary.unknown_words(text)
    words = caption_words(text)
    if not any(word not in unknown for word in words if any(map(str.isalnum, word))):
        raise InputError(f"{name}: the model knows no word of {shown(text)}")
    return ("<start>", *words, "<end>"), unknown
