"""Find the photographs of a folder, always in the same order, and say what was left out."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from crossgaze.data.left_out import LeftOut
from crossgaze.errors import InputError

PHOTO_EXTENSIONS = (".bmp", ".gif", ".jfif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")

_HIDDEN_FILE = "hidden files"
_HIDDEN_FOLDER = "hidden folders"
_OTHER = "files with another extension"
_NOT_UTF8 = "names that are not UTF-8"
_NOT_FILE = "pipes, sockets or devices"
_OUTSIDE = "links that lead out of the folder, not followed"
_INSIDE = "links to something inside the folder"
_TWICE = "files or folders already reached another way"
_BROKEN = "links that lead nowhere"
_UNREADABLE = "files or folders that cannot be read"
_REASONS = (
    *(_HIDDEN_FILE, _HIDDEN_FOLDER, _OTHER, _NOT_UTF8, _NOT_FILE),
    *(_OUTSIDE, _INSIDE, _TWICE, _BROKEN, _UNREADABLE),
)
_WANTED = "wanted a folder of photographs or one photograph"


@dataclass(frozen=True)
class PhotoList:
    """The photographs of a folder.

    Args:
        root: the folder; `root / name` opens a photograph.
        names: relative paths with forward slashes, sorted.
        left_out: what was met and not taken, by reason.
    """

    root: Path
    names: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()

    def __len__(self) -> int:
        return len(self.names)


def list_photos(
    folder_or_file: str | os.PathLike[str],
    *,
    follow_links: bool = False,
    extensions: Iterable[str] = PHOTO_EXTENSIONS,
) -> PhotoList:
    """List the photographs of a folder and its sub-folders, or one photograph.

    A photograph is a file whose extension, in either case, is one of `extensions`; it is not
    opened. Hidden files and folders (a dot in front) are left out and counted, and so is a name
    that is not UTF-8, because it could not be written down as JSON.

    Args:
        folder_or_file: the folder; or one file, whose folder then becomes the root.
        follow_links: whether to follow symbolic links. Without it every link is left out. With
            it a link counts unless it leads to a file or folder that is listed anyway, so
            nothing is listed twice and a circle ends.
        extensions: with or without the dot.

    Raises:
        InputError: if the folder cannot be read or holds no photograph.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("b.jpg", "a.JPG", "notes.txt"):
        ...         Path(folder, name).touch()
        ...     found = list_photos(folder)
        >>> found.names, [str(entry) for entry in found.left_out]
        (('a.JPG', 'b.jpg'), ['1 files with another extension (notes.txt)'])
    """
    wanted = _extensions(extensions)
    looked_for = f"looked for {', '.join(wanted)}"
    path = Path(folder_or_file)
    shown = _shown(str(path))
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{shown}: cannot be opened ({reason}), {_WANTED}") from None
    if stat.S_ISREG(mode):
        if not path.name.lower().endswith(wanted):
            raise InputError(f"{shown}: is not a photograph by its name, {looked_for}")
        if not _is_utf8(path.name):
            raise InputError(f"{shown}: the name is not UTF-8, {_WANTED}")
        return PhotoList(path.parent, (path.name,))
    if not stat.S_ISDIR(mode):
        raise InputError(f"{shown}: is a pipe, socket or device, {_WANTED}")
    walk = _Walk(os.path.realpath(path), wanted)
    walk.enter(walk.real_root, "")
    if "" in walk.left[_UNREADABLE]:
        raise InputError(f"{shown}: cannot be read, {_WANTED}")
    walk.resolve_links(follow_links)
    left_out = tuple(
        entry
        for reason in _REASONS
        for entry in LeftOut.of(reason, [_shown(name) for name in sorted(walk.left[reason])])
    )
    if not walk.names:
        met = f"; left out: {', '.join(map(str, left_out))}" if left_out else ""
        raise InputError(f"{shown}: holds no photograph, {looked_for}{met}")
    return PhotoList(path, tuple(sorted(walk.names)), left_out)


@dataclass
class _Walk:
    """What a walk has found so far.

    Folders are entered by their real path, so the real path of a plain file is known for free.
    """

    real_root: str
    wanted: tuple[str, ...]
    names: list[str] = field(default_factory=list)
    listed: set[str] = field(default_factory=set)  # real paths of the photographs in `names`
    entered: set[str] = field(default_factory=set)  # real paths of folders
    links: list[tuple[str, str]] = field(default_factory=list)  # (its name, where it lies)
    left: dict[str, list[str]] = field(default_factory=lambda: {r: [] for r in _REASONS})

    def enter(self, real: str, name: str) -> None:
        """Take the photographs under the real folder `real`; links wait until the end."""
        folders = [(real, name)]
        while folders:
            real, name = folders.pop()
            if real in self.entered:
                self.left[_TWICE].append(name)
                continue
            self.entered.add(real)
            try:
                with os.scandir(real) as found:
                    entries = list(found)
            except OSError:
                self.left[_UNREADABLE].append(name)
                continue
            for entry in entries:
                inner = f"{name}/{entry.name}" if name else entry.name
                try:
                    if self.is_folder(entry, inner):
                        folders.append((entry.path, inner))
                except OSError:  # some file systems are asked for the kind of each entry
                    self.left[_UNREADABLE].append(inner)

    def is_folder(self, entry: os.DirEntry[str], name: str) -> bool:
        """Tell whether to enter `entry`; if it is anything else, deal with it."""
        folder = entry.is_dir(follow_symlinks=False)
        if not _is_utf8(entry.name):
            self.left[_NOT_UTF8].append(name)
        elif entry.name.startswith("."):
            self.left[_HIDDEN_FOLDER if folder else _HIDDEN_FILE].append(name)
        elif entry.is_symlink():
            self.links.append((name, entry.path))
        elif not folder:
            self.take(entry.path, name, entry.is_file(follow_symlinks=False))
        else:
            return True
        return False

    def take(self, real: str, name: str, regular: bool) -> None:
        """List a file that is not a link, or the file that a link leads to."""
        if not name.lower().endswith(self.wanted):
            self.left[_OTHER].append(name)
        elif not regular:
            self.left[_NOT_FILE].append(name)
        elif real in self.listed:
            self.left[_TWICE].append(name)
        else:
            self.listed.add(real)
            self.names.append(name)

    def resolve_links(self, follow: bool) -> None:
        """Follow the links, or count them. Plain files come first: a link to one is a repeat."""
        while self.links:
            waiting, self.links = sorted(self.links), []
            for name, path in waiting:
                real = os.path.realpath(path)
                try:
                    mode = Path(real).stat().st_mode
                except OSError:
                    self.left[_BROKEN].append(name)
                    continue
                if not follow:
                    inside = Path(real).is_relative_to(self.real_root)
                    self.left[_INSIDE if inside else _OUTSIDE].append(name)
                elif stat.S_ISDIR(mode):
                    self.enter(real, name)
                else:
                    self.take(real, name, stat.S_ISREG(mode))


def _extensions(extensions: Iterable[str]) -> tuple[str, ...]:
    """Return the extensions in lower case with a dot in front, sorted."""
    given = [extensions] if isinstance(extensions, str) else list(extensions)
    wanted = {"." + extension.lower().removeprefix(".") for extension in given}
    if not wanted or "." in wanted:
        raise InputError(f"extensions: found {given!r}, wanted some like '.jpg'")
    return tuple(sorted(wanted))


def _is_utf8(name: str) -> bool:
    """Tell whether a file name is text; Python carries other bytes as lone surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def _shown(name: str) -> str:
    """Return a name that can be printed on one line."""
    return name if name.isprintable() else repr(name)
