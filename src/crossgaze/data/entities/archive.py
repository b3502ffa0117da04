"""Flickr30k Entities on disk: the zip or the unpacked folder, read image by image."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from crossgaze.data.entities.annotations import EntityImage, parse_image
from crossgaze.data.left_out import LeftOut
from crossgaze.errors import FileFormatError, InputError, require_file
from crossgaze.zips import open_zip

MAX_MEMBER_BYTES = 1 << 20  # the largest real file has 10,579 bytes: more is an accident or a bomb

_DAMAGE = (OSError, EOFError, KeyError, RuntimeError, ValueError)
_MEMBER = re.compile(
    r"(?:[^/.][^/]*/)?(?:Annotations/([^/.][^/]*)\.xml|Sentences/([^/.][^/]*)\.txt)"
)


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
                path = require_file(self.path / name, "annotations or sentences of an image")
                with path.open("rb") as file:
                    content = file.read(MAX_MEMBER_BYTES + 1)
            else:
                # ZipFile guards its own reads; two threads that open at once each read well.
                archive = self._archive
                if archive is None or archive[0] != os.getpid():
                    self._archive = archive = (os.getpid(), _open_zip(self.path))
                with archive[1].open(name) as member:
                    content = member.read(MAX_MEMBER_BYTES + 1)
        # What zipfile raises on damage, on encryption (RuntimeError), on unknown compression and on
        # a name that cannot be (ValueError).
        except (*_DAMAGE, zipfile.BadZipFile, zlib.error) as error:
            raise FileFormatError(self.path / name, f"cannot be read: {error}") from error
        if len(content) > MAX_MEMBER_BYTES:
            raise FileFormatError(self.path / name, f"has over {MAX_MEMBER_BYTES:,} bytes")
        return content


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
    """Open the zip, or say that there is none that reads."""
    require_file(path, "annotations.zip of Flickr30k Entities, or the folder it unpacks to")
    try:
        return open_zip(path)
    except OSError as error:
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
