"""Flickr8k as its authors give it: a file of numbered captions and a list of images a split."""

from __future__ import annotations

from pathlib import Path

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.textfiles import name_problem, read_lines, sentence_problem
from crossgaze.errors import FileFormatError, require_folder

TOKEN_FILE = "Flickr8k.token.txt"
SPLIT_LISTS = {split: f"Flickr_8k.{split}Images.txt" for split in ("train", "dev", "test")}
# The second is the official archive's own spelling.
IMAGE_FOLDERS = ("images", "Flicker8k_Dataset", "Flickr8k_Dataset")


def read_flickr8k(
    folder: str | Path,
    *,
    images: str | Path | None = None,
    token_file: str | Path | None = None,
) -> CaptionedImages:
    r"""Read `Flickr8k.token.txt` and `Flickr_8k.{train,dev,test}Images.txt`.

    An image that no list names gets the split "". Where the image files are at hand, images
    without a file and files without captions are counted in `left_out` (the official caption file
    has five captions of "2258277193_586949ec62.jpg.1", a file that does not exist).

    Args:
        folder: holds the lists, and the caption file unless `token_file` says otherwise.
        images: the folder of image files; by default `images` in `folder`, if it is there.
        token_file: another file of lines `name.jpg#0<TAB>caption` (Flickr30K's, for example).

    Example:
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> _ = (folder / "Flickr8k.token.txt").write_text("a.jpg#0\tA cat .\na.jpg#1\tCats .\n")
        >>> _ = (folder / "Flickr_8k.devImages.txt").write_text("a.jpg\n")
        >>> read_flickr8k(folder).split("dev").captions
        ('A cat .', 'Cats .')
    """
    folder = require_folder(folder, "a folder with Flickr8k's caption file and lists")
    tokens = Path(token_file) if token_file is not None else folder / TOKEN_FILE
    captions = _read_tokens(tokens)
    splits: dict[str, str] = {}
    notes = []
    seen: dict[str, str] = {}
    for split, name in SPLIT_LISTS.items():
        if not (folder / name).exists():
            notes.append(f"{folder} has no {name}, so no image is in the split {split}")
            continue
        for number, image in _read_list(folder / name):
            if image in seen:
                raise FileFormatError(
                    folder / name, f"image {image!r} is already in {seen[image]}", line=number
                )
            if image not in captions:
                raise FileFormatError(
                    folder / name, f"image {image!r} has no caption in {tokens}", line=number
                )
            seen[image] = f"{name}, line {number}"
            splits[image] = split
    found = CaptionedImages.group("flickr8k", captions, splits, notes=tuple(notes))
    if images is None:
        images = next((folder / n for n in IMAGE_FOLDERS if (folder / n).is_dir()), None)
    return found if images is None else found.in_folder(images, count_unnamed=True)


def _read_tokens(path: Path) -> dict[str, list[str]]:
    """Return the captions of each image, both in file order."""
    captions: dict[str, list[str]] = {}
    first_line: dict[tuple[str, str], int] = {}
    for number, line in enumerate(read_lines(path, "Flickr8k's caption file"), start=1):
        if not line.strip():
            continue
        key, tab, caption = line.partition("\t")
        image, mark, count = key.strip().rpartition("#")
        if not (tab and mark and count.isdecimal()):
            raise FileFormatError(
                path, f"is {line[:60]!r}, wanted name.jpg#0, a tab and a caption", line=number
            )
        if problem := name_problem(image):
            raise FileFormatError(path, f"the image name {problem}", line=number)
        if problem := sentence_problem(caption):
            raise FileFormatError(path, f"the caption of {key!r} {problem}", line=number)
        earlier = first_line.setdefault((image, count), number)
        if earlier != number:
            raise FileFormatError(
                path, f"caption {key!r} was already given on line {earlier}", line=number
            )
        captions.setdefault(image, []).append(caption.strip())
    if not captions:
        raise FileFormatError(path, "holds no caption")
    return captions


def _read_list(path: Path) -> list[tuple[int, str]]:
    """Return (line number, image name) for each name in a split's list."""
    lines = enumerate(read_lines(path, "a list of image names"), start=1)
    return [(number, line.strip()) for number, line in lines if line.strip()]
