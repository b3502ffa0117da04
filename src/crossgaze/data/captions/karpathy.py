"""Karpathy's JSON: `dataset_flickr8k.json`, `dataset_flickr30k.json`, `dataset_coco.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.left_out import LeftOut
from crossgaze.data.textfiles import kind_of, name_problem, read_json, sentence_problem
from crossgaze.errors import FileFormatError, InputError, nearest, require_folder

SPLITS = {"train": "train", "val": "dev", "test": "test", "restval": "train"}


def read_karpathy(
    json: str | Path,
    *,
    images: str | Path | None = None,
    restval: Literal["train", "restval"] = "train",
) -> CaptionedImages:
    """Read `images[]` with `filename`, `split` and `sentences[].raw`.

    "val" becomes "dev". An image's id is its `filename`, or `filepath/filename` when `images` has
    a folder `filepath` (MS-COCO's train2014 and val2014). Blank sentences, and image files that no
    entry names, are left out and counted.

    Args:
        json: the file.
        images: the folder of image files; images without a file there are left out and counted.
        restval: the split of MS-COCO's "restval" images: "train", as papers train, or "restval".

    Example:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "dataset_toy.json"
        >>> entry = '{"filename": "a.jpg", "split": "val", "sentences": [{"raw": "A cat."}]}'
        >>> _ = path.write_text('{"images": [' + entry + '], "dataset": "toy"}')
        >>> read_karpathy(path).split("dev").captions
        ('A cat.',)
    """
    if restval not in ("train", "restval"):
        raise InputError(f"restval is {restval!r}, wanted 'train' or 'restval'")
    path = Path(json)
    folder = None if images is None else require_folder(images, "the folder of images")
    data = read_json(path, "Karpathy's JSON")
    entries = data.get("images") if isinstance(data, dict) else None
    if not isinstance(entries, list) or not entries:
        raise FileFormatError(path, "is not Karpathy's JSON: wanted an object with a list 'images'")
    reader = _Entries(path, folder, SPLITS | {"restval": restval})
    captions: dict[str, list[str]] = {}
    splits: dict[str, str] = {}
    place: dict[str, int] = {}
    blank: list[str] = []
    for index, entry in enumerate(entries):
        image, split, sentences = reader.read(index, entry)
        if image in place:
            raise FileFormatError(
                path, f"images[{index}]: {image!r} is already images[{place[image]}]"
            )
        place[image] = index
        spoken = [sentence for sentence in sentences if sentence]
        blank.extend([image] * (len(sentences) - len(spoken)))
        if not spoken:
            raise FileFormatError(path, f"images[{index}]: {image!r} has no sentence")
        captions[image], splits[image] = spoken, split
    name = data.get("dataset") if isinstance(data, dict) else None
    found = CaptionedImages.group(
        name if isinstance(name, str) and name else path.stem,
        captions,
        splits,
        left_out=LeftOut.of("blank sentences", blank),
        notes=_restval_note(restval, sum(entry["split"] == "restval" for entry in entries)),
    )
    return found if folder is None else found.in_folder(folder, count_unnamed=True)


def _restval_note(restval: str, count: int) -> tuple[str, ...]:
    if not count or restval != "train":
        return ()
    return (
        f"{count:,} images of the split restval are added to train; restval='restval' keeps "
        "them apart",
    )


class _Entries:
    """Checks one entry of `images[]` after the other; every problem names the entry."""

    def __init__(self, path: Path, folder: Path | None, split_names: dict[str, str]) -> None:
        self.path = path
        self.folder = folder
        self.split_names = split_names
        self.subfolders: dict[str, bool] = {}  # whether `folder` has it; one look for each

    def read(self, index: int, entry: object) -> tuple[str, str, list[str]]:
        """Return the id, the split and the sentences of images[index]."""
        if not isinstance(entry, dict):
            raise self.error(index, f"is {kind_of(entry)}, wanted an object")
        image = entry.get("filename")
        if problem := name_problem(image):
            raise self.error(index, f"filename {problem}")
        split = entry.get("split")
        if not isinstance(split, str) or split not in self.split_names:
            hint = nearest(str(split), self.split_names)
            raise self.error(index, f"split is {split!r}{hint}, wanted one of {[*SPLITS]}")
        sentences = entry.get("sentences")
        if not isinstance(sentences, list):
            raise self.error(index, f"sentences is {kind_of(sentences)}, wanted a list")
        raws = [self.sentence(index, number, sentence) for number, sentence in enumerate(sentences)]
        return self.located(index, str(image), entry), self.split_names[split], raws

    def located(self, index: int, image: str, entry: dict[str, object]) -> str:
        """Return the image's id: with its `filepath` if `folder` has that folder."""
        under = entry.get("filepath")
        if self.folder is None or under is None or under == "":
            return image
        if problem := name_problem(under):
            raise self.error(index, f"filepath {problem}")
        under = str(under).strip("/")
        if under not in self.subfolders:
            self.subfolders[under] = (self.folder / under).is_dir()
        return f"{under}/{image}" if self.subfolders[under] else image

    def sentence(self, index: int, number: int, sentence: object) -> str:
        """Return the sentence as its author wrote it, "" for a blank one."""
        if not isinstance(sentence, dict):
            problem: str | None = f"is {kind_of(sentence)}, wanted an object with 'raw'"
        else:
            raw = sentence.get("raw")
            if isinstance(raw, str) and not raw.strip():
                return ""
            problem = sentence_problem(raw)
            if problem is None:
                return str(raw).strip()
            problem = f"raw {problem}"
        raise self.error(index, f"sentences[{number}] {problem}")

    def error(self, index: int, problem: str) -> FileFormatError:
        return FileFormatError(self.path, f"images[{index}]: {problem}")
