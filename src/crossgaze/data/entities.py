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

import os
import re
import xml.etree.ElementTree as ElementTree
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crossgaze.data.captioned import LeftOut
from crossgaze.errors import FileFormatError, InputError, require_file

MAX_MEMBER_BYTES = 1 << 20  # the largest real file has 10,579 bytes: more is an accident or a bomb

_MEMBER = re.compile(r"(?:[^/]+/)?(?:Annotations/([^/.][^/]*)\.xml|Sentences/([^/.][^/]*)\.txt)")
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


class Entities(Mapping[str, EntityImage]):
    """Annotated images by id, read from the zip or folder only when they are asked for.

    Several threads may read from one object. A forked worker reopens the zip, since a shared file
    position would mix up the readers, and a pickled copy opens its path again.
    """

    def __init__(self, path: Path, names: Iterable[str]) -> None:
        self.path = path
        self._archive: tuple[int, zipfile.ZipFile] | None = None
        self._members, self.left_out = _pair_up(path, names)

    @classmethod
    def open(cls, path: str | Path) -> Entities:
        """Open annotations.zip, a folder it was unpacked to, or a folder that holds the zip.

        `Annotations/` and `Sentences/` may also lie one folder deeper, as in GitHub's own zips.
        """
        path = Path(path)
        if path.is_dir():
            inside = ("Annotations/*", "Sentences/*", "*/Annotations/*", "*/Sentences/*")
            names = [p.relative_to(path).as_posix() for glob in inside for p in path.glob(glob)]
            if names or not (path / "annotations.zip").is_file():
                return cls(path, names)
            path = path / "annotations.zip"
        with _open_zip(path) as archive:
            return cls(path, [name for name in archive.namelist() if not name.endswith("/")])

    @property
    def ids(self) -> tuple[str, ...]:
        """The image ids, sorted."""
        return tuple(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __contains__(self, image: object) -> bool:
        return image in self._members

    def __getitem__(self, image: str) -> EntityImage:
        annotation, sentences = self._members[image]
        return parse_image(
            image,
            _text(self.path / annotation, self._bytes(annotation)),
            _text(self.path / sentences, self._bytes(sentences)),
            paths=(self.path / annotation, self.path / sentences),
        )

    def read(self, image: str) -> EntityImage:
        """Return the image with this id, or say that there is none."""
        if image not in self._members:
            raise InputError(f"{self.path}: has no image {image!r} among its {len(self):,}")
        return self[image]

    def __reduce__(self) -> tuple[object, ...]:
        return Entities.open, (self.path,)

    def _bytes(self, name: str) -> bytes:
        """Return the content of one member, never more than MAX_MEMBER_BYTES."""
        try:
            if self.path.is_dir():
                with (self.path / name).open("rb") as file:
                    content = file.read(MAX_MEMBER_BYTES + 1)
            else:
                # ZipFile guards its own reads; two threads that open at once each read well.
                archive = self._archive
                if archive is None or archive[0] != os.getpid():
                    self._archive = archive = (os.getpid(), _open_zip(self.path))
                with archive[1].open(name) as member:
                    content = member.read(MAX_MEMBER_BYTES + 1)
        # What zipfile raises on damage, on encryption (RuntimeError) and on unknown compression.
        except (OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise FileFormatError(self.path / name, f"cannot be read: {error}") from error
        if len(content) > MAX_MEMBER_BYTES:
            raise FileFormatError(self.path / name, f"has over {MAX_MEMBER_BYTES:,} bytes")
        return content


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


def _text(path: Path, content: bytes) -> str:
    """Return UTF-8 bytes as text with plain newlines, without a byte order mark."""
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise FileFormatError(path, "has bytes that are not UTF-8", line=line) from error
    # UTF-16 without a mark decodes as UTF-8 full of NULs, and the XML parser would still see
    # through it: a document type could hide from our search that way.
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise FileFormatError(path, "has a NUL byte, wanted UTF-8 text", line=line)
    return text


def _open_zip(path: Path) -> zipfile.ZipFile:
    """Open a zip for reading; its members are read in memory and never unpacked to disk."""
    require_file(path, "annotations.zip of Flickr30k Entities, or the folder it unpacks to")
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile, NotImplementedError) as error:
        raise FileFormatError(path, f"is not a readable zip file: {error}") from error


def _pair_up(
    path: Path, names: Iterable[str]
) -> tuple[dict[str, tuple[str, str]], tuple[LeftOut, ...]]:
    """Return image id -> (annotation, sentences) member names, and what else lies beside them."""
    annotations: dict[str, str] = {}
    sentences: dict[str, str] = {}
    other: list[str] = []
    for name in sorted(names):
        match = _MEMBER.fullmatch(name)
        if match is None or name.startswith("__MACOSX/"):
            other.extend([name] if re.search("(^|/)(Annotations|Sentences)/", name) else [])
            continue
        side, image = (annotations, match[1]) if match[1] else (sentences, match[2])
        if image in side:
            raise FileFormatError(path, f"holds both {side[image]} and {name}, wanted one")
        side[image] = name
    pairs = ((annotations, sentences, "Sentences"), (sentences, annotations, "Annotations"))
    for here, there, what in pairs:
        alone = [name for image, name in here.items() if image not in there]
        if alone:
            problem = f"{len(alone):,} images have no file in {what}, the first is {alone[0]}"
            raise FileFormatError(path, problem)
    if not annotations:
        raise FileFormatError(path, "holds no Annotations/ID.xml and Sentences/ID.txt")
    members = {image: (annotations[image], sentences[image]) for image in sorted(annotations)}
    return members, LeftOut.of("files beside them that are not ID.xml or ID.txt", other)
