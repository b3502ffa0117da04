"""Nouns and attributes for boxes, from the phrases of Flickr30k Entities.

A phrase's noun is its last word that is a word, in the singular where the singular is known
("two dogs" -> dog); its attributes are the words before it that are not determiners, numbers,
prepositions and the like ("a red tennis ball" -> red, tennis). A word is one or the other, as it
is used more often: "in black" makes black no noun. It counts from `least` phrases with a box on.

Which phrases teach what:

* with boxes: every box of the phrase's entity gets the noun and the attributes;
* scenes without a box ("the beach", flagged as the whole setting): the whole photograph gets the
  noun, and it is no object to propose: a region model that always
  answered "everything" would learn nothing;
* visible but never boxed, and not visual (entity 0): nothing. They are not negatives either: no
  one said where they are not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import cached_property

from crossgaze.data.entities.annotations import EntityImage

IRREGULAR = {
    "men": "man",
    "women": "woman",
    "children": "child",
    "people": "person",
    "feet": "foot",
    "leaves": "leaf",
    "knives": "knife",
    "teeth": "tooth",
    "policemen": "policeman",
    "firemen": "fireman",
}
PLURAL_ONLY = frozenset(
    ("glasses", "goggles", "jeans", "pants", "shorts", "sunglasses", "trousers")
)
# Words before a noun that say nothing about how it looks.
_EMPTY = """
    a an the this that these those his her hers its their our my your one two three four five six
    seven eight nine ten eleven twelve some many several few other others another each every both
    all any no more most of in on at with by for from to into onto over under behind beside near
    next up down off out around through against and or but as like is are be being who which what
    he she it they him them himself herself itself themselves someone something very other's same
    different various couple pair group bunch lot set number piece kind type sort crowd team line
    row pile side edge end front back middle bottom view closeup 's s
"""
EMPTY = frozenset(_EMPTY.split())
_WORD = re.compile(r"[a-z][a-z'-]*")


def phrase_words(text: str) -> list[str]:
    """Return the lower-case words of a phrase.

    Example:
        >>> phrase_words("A red , two-story house")
        ['a', 'red', 'two-story', 'house']
    """
    return [word for word in text.lower().split() if _WORD.fullmatch(word)]


def singular(word: str, known: Container[str]) -> str:
    """Return the singular of a word where that is a known word.

    Example:
        >>> singular("dogs", {"dog"}), singular("grass", {"gras"})
        ('dog', 'grass')
    """
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word in PLURAL_ONLY:
        return word
    for end, other in (("ies", "y"), ("s", ""), ("es", "")):
        stem = word[: len(word) - len(end)] + other
        if word.endswith(end) and not word.endswith("ss") and stem in known:
            return stem
    return word


@dataclass(frozen=True)
class Words:
    """The nouns and attributes that a model knows, the most frequent first."""

    nouns: tuple[str, ...]
    attributes: tuple[str, ...]

    def parse(self, text: str) -> tuple[int | None, tuple[int, ...]]:
        """Return the number of a phrase's noun, None where it is not known, and its attributes."""
        words = phrase_words(text)
        if not words:
            return None, ()
        noun = self._nouns.get(singular(words[-1], self._nouns))
        before = (self._attributes.get(word) for word in words[:-1])
        return noun, tuple(dict.fromkeys(number for number in before if number is not None))

    @cached_property
    def _nouns(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.nouns)}

    @cached_property
    def _attributes(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.attributes)}


def collect_words(images: Iterable[EntityImage], least: int = 20) -> Words:
    """Return the nouns and attributes of the boxed phrases of some (training) images.

    Args:
        images: annotated photographs.
        least: phrases with a box in which a word must serve so.
    """
    last: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for image in images:
        for sentence in image.sentences:
            for phrase in sentence.phrases:
                words = phrase_words(phrase.text)
                if phrase.entity in image.boxes and words:
                    last[words[-1]] += 1
                    before.update(set(words[:-1]))
    heads: Counter[str] = Counter()
    for word, count in last.items():
        heads[singular(word, last)] += count
    folded: Counter[str] = Counter()
    for word, count in before.items():
        folded[singular(word, heads)] += count
    nouns = [
        word
        for word, count in heads.most_common()
        if count >= least and word not in EMPTY and count >= folded[word]
    ]
    attributes = [
        word
        for word, count in before.most_common()
        if count >= least and word not in EMPTY and count > heads[singular(word, heads)]
    ]
    return Words(tuple(nouns), tuple(attributes))
