"""One door to every caption format: look at what is there, then call its reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.captions.coco import caption_files, read_coco
from crossgaze.data.captions.flickr8k import TOKEN_FILE, read_flickr8k
from crossgaze.data.captions.karpathy import read_karpathy
from crossgaze.data.captions.own import JSONL_SUFFIXES, read_own
from crossgaze.data.captions.precomp import SPLITS, read_precomp
from crossgaze.data.textfiles import read_bytes
from crossgaze.errors import InputError, nearest

FORMATS = ("flickr8k", "karpathy", "coco", "precomp", "own")
OWN_FILES = tuple(f"captions{end}" for end in (".csv", ".tsv", ".txt", *JSONL_SUFFIXES))
TABLE_SUFFIXES = (".csv", ".tsv")
_KARPATHY_FILE = re.compile(r"dataset(_\w+)?\.json")
_TOKEN_LINE = re.compile(rb"[^\t\r\n]+#\d+\t")
_CAPS_FILE = re.compile(rf"({'|'.join(SPLITS)})_caps\.txt")
_LOOKED_FOR = (
    f"{TOKEN_FILE} (flickr8k), dataset_*.json (karpathy), captions_*.json (coco), "
    "*_caps.txt (precomp), captions.csv, .tsv, .txt or .jsonl (own)"
)


def read_captions(
    source: str | Path,
    *,
    images: str | Path | None = None,
    format: str | None = None,  # noqa: A002 (the word a user looks for)
) -> CaptionedImages:
    r"""Read captioned images in whichever format `source` is.

    Args:
        source: a folder or a file.
        images: the folder of image files, where the format has such files.
        format: "flickr8k", "karpathy", "coco", "precomp" or "own", if it should not be guessed.

    Example:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "mine.csv"
        >>> _ = path.write_text("image;caption\na.jpg;A cat\n")
        >>> read_captions(path).captions
        ('A cat',)
    """
    path = Path(source)
    if format is not None and format not in FORMATS:
        raise InputError(
            f"format is {format!r}{nearest(format, FORMATS)}, wanted one of {', '.join(FORMATS)}"
        )
    if not path.exists():
        raise InputError(f"{path}: no such file or folder, wanted captions: {_LOOKED_FOR}")
    return _READERS[format or detect_format(path)](path, images)


def detect_format(source: str | Path) -> str:
    """Return the name of the caption format that `source` is in, or say what was looked for."""
    path = Path(source)
    fitting = _folder_formats(path) if path.is_dir() else _file_formats(path)
    if len(fitting) > 1:
        raise InputError(
            f"{path}: fits the formats {' and '.join(fitting)}, say which is meant with format"
        )
    if not fitting:
        if path.is_dir():
            raise InputError(f"{path}: no captions found, looked for {_LOOKED_FOR}")
        raise InputError(
            f"{path}: fits no caption format, wanted JSON with images[].sentences (karpathy) or "
            "annotations[].caption (coco), lines name.jpg#0<TAB>caption (flickr8k), a file "
            "*_caps.txt (precomp), or .csv, .tsv or .jsonl (own)"
        )
    return fitting[0]


def _folder_formats(folder: Path) -> list[str]:
    fits = {
        "flickr8k": (folder / TOKEN_FILE).is_file(),
        "karpathy": bool(_karpathy_files(folder)),
        "coco": bool(caption_files(folder)),
        "precomp": any((folder / f"{split}_caps.txt").is_file() for split in SPLITS),
        "own": bool(_own_files(folder)),
    }
    return [name for name, fit in fits.items() if fit]


def _file_formats(path: Path) -> list[str]:
    suffix = path.suffix.lower()
    if suffix in (*JSONL_SUFFIXES, *TABLE_SUFFIXES):
        return ["own"]
    if _CAPS_FILE.fullmatch(path.name):
        return ["precomp"]
    content = read_bytes(path, "captions")
    if suffix == ".json":
        # Keys in the raw bytes tell as much as parsing a hundred megabytes twice; a quoted word
        # inside a caption is written with backslashes, so it does not match. VQA's answers are
        # called annotations too.
        fits = {
            "karpathy": b'"sentences"' in content,
            "coco": b'"annotations"' in content and b'"question_id"' not in content,
        }
        return [name for name, fit in fits.items() if fit]
    if _TOKEN_LINE.match(content.removeprefix(b"\xef\xbb\xbf")):
        return ["flickr8k"]
    return ["own"] if suffix == ".txt" else []


def _karpathy_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if _KARPATHY_FILE.fullmatch(path.name))


def _own_files(folder: Path) -> list[Path]:
    return [folder / name for name in OWN_FILES if (folder / name).is_file()]


def _only(folder: Path, files: list[Path], wanted: str) -> Path:
    if len(files) != 1:
        found = " and ".join(path.name for path in files) or "none"
        raise InputError(f"{folder}: has {found}, wanted {wanted}; name the file to read")
    return files[0]


def _flickr8k(path: Path, images: str | Path | None) -> CaptionedImages:
    if path.is_dir():
        return read_flickr8k(path, images=images)
    return read_flickr8k(path.parent, images=images, token_file=path)


def _karpathy(path: Path, images: str | Path | None) -> CaptionedImages:
    if path.is_dir():
        if images is None and (path / "images").is_dir():
            images = path / "images"
        path = _only(path, _karpathy_files(path), "one dataset_*.json")
    return read_karpathy(path, images=images)


def _coco(path: Path, images: str | Path | None) -> CaptionedImages:
    return read_coco(path, images=images)


def _precomp(path: Path, images: str | Path | None) -> CaptionedImages:
    if images is not None:
        raise InputError(f"{path}: a precomp folder names no image files, so images has no use")
    if path.is_dir():
        return read_precomp(path)
    match = _CAPS_FILE.fullmatch(path.name)
    if match is None:
        raise InputError(f"{path}: is a file, wanted a folder with e.g. train_caps.txt")
    return read_precomp(path.parent, splits=match[1])


def _own(path: Path, images: str | Path | None) -> CaptionedImages:
    if path.is_dir():
        path = _only(path, _own_files(path), "one of " + ", ".join(OWN_FILES))
    return read_own(path, images=images)


_READERS: dict[str, Callable[[Path, str | Path | None], CaptionedImages]] = {
    "flickr8k": _flickr8k,
    "karpathy": _karpathy,
    "coco": _coco,
    "precomp": _precomp,
    "own": _own,
}
