"""MS-COCO's own caption files: `images[]` and `annotations[]` joined by the image's number."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from crossgaze.data.captions.captioned import SPLIT_NAMES, CaptionedImages
from crossgaze.data.left_out import LeftOut
from crossgaze.data.textfiles import kind_of, name_problem, read_json, sentence_problem
from crossgaze.errors import FileFormatError, InputError, nearest, require_folder

# captions_val.json as well as captions_val2014.json; "val2014" is also the image folder's name.
CAPTION_FILE = re.compile(r"captions_((train|val|test)(20\d\d)?)\.json")


def read_coco(
    *files_or_folder: str | Path | Mapping[str, str | Path], images: str | Path | None = None
) -> CaptionedImages:
    """Read COCO caption JSON; an image may have any number of captions, not only five.

    "val" becomes "dev". An image's id is its `file_name`, or `val2014/file_name` when the file is
    captions_val2014.json and the images folder has a folder `val2014` (the official layout).
    Images and captions that say nothing (no caption at all, a blank one) and image files that no
    caption names are left out and counted.

    Args:
        files_or_folder: one folder with captions_{train,val,test}.json or
            captions_{train,val}20xx.json (in it or in its `annotations`), or one mapping of split
            to file, or files, whose names tell their split (another name gives the split "").
        images: the folder of image files; images without a file there are left out and counted.
            By default `images` in the folder, or the folder itself if it has e.g. `val2014`.

    Example:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "captions_val.json"
        >>> images = '{"images": [{"id": 7, "file_name": "a.jpg"}], '
        >>> _ = path.write_text(images + '"annotations": [{"image_id": 7, "caption": "A cat"}]}')
        >>> read_coco(path).split("dev").captions
        ('A cat',)
    """
    files, images = _resolve(files_or_folder, images)
    folder = None if images is None else require_folder(images, "the folder of images")
    found = _Found()
    for split, path in files:
        _read_file(path, split, folder, found)
    left_out = LeftOut.of("images without a caption", found.silent)
    left_out += LeftOut.of("blank captions", found.blank)
    if not found.captions:
        raise FileFormatError(files[0][1], "no image has a caption")
    result = CaptionedImages.group("coco", found.captions, found.splits, left_out=left_out)
    if folder is None:
        return result
    return result.in_folder(folder, count_unnamed=True, silent=found.silent)


def caption_files(folder: Path) -> list[Path]:
    """Return the COCO caption files in `folder`, or else in its `annotations`."""
    for place in (folder, folder / "annotations"):
        if place.is_dir():
            files = sorted(path for path in place.iterdir() if CAPTION_FILE.fullmatch(path.name))
            if files:
                return files
    return []


def _resolve(
    sources: tuple[str | Path | Mapping[str, str | Path], ...], images: str | Path | None
) -> tuple[list[tuple[str, Path]], str | Path | None]:
    """Return (split, file) for each file to read, and the images folder if there is one."""
    files: list[tuple[str, Path]] = []
    if not sources:
        raise InputError("read_coco: got nothing to read, wanted a folder, files, or split: file")
    for source in sources:
        if isinstance(source, Mapping):
            files.extend((_split(str(name)), Path(path)) for name, path in source.items())
        elif Path(source).is_dir():
            folder = Path(source)
            inside = caption_files(folder)
            if not inside:
                raise InputError(
                    f"{folder}: has no captions_train.json, captions_val.json, captions_test.json "
                    "nor captions_{train,val}20xx.json, neither has its folder annotations"
                )
            files.extend(_one_a_split(folder, inside))
            images = images if images is not None else _images_in(folder, inside)
        else:
            files.append((_split_of(Path(source)), Path(source)))
    return files, images


def _one_a_split(folder: Path, files: list[Path]) -> list[tuple[str, Path]]:
    """Return (split, file); the editions of 2014 and 2017 hold the same images cut differently."""
    of_split: dict[str, Path] = {}
    for path in files:
        other = of_split.setdefault(_split_of(path), path)
        if other != path:
            raise InputError(
                f"{folder}: has both {other.name} and {path.name}, name the files to read"
            )
    return list(of_split.items())


def _split(name: str) -> str:
    if name not in SPLIT_NAMES:
        raise InputError(
            f"read_coco: {name!r} is not a split{nearest(name, SPLIT_NAMES)}, wanted train, val "
            "or test"
        )
    return SPLIT_NAMES[name]


def _split_of(path: Path) -> str:
    match = CAPTION_FILE.fullmatch(path.name)
    return SPLIT_NAMES[match[2]] if match else ""


def _images_in(folder: Path, files: list[Path]) -> Path | None:
    if (folder / "images").is_dir():
        return folder / "images"
    years = [match[1] for path in files if (match := CAPTION_FILE.fullmatch(path.name))]
    return folder if any((folder / year).is_dir() for year in years) else None


@dataclass(frozen=True)
class _Found:
    """What the files read so far hold, by image id."""

    captions: dict[str, list[str]] = field(default_factory=dict)
    splits: dict[str, str] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)
    silent: list[str] = field(default_factory=list)
    blank: list[str] = field(default_factory=list)


def _read_file(path: Path, split: str, folder: Path | None, found: _Found) -> None:
    data = read_json(path, "COCO's caption JSON")
    if not isinstance(data, dict):
        raise FileFormatError(path, f"is {kind_of(data)}, wanted an object with images")
    names: dict[int | str, str] = {}  # COCO's number of an image -> our id
    under = _subfolder(path, folder)
    for index, entry in enumerate(_objects(path, data, "images")):
        number, name = entry.get("id"), entry.get("file_name")
        where = f"images[{index}]"
        if not isinstance(number, int | str):
            raise FileFormatError(path, f"{where}: id is {kind_of(number)}, wanted a number")
        if problem := name_problem(name):
            raise FileFormatError(path, f"{where}: file_name {problem}")
        image = f"{under}{name}"
        if number in names:
            raise FileFormatError(path, f"{where}: id {number} is already {names[number]!r}")
        if image in found.origin:
            raise FileFormatError(path, f"{where}: {image!r} is already {found.origin[image]}")
        names[number] = image
        found.origin[image] = f"{where} of {path}"
        found.splits[image] = split
    captions = _captions(path, _objects(path, data, "annotations"), names, found.blank)
    found.captions.update((image, captions[image]) for image in names.values() if image in captions)
    found.silent.extend(image for image in names.values() if image not in captions)


def _captions(
    path: Path,
    annotations: list[dict[str, object]],
    names: dict[int | str, str],
    blank: list[str],
) -> dict[str, list[str]]:
    """Return the captions of each image that has one, in file order."""
    captions: dict[str, list[str]] = {}
    place: dict[object, int] = {}
    for index, entry in enumerate(annotations):
        number, caption, own = entry.get("image_id"), entry.get("caption"), entry.get("id")
        where = f"annotations[{index}]"
        if not isinstance(number, int | str) or number not in names:
            raise FileFormatError(path, f"{where}: image_id {number!r} is no id in images")
        if isinstance(own, int | str) and place.setdefault(own, index) != index:
            raise FileFormatError(path, f"{where}: id {own} is already annotations[{place[own]}]")
        if isinstance(caption, str) and not caption.strip():
            blank.append(names[number])
            continue
        if problem := sentence_problem(caption):
            raise FileFormatError(path, f"{where}: caption {problem}")
        captions.setdefault(names[number], []).append(str(caption).strip())
    return captions


def _subfolder(path: Path, folder: Path | None) -> str:
    """Return 'val2014/' when the images of captions_val2014.json lie in such a folder."""
    match = CAPTION_FILE.fullmatch(path.name)
    if folder is None or match is None or not (folder / match[1]).is_dir():
        return ""
    return f"{match[1]}/"


def _objects(path: Path, data: dict[str, object], key: str) -> list[dict[str, object]]:
    """Return the list of objects under `key`."""
    entries = data.get(key)
    if not isinstance(entries, list):
        raise FileFormatError(
            path, f"is not COCO's caption JSON: {key} is {kind_of(entries)}, wanted a list"
        )
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise FileFormatError(path, f"{key}[{index}]: is {kind_of(entry)}, wanted an object")
    return entries
