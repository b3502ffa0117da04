"""The words of a model's training captions, for one that reads by a BERT and has no vocabulary.

A BERT reads any text, in pieces where it has no word for it; whether the model has ever met a word
in a caption it cannot tell. `words.txt` in the model's folder can: one word a line, optional.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from crossgaze.data.text.words import caption_words
from crossgaze.data.textfiles import MAX_HEAD_BYTES, read_text
from crossgaze.files import write_atomically

FILE = "words.txt"


def words_of(captions: Iterable[str]) -> frozenset[str]:
    """Return the lower-cased words of captions; marks alone are none.

    Example:
        >>> sorted(words_of(["A dog runs.", "a dog's hat"]))
        ["'s", 'a', 'dog', 'hat', 'runs']
    """
    every = {word for caption in captions for word in caption_words(caption)}
    return frozenset(word for word in every if any(map(str.isalnum, word)))


def write_words(folder: Path, words: Iterable[str]) -> None:
    """Write `words.txt` into a model's folder."""
    write_atomically(folder / FILE, "".join(f"{word}\n" for word in sorted(words)))


def read_words_file(folder: Path) -> frozenset[str] | None:
    """Return the words of a model's folder, None where it has no such file."""
    path = folder / FILE
    if not path.is_file():
        return None
    return frozenset(read_text(path, "a model's words", MAX_HEAD_BYTES).split())
