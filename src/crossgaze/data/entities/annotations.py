"""Flickr30k Entities: which phrase of a sentence names which boxes of its photograph.

Two small files describe an image (Plummer et al., ICCV 2015). `Sentences/ID.txt` has a sentence a
line, its noun phrases bracketed with an entity id and one or more types; id 0 is "not visual":

    [/EN#18/people A child] in [/EN#19/clothing a pink dress] .

`Annotations/ID.xml` has the size of the original photograph and `object` elements. An object
carries one or more `name`s (entity ids) and either a `bndbox`, or the flags `scene` (the entity is
the whole setting) and `nobndbox` (it is there, but nobody could box it). One entity can stand in
several objects, so one phrase can have several boxes.

Boxes on disk are 1-based inclusive pixels, as in PASCAL VOC: over the 52,290 real boxes seen, xmin
and ymin are never under 1, and xmax and ymax reach the image's width and height and never pass
them. Here a box is [xmin - 1, ymin - 1, xmax, ymax]: continuous pixel edges, so that its area is
the number of its pixels and the whole image is [0, 0, width, height].
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crossgaze.errors import FileFormatError, InputError

_TAG = re.compile(r"\[/EN#([0-9]+)((?:/[^/\s\[\]]+)+)")
_PIECE = re.compile(r"\[[^\s\[\]]*|\]|[^\s\[\]]+")
_NUMBER = re.compile(r"-?[0-9]{1,7}(?:\.[0-9]{0,7})?")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase: the words [first, last) of a sentence, and the entity they name.

    Entity "0" is not visual. `text` is those words with single spaces between them.
    """

    first: int
    last: int
    entity: str
    types: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class EntitySentence:
    """A sentence as whitespace words, brackets taken out, and its phrases in order."""

    words: tuple[str, ...]
    phrases: tuple[Phrase, ...]

    @property
    def text(self) -> str:
        """The words with single spaces between them."""
        return " ".join(self.words)


@dataclass(frozen=True, eq=False)
class EntityImage:
    """One annotated photograph.

    Args:
        id: the file name's stem in Flickr30K.
        width: of the original photograph, in pixels.
        height: of the original photograph, in pixels.
        sentences: the annotated sentences, five in the real data.
        boxes: entity id to its boxes, (n, 4) float32 xyxy pixel edges of the original.
        scenes: entity ids that are the whole setting.
        no_box: entity ids that are visible but have no box.
    """

    id: str
    width: int
    height: int
    sentences: tuple[EntitySentence, ...]
    boxes: Mapping[str, npt.NDArray[np.float32]]
    scenes: frozenset[str]
    no_box: frozenset[str]

    def boxes_of(
        self, phrase: Phrase, size: tuple[float, float] | None = None
    ) -> npt.NDArray[np.float32]:
        """Return the boxes of `phrase`, (n, 4) float32 xyxy; n is 0 where it has none.

        Args:
            phrase: from a sentence of this image, or mapped onto a caption of it.
            size: (width, height) of the image the boxes are wanted for; the original by default.

        Example:
            >>> box = np.array([[10, 20, 50, 100]], np.float32)
            >>> image = EntityImage("1", 100, 200, (), {"7": box}, frozenset(), frozenset())
            >>> image.boxes_of(Phrase(0, 1, "7", ("people",), "she"), size=(50, 400)).tolist()
            [[5.0, 40.0, 25.0, 200.0]]
        """
        width, height = (self.width, self.height) if size is None else size
        if not (0 < width < np.inf and 0 < height < np.inf):
            raise InputError(f"size is {size}, wanted a width and a height above 0")
        found = self.boxes.get(phrase.entity)
        if found is None:
            return np.empty((0, 4), dtype=np.float32)
        by_width, by_height = width / self.width, height / self.height
        scale = np.array([by_width, by_height, by_width, by_height], dtype=np.float64)
        return (found * scale).astype(np.float32)


def parse_image(
    image: str, annotation: str, sentences: str, *, paths: tuple[Path, Path]
) -> EntityImage:
    """Return the image that the texts of its two files describe; `paths` are for messages."""
    xml_path, text_path = paths
    lines = sentences.split("\n")
    if not sentences.strip():
        raise FileFormatError(text_path, "is empty, wanted a sentence a line")
    # An empty line stays, as an empty sentence: sentences are known by their number.
    lines = lines[:-1] if lines[-1] == "" else lines
    read = tuple(parse_sentence(line, text_path, n) for n, line in enumerate(lines, start=1))
    root = _parse_xml(annotation, xml_path)
    try:
        width, height = _size(root)
    except InputError as error:
        raise FileFormatError(xml_path, f"{error}", line=_line_of(annotation, "size")) from None
    boxes: dict[str, list[list[float]]] = {}
    flagged: dict[str, set[str]] = {"scene": set(), "nobndbox": set()}
    for number, element in enumerate(root.findall("object")):
        try:
            names = _names(element)
            found = [_box(box, width, height) for box in element.findall("bndbox")]
            flags = {tag: _flag(element, tag) for tag in flagged}
            if not found and set(flags.values()) == {None}:
                raise InputError("has no bndbox, scene or nobndbox")
        except InputError as error:
            line = _line_of(annotation, "object", number)
            raise FileFormatError(xml_path, f"this object {error}", line=line) from None
        for name in names:
            boxes.setdefault(name, []).extend(found)
        for tag in flagged:
            flagged[tag].update(names if flags[tag] else ())
    arrays = {name: np.array(rows, dtype=np.float32) for name, rows in boxes.items() if rows}
    scenes, no_box = (frozenset(flagged[tag]) for tag in ("scene", "nobndbox"))
    return EntityImage(image, width, height, read, arrays, scenes, no_box)


def parse_sentence(line: str, path: str | Path = "sentence", number: int = 1) -> EntitySentence:
    """Return the words and phrases of a bracketed sentence; a bracket also ends a word.

    Example:
        >>> sentence = parse_sentence("[/EN#3/people/animals Two pups] run .")
        >>> sentence.text, sentence.phrases[0].types
        ('Two pups run .', ('people', 'animals'))
    """
    words: list[str] = []
    phrases: list[Phrase] = []
    tag: re.Match[str] | None = None
    first = 0
    for piece in _PIECE.findall(line):
        if piece.startswith("["):
            if tag is not None:
                raise FileFormatError(path, "has a '[' inside a phrase", line=number)
            tag, first = _TAG.fullmatch(piece), len(words)
            if tag is None:
                problem = f"has a phrase that begins {piece!r}, wanted '[/EN#ID/type'"
                raise FileFormatError(path, problem, line=number)
        elif piece != "]":
            words.append(piece)
        elif tag is None:
            raise FileFormatError(path, "has a ']' that closes nothing", line=number)
        elif first == len(words):
            raise FileFormatError(path, f"phrase {tag[0]!r} has no words", line=number)
        else:
            types = tuple(tag[2].split("/")[1:])
            phrases.append(Phrase(first, len(words), tag[1], types, " ".join(words[first:])))
            tag = None
    if tag is not None:
        raise FileFormatError(path, f"phrase {tag[0]!r} is not closed by ']'", line=number)
    return EntitySentence(tuple(words), tuple(phrases))


def _parse_xml(text: str, path: Path) -> ElementTree.Element:
    """Return the root of an annotation, which may declare no document type and no entity."""
    declared = re.search(r"<!(DOCTYPE|ENTITY)", text, re.IGNORECASE)
    if declared:
        line = text.count("\n", 0, declared.start()) + 1
        raise FileFormatError(path, f"declares a {declared[1]}, which is refused", line=line)
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise FileFormatError(path, f"is not XML: {error}", line=error.position[0]) from error
    if root.tag != "annotation":
        raise FileFormatError(path, f"holds a <{root.tag}>, wanted an <annotation>")
    return root


def _line_of(text: str, tag: str, number: int = 0) -> int | None:
    """Return the line of the element `tag` number `number`; ElementTree does not keep it."""
    starts = [match.start() for match in re.finditer(rf"<{tag}\b", text)][number:]
    return text.count("\n", 0, starts[0]) + 1 if starts else None


def _number(element: ElementTree.Element, tag: str) -> float:
    """Return the number in the child `tag`; at most 7 digits, so never inf or nan."""
    text = element.findtext(tag, default="").strip()
    if not _NUMBER.fullmatch(text):
        raise InputError(f"has {tag} {text!r}, wanted a number of pixels")
    return float(text)


def _size(root: ElementTree.Element) -> tuple[int, int]:
    """Return the width and height of the photograph."""
    size = root.find("size")
    if size is None:
        raise InputError("has no size element, wanted the image's width and height")
    width, height = _number(size, "width"), _number(size, "height")
    if min(width, height) < 1 or width % 1 or height % 1:
        raise InputError(f"has the size {width:g} x {height:g}, wanted whole pixels above 0")
    return int(width), int(height)


def _names(element: ElementTree.Element) -> list[str]:
    """Return the entity ids of an object."""
    names = [(name.text or "").strip() for name in element.findall("name")]
    if not names or not all(re.fullmatch("[0-9]+", name) for name in names):
        raise InputError(f"has the names {names}, wanted one or more entity ids")
    return names


def _flag(element: ElementTree.Element, tag: str) -> bool | None:
    """Return the 0 or 1 of an object's child `tag`, or None without one."""
    text = element.findtext(tag)
    if text is not None and text.strip() not in ("0", "1"):
        raise InputError(f"has {tag} {text!r}, wanted 0 or 1")
    return None if text is None else text.strip() == "1"


def _box(element: ElementTree.Element, width: int, height: int) -> list[float]:
    """Return [x0, y0, x1, y1] as pixel edges, clipped to the image."""
    x0, y0, x1, y1 = (_number(element, tag) for tag in ("xmin", "ymin", "xmax", "ymax"))
    shown = f"has the box {x0:g} {y0:g} {x1:g} {y1:g}"
    if x1 <= x0 or y1 <= y0:
        raise InputError(f"{shown}, wanted xmin < xmax and ymin < ymax")
    if x1 <= 0 or y1 <= 0 or x0 > width or y0 > height:
        raise InputError(f"{shown}, which lies outside the {width} x {height} image")
    return [max(x0 - 1, 0), max(y0 - 1, 0), min(x1, width), min(y1, height)]
