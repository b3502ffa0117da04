"""Sentences with one word swapped for a word of the same kind that means something else.

For CCS (`crossgaze.training.constraints`), which needs for a word of a right sentence "visually or
semantically different contents" (Chen et al., section 3.3). What counts as different is decided
from the training captions alone. A replacement r of word w in a caption of image I

* is of w's kind: a thing, things (plural), a colour, another attribute (`word_kinds`);
* occurs in no caption of I, and neither does any word of its stem: no plural, no compound (snow,
  snowy, snowboard);
* for colours: is of another colour family (grey and silver are one);
* for other kinds: keeps no company with w, that is, over the training images,
  images(w and r) <= images(w) images(r) / images: no more than chance. Captions of one image say
  the same in other words, so synonyms and hypernyms (bike and bicycle, dog and animal) have more,
  and so does what is often seen beside w, mentioned or not;
* for persons: a word for a person is never swapped for another one, and a thing for a person only
  where no caption of I has a person at all: everyone in I is also a "person".

Among what is left a word is drawn as often as it occurs in captions; otherwise rare words would be
wrong nearly every time that training sees them, and a model could learn just that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crossgaze.errors import InputError, nearest
from crossgaze.models.text import TextEncoder
from crossgaze.training.word_kinds import COLOURS, PERSONS, WordKind, find_kinds, stem

BLOCK = 4096  # images counted at once
PIECE = "##"  # how a token begins that goes on with the word before it
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Swaps:
    """P sentences, each with one word swapped where one could be.

    Args:
        ids: (P, n) int64 numbers of words.
        lengths: (P,) int64, how many are real.
        places: (P,) int64, where the swapped word stands; 0 where none is.
        found: (P,) bool, whether a word is swapped.
    """

    ids: Tensor
    lengths: Tensor
    places: Tensor
    found: Tensor


class SwapSampler:
    """Draws a word of a sentence and another word for it.

    Args:
        captions: numbers of the words of each training caption, as the text encoder's `tokenize`
            gives them.
        image_of: (M,) the image number of each caption.
        words: the word of each number, `word_list(model.text)`.
        least: occurrences from which on a word can be swapped.

    Example:
        >>> words = ["<pad>", "<start>", "<end>", "<unk>", "a", "dog", "car", "."]
        >>> captions = [[1, 4, 5, 7, 2], [1, 4, 6, 7, 2]]
        >>> sampler = SwapSampler(captions, [0, 1], words, least=1)
        >>> ids, one = torch.tensor([captions[0]]), torch.tensor([5])
        >>> sampler.sample(ids, one, [0], np.random.default_rng(0)).ids
        tensor([[1, 4, 6, 7, 2]])
    """

    def __init__(
        self,
        captions: Sequence[Sequence[int]],
        image_of: Sequence[int] | Numbers,
        words: Sequence[str],
        least: int = 20,
    ) -> None:
        owners = np.asarray(image_of, dtype=np.int64)
        if owners.shape != (len(captions),):
            raise InputError(f"image_of: got shape {owners.shape}, wanted ({len(captions)},)")
        self._pieces = frozenset(i for i, word in enumerate(words) if word.startswith(PIECE))
        rows = [self._whole(row) for row in captions]
        kinds = find_kinds(([words[i] if i >= 0 else "" for i in row] for row in rows), least)
        self.kinds: dict[str, WordKind] = kinds
        self.words = tuple(kinds)  # (S,) the words that can be swapped
        number = {word: i for i, word in enumerate(words)}
        self._ids = np.array([number[word] for word in self.words], dtype=np.int64)  # (S,)
        self._place = {int(i): s for s, i in enumerate(self._ids)}
        self._person = np.array([word in PERSONS for word in self.words], dtype=bool)  # (S,)
        counts = np.zeros(len(self.words))
        for row in rows:
            for i in row:
                if i in self._place:
                    counts[self._place[i]] += 1
        self._counts = counts  # (S,) occurrences
        said = _words_of_images(rows, owners)
        self._near = self._company(said)  # (S, S) bool
        self._barred = self._all_kin(said, words)

    def sample(
        self,
        ids: Tensor,
        lengths: Tensor,
        images: Sequence[int] | Numbers | Tensor,
        generator: np.random.Generator,
    ) -> Swaps:
        """Swap one word of each sentence, drawn from those that have a replacement.

        Args:
            ids: (P, n) numbers of words, on the CPU.
            lengths: (P,) how many are real.
            images: (P,) the number of each sentence's image, as in `image_of`.
            generator: of the draws; the same one gives the same swaps.
        """
        swapped, found = ids.clone(), torch.zeros(len(ids), dtype=torch.bool)
        places = torch.zeros(len(ids), dtype=torch.long)
        for number, (row, count, image) in enumerate(
            zip(ids.tolist(), lengths.tolist(), np.asarray(images).tolist(), strict=True)
        ):
            swap = self._swap(row[:count], image, generator)
            if swap is not None:
                places[number], swapped[number, swap[0]] = swap
                found[number] = True
        return Swaps(swapped, lengths, places, found)

    def replacements(self, word: str, image: int) -> npt.NDArray[np.float64]:
        """Return how likely each of `words` is to be put for a word in a caption of an image.

        Args:
            word: one of `words`.
            image: the image's number.

        Returns:
            (S,) probabilities; all 0 where there is no replacement.
        """
        if word not in self.kinds:
            raise InputError(f"word: {word!r} has no kind{nearest(word, self.words)}")
        weights = self._weights(self.words.index(word), image)
        total = weights.sum()
        return weights / total if total else weights

    def _swap(
        self, row: Sequence[int], image: int, generator: np.random.Generator
    ) -> tuple[int, int] | None:
        """Return a place in a sentence and the number of the word to put there."""
        known = [
            (place, self._place[i]) for place, i in enumerate(self._whole(row)) if i in self._place
        ]
        for which in generator.permutation(len(known)):
            place, word = known[which]
            reach = self._weights(word, image).cumsum()
            if len(reach) and reach[-1] > 0:
                drawn = np.searchsorted(reach, generator.random() * reach[-1], side="right")
                return place, int(self._ids[drawn])
        return None

    def _weights(self, word: int, image: int) -> npt.NDArray[np.float64]:
        """Return (S,) occurrences of the words that may replace a word, 0 for the others."""
        if image not in self._barred:
            raise InputError(f"images: {image} has no caption in what the sampler was made from")
        barred, persons = self._barred[image]
        weights = np.where(self._near[word], 0.0, self._counts)
        weights[barred] = 0.0
        if persons or self._person[word]:
            weights[self._person] = 0.0
        return weights

    def _whole(self, row: Sequence[int]) -> list[int]:
        """Return a caption's numbers with -1 for those that are part of a longer word."""
        return [
            -1 if i in self._pieces or after in self._pieces else i
            for i, after in zip(row, [*row[1:], -1], strict=True)
        ]

    def _company(self, said: dict[int, set[int]]) -> npt.NDArray[np.bool_]:
        """Return (S, S), which words cannot replace which, whatever the image."""
        size = len(self.words)
        together = np.zeros((size, size))
        rows = [[self._place[i] for i in words if i in self._place] for words in said.values()]
        for start in range(0, len(rows), BLOCK):
            part = rows[start : start + BLOCK]
            there = np.zeros((len(part), size), dtype=np.float32)
            for number, row in enumerate(part):
                there[number, row] = 1.0
            together += there.T @ there
        alone = np.diag(together)
        near = together * len(rows) > np.outer(alone, alone)
        families = np.array([COLOURS.get(word, -1) for word in self.words])
        colour = families >= 0
        near[np.ix_(colour, colour)] = np.equal.outer(families, families)[np.ix_(colour, colour)]
        kinds = np.array(list(self.kinds.values()))
        found: npt.NDArray[np.bool_] = near | np.not_equal.outer(kinds, kinds)
        return found

    def _all_kin(
        self, said: dict[int, set[int]], words: Sequence[str]
    ) -> dict[int, tuple[npt.NDArray[np.int32], bool]]:
        """Return for each image the words akin to one of its captions, and whether it has persons.

        Akin: of one stem, or one stem begins or ends with the other.
        """
        exact: dict[str, list[int]] = {}
        longer: dict[str, list[int]] = {}
        for s, word in enumerate(self.words):
            root = stem(word)
            exact.setdefault(root, []).append(s)
            for part in _ends(root):
                longer.setdefault(part, []).append(s)
        kin: dict[int, set[int]] = {}
        for i in set().union(*said.values()) if said else ():
            root = stem(words[i])
            shorter = (s for part in _ends(root) for s in exact.get(part, ()))
            kin[i] = {*shorter, *exact.get(root, ()), *longer.get(root, ())}
        return {
            image: (
                np.array(sorted(set().union(*(kin[i] for i in found))), dtype=np.int32),
                any(words[i] in PERSONS for i in found),
            )
            for image, found in said.items()
        }


def word_list(text: TextEncoder) -> Sequence[str]:
    """Return the word of each number that a text encoder's `tokenize` gives."""
    if text.vocabulary is not None:
        return text.vocabulary.words
    tokenizer: Any = getattr(text, "tokenizer", None)
    if tokenizer is None:
        raise InputError("text: has numbers of words only, swaps need the words: give a vocabulary")
    return [str(token) for token in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))]


def _words_of_images(rows: Sequence[Sequence[int]], owners: Numbers) -> dict[int, set[int]]:
    """Return the numbers of all words in each image's captions."""
    said: dict[int, set[int]] = {}
    for row, owner in zip(rows, owners.tolist(), strict=True):
        said.setdefault(owner, set()).update(i for i in row if i >= 0)
    return said


def _ends(root: str) -> set[str]:
    """Return the beginnings and ends of a stem, shorter than it, of three letters or more."""
    return {part for n in range(3, len(root)) for part in (root[:n], root[-n:])}
