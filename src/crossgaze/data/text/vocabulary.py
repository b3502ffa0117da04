"""Words and their numbers: built from training captions, kept in the public code's own files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from reprlib import repr as shown
from typing import SupportsIndex

from crossgaze.data.text.vocabulary_pickle import read_vocabulary_pickle
from crossgaze.data.text.words import caption_words
from crossgaze.data.textfiles import read_bytes, read_json
from crossgaze.errors import FileFormatError, InputError, require_file
from crossgaze.files import write_atomically

PAD, START, END, UNKNOWN = range(4)
SPECIAL_WORDS = ("<pad>", "<start>", "<end>", "<unk>")
MAX_FILE_BYTES = 256 << 20
_WHAT = "a vocabulary (SCAN's JSON or VSRN's pickle)"


@dataclass(frozen=True, repr=False)
class Vocabulary:
    """The words that a model knows; the id of a word is its place.

    Args:
        words: (V,) the four special words (`<pad>` 0, `<start>` 1, `<end>` 2, `<unk>` 3), then
            all others, each once.

    Example:
        >>> vocabulary = Vocabulary.build(["A dog runs.", "The dog sits."], min_count=2)
        >>> vocabulary.words[4:]
        ('dog', '.')
        >>> vocabulary.encode("Dog barks.")
        [1, 4, 3, 5, 2]
    """

    words: tuple[str, ...]
    _ids: dict[str, int] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        words = tuple(self.words)
        problem = _words_problem(words)
        if problem:
            raise InputError(f"vocabulary: {problem}")
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "_ids", {word: i for i, word in enumerate(words)})

    @classmethod
    def build(cls, captions: Iterable[str], min_count: int = 4) -> Vocabulary:
        """Return the words that occur at least `min_count` times, in the order they first occur.

        Args:
            captions: the training captions, and only those (the public vocabularies also count
                the dev captions).
            min_count: rarer words are left to `<unk>`; the public vocabularies use 4.
        """
        if isinstance(captions, str):
            raise InputError("captions: is one text, wanted a list of them")
        if min_count < 1:
            raise InputError(f"min_count: is {min_count}, wanted 1 or more")
        counts = Counter(word for caption in captions for word in caption_words(caption))
        return cls((*SPECIAL_WORDS, *(word for word, n in counts.items() if n >= min_count)))

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} words)"

    def encode(self, caption: str) -> list[int]:
        """Return the ids of a caption's words in lower case, between `<start>` and `<end>`."""
        return [START, *self.encode_words(caption_words(caption)), END]

    def encode_words(self, words: Iterable[str]) -> list[int]:
        """Return the id of each word as it is, that of `<unk>` for those not known.

        Example:
            >>> Vocabulary((*SPECIAL_WORDS, "dog")).encode_words(["dog", "emu"])
            [4, 3]
        """
        return [self._ids.get(word, UNKNOWN) for word in words]

    def decode(self, ids: Iterable[SupportsIndex], *, keep_special: bool = False) -> list[str]:
        """Return the words with these ids.

        Args:
            ids: whole numbers from 0 to V - 1, of Python, NumPy or PyTorch.
            keep_special: keep `<pad>`, `<start>` and `<end>`; `<unk>` stands for a word and stays.

        Example:
            >>> Vocabulary((*SPECIAL_WORDS, "dog")).decode([1, 4, 3, 2, 0])
            ['dog', '<unk>']
        """
        places = [index(i) for i in ids]
        for place in places:
            if not 0 <= place < len(self):
                raise InputError(f"ids: {place} is no word's id, wanted 0 to {len(self) - 1}")
        kept = {UNKNOWN, *(range(UNKNOWN) if keep_special else ())}
        return [self.words[i] for i in places if i > UNKNOWN or i in kept]

    def unknown_words(self, caption: str) -> tuple[str, ...]:
        """Return the words of a caption that become `<unk>`, each once, in their order.

        Example:
            >>> Vocabulary((*SPECIAL_WORDS, "a", "and")).unknown_words("An emu and a koala")
            ('an', 'emu', 'koala')
        """
        return tuple(dict.fromkeys(word for word in caption_words(caption) if word not in self))

    def save(self, path: str | Path) -> None:
        """Write SCAN's JSON, so that the public code reads it too; never half of a file."""
        path = Path(path)
        if path.is_dir():
            raise InputError(f"{path}: is a folder, wanted a file name to write")
        content = {
            "word2idx": self._ids,
            "idx2word": {str(i): word for i, word in enumerate(self.words)},
            "idx": len(self),
        }
        try:
            write_atomically(path, json.dumps(content))
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from error

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Read SCAN's JSON, or VSRN's pickle without running it.

        The two maps in the file must agree, ids run from 0 without a gap, and the special words
        stand where the public code has them.
        """
        path = require_file(path, _WHAT)
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise FileFormatError(
                path, f"has {size:,} bytes, {_WHAT} has {MAX_FILE_BYTES:,} at most"
            )
        data = read_bytes(path, _WHAT)
        content = read_json(path, _WHAT) if _is_json(data) else read_vocabulary_pickle(path, data)
        if not isinstance(content, dict):
            raise FileFormatError(path, f"holds {shown(content)}, wanted word2idx, idx2word, idx")
        try:
            words = _from_maps(content)
        except ValueError as error:
            raise FileFormatError(path, str(error)) from None
        return cls(words)


def _is_json(data: bytes) -> bool:
    """Tell by the first sign: no pickle starts with one of these."""
    return data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[", b'"')


def _from_maps(content: dict[object, object]) -> tuple[str, ...]:
    """Return the words in the order of their ids; a ValueError says what is wrong."""
    words = _by_id(_map(content, "word2idx"))
    problem = _words_problem(words)
    if problem:
        raise ValueError(problem)
    by_id = {str(i): word for i, word in _map(content, "idx2word").items()}
    for i, word in enumerate(words):
        if by_id.get(str(i)) != word:
            found = shown(by_id[str(i)]) if str(i) in by_id else "no word"
            raise ValueError(f"idx2word has {found} for id {i}, wanted word2idx's {shown(word)}")
    if len(by_id) != len(words):
        raise ValueError(f"idx2word has {len(by_id)} words, wanted word2idx's {len(words)}")
    count = content.get("idx")
    if type(count) is not int or count != len(words):
        raise ValueError(f"idx is {shown(count)}, wanted {len(words)}, the number of words")
    return words


def _map(content: dict[object, object], name: str) -> dict[object, object]:
    if name not in content:
        raise ValueError(f"has no {name}, wanted word2idx, idx2word and idx")
    found = content[name]
    if not isinstance(found, dict):
        raise ValueError(f"{name} is {shown(found)}, wanted a map of words and ids")
    return found


def _by_id(word2idx: dict[object, object]) -> tuple[str, ...]:
    """Return the words in the order of their ids, which must be 0, 1, 2 ... without a gap."""
    at: dict[int, str] = {}
    for word, i in word2idx.items():
        if not isinstance(word, str):
            raise ValueError(f"word2idx has {shown(word)} for a word, wanted a text")
        if type(i) is not int or not 0 <= i < len(word2idx):
            raise ValueError(
                f"word2idx gives {shown(word)} the id {shown(i)}, wanted ids from 0 to "
                f"{len(word2idx) - 1} without a gap"
            )
        if i in at:
            raise ValueError(
                f"word2idx gives {shown(at[i])} and {shown(word)} the same id {i}, "
                "wanted one id for each word"
            )
        at[i] = word
    return tuple(at[i] for i in range(len(at)))


def _words_problem(words: Sequence[object]) -> str | None:
    """Return what keeps `words` from being a vocabulary, or None."""
    for i, special in enumerate(SPECIAL_WORDS):
        found = shown(words[i]) if i < len(words) else "no word"
        if i >= len(words) or words[i] != special:
            return f"has {found} for id {i}, wanted {special!r}"
    seen: set[object] = set()
    for i, word in enumerate(words):
        if not isinstance(word, str):
            return f"has {shown(word)} for id {i}, wanted a text"
        if word in seen:
            return f"has the word {shown(word)} twice"
        seen.add(word)
    return None
