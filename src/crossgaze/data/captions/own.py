"""A user's own captioned images: a CSV or JSON Lines file beside the photographs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Literal

from crossgaze.data.captions.captioned import SPLIT_NAMES, CaptionedImages
from crossgaze.data.textfiles import (
    kind_of,
    name_problem,
    read_jsonl,
    read_table,
    sentence_problem,
)
from crossgaze.errors import FileFormatError, InputError, nearest

IMAGE = ("image", "filename", "file", "file_name", "image_name")
CAPTION = ("caption", "text", "sentence", "comment")
CAPTIONS = ("captions", "texts", "sentences")
SPLIT = ("split",)
JSONL_SUFFIXES = (".jsonl", ".ndjson")


@dataclass(frozen=True)
class _Row:
    """One line of the file: an image and some of its captions, not yet checked."""

    line: int
    image: object
    captions: list[object]
    split: object


def read_own(
    captions_file: str | Path,
    *,
    images: str | Path | None = None,
    missing: Literal["error", "leave-out"] = "error",
) -> CaptionedImages:
    r"""Read a table with the columns image and caption, or JSON Lines with those keys.

    A table has a header; its columns are image (or filename, file, file_name, image_name), caption
    (or text, sentence, comment) and perhaps split, separated by commas, tabs, semicolons or bars.
    A JSON line is {"image": ..., "caption": "..."} or {"image": ..., "captions": [...]}, perhaps
    with "split". An image may have several lines; a file named *.jsonl is JSON Lines. Image files
    that no line names are counted in `left_out`.

    Args:
        captions_file: the file.
        images: the folder that image names are relative to; by default the folder `images` beside
            the file, or the file's own folder if an image is there, else files are not looked for.
        missing: an image without a file is an error, or is left out and counted ("leave-out").

    Example:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "captions.csv"
        >>> _ = path.write_text('image,caption\na.jpg,"A cat, asleep"\na.jpg,Cats\n')
        >>> read_own(path).captions
        ('A cat, asleep', 'Cats')
    """
    if missing not in ("error", "leave-out"):
        raise InputError(f"missing is {missing!r}, wanted 'error' or 'leave-out'")
    path = Path(captions_file)
    unread: set[str] = set()
    captions: dict[str, list[str]] = {}
    splits: dict[str, str] = {}
    first_line: dict[str, int] = {}
    rows = _json_rows if path.suffix.lower() in JSONL_SUFFIXES else _table_rows
    for row in rows(path, unread):
        image = _image(path, row)
        split = _split(path, row)
        if splits.setdefault(image, split) != split:
            raise FileFormatError(
                path,
                f"image {image!r} is in split {split!r}, but in {splits[image]!r} on line "
                f"{first_line[image]}",
                line=row.line,
            )
        first_line.setdefault(image, row.line)
        captions.setdefault(image, []).extend(_sentences(path, row))
    if not captions:
        raise FileFormatError(path, "holds no caption")
    ignored = ", ".join(sorted(unread))
    notes = (f"{path} has fields that are not read: {ignored}",) if unread else ()
    found = CaptionedImages.group(path.stem, captions, splits, notes=notes)
    if images is None:
        images = _images_beside(path, captions)
    return found if images is None else found.in_folder(images, missing=missing, count_unnamed=True)


def _images_beside(path: Path, names: dict[str, list[str]]) -> Path | None:
    if (path.parent / "images").is_dir():
        return path.parent / "images"
    return path.parent if any((path.parent / name).is_file() for name in names) else None


def _table_rows(path: Path, unread: set[str]) -> Iterator[_Row]:
    table = read_table(
        path, "a table of captions", {"image": IMAGE, "caption": CAPTION}, {"split": SPLIT}
    )
    unread.update(table.unread)
    for line, row in table.rows:
        yield _Row(line, row["image"], [row["caption"]], row.get("split", ""))


def _json_rows(path: Path, unread: set[str]) -> Iterator[_Row]:
    known = {*IMAGE, *CAPTION, *CAPTIONS, *SPLIT}
    for line, entry in read_jsonl(path, "captions as JSON Lines"):
        unread.update(entry.keys() - known)
        _, image = _only(path, line, entry, IMAGE)
        key, value = _only(path, line, entry, CAPTION + CAPTIONS)
        if key in CAPTIONS and not (isinstance(value, list) and value):
            kind = "empty" if value == [] else kind_of(value)
            raise FileFormatError(path, f"{key} is {kind}, wanted a list of texts", line=line)
        listed = value if key in CAPTIONS and isinstance(value, list) else [value]
        yield _Row(line, image, listed, entry.get("split", ""))


def _only(
    path: Path, line: int, entry: dict[str, object], keys: tuple[str, ...]
) -> tuple[str, object]:
    """Return the one key of `keys` that the entry has, and its value."""
    there = [key for key in keys if key in entry]
    if len(there) != 1:
        found = " and ".join(map(repr, there)) or f"the keys {list(entry)}"
        raise FileFormatError(path, f"has {found}, wanted one of {', '.join(keys)}", line=line)
    return there[0], entry[there[0]]


def _image(path: Path, row: _Row) -> str:
    """Return the image's id; './a.jpg' and 'a.jpg' are the same."""
    if problem := name_problem(row.image):
        raise FileFormatError(path, f"the image name {problem}", line=row.line)
    image = _plain(str(row.image))
    if image == ".":
        raise FileFormatError(path, f"the image name is {row.image!r}, a folder", line=row.line)
    return image


@lru_cache(maxsize=1024)  # the captions of an image mostly follow one another
def _plain(name: str) -> str:
    return PurePosixPath(name.strip()).as_posix()


def _split(path: Path, row: _Row) -> str:
    name = "" if row.split is None else row.split
    if not isinstance(name, str) or name.strip().lower() not in SPLIT_NAMES:
        raise FileFormatError(
            path,
            f"split is {name!r}{nearest(str(name), SPLIT_NAMES)}, wanted train, dev, test or "
            "nothing",
            line=row.line,
        )
    return SPLIT_NAMES[name.strip().lower()]


def _sentences(path: Path, row: _Row) -> list[str]:
    for caption in row.captions:
        if problem := sentence_problem(caption):
            raise FileFormatError(path, f"the caption {problem}", line=row.line)
    return [str(caption).strip() for caption in row.captions]
