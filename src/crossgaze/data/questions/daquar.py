"""Reader for DAQUAR: questions about indoor photographs, one text file and two lists of images."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from crossgaze.data.left_out import LeftOut
from crossgaze.data.questions.questions import (
    Question,
    QuestionSet,
    image_files,
    left_out_questions,
    with_image_file,
)
from crossgaze.data.textfiles import read_lines
from crossgaze.errors import FileFormatError, require_folder

QUESTION_FILE = "all_qa_pairs.txt"
LIST_FILES = {"train": "train_images_list.txt", "test": "test_images_list.txt"}

# The words before the image vary ("in the", "of the", "in this", "in", or none), so the image
# alone makes a line a question.
_ENDING = re.compile(r"\bimage\s*([0-9]{1,9})[\s?]*$", re.IGNORECASE)
_MENTION = re.compile(r"\b(image)\s*([0-9]{1,9})\b", re.IGNORECASE)
_PLACE = re.compile(r"\b(?:in|on)(?:\s+(?:the|this))?\s+image$", re.IGNORECASE)
_FILE_NAME = re.compile(r"image\s*([0-9]{1,9})(?:\.(?:jpg|jpeg|png))?", re.IGNORECASE)


def read_daquar(folder: str | Path, *, images: str | Path | None = None) -> QuestionSet:
    r"""Read DAQUAR from its folder.

    `all_qa_pairs.txt` holds a question line that ends with its image (`... in the image7 ?`), then
    its answer line. Blank lines, spaces at the ends, CRLF, `image 7` and a lost `?` are taken as
    well; any other line is an error. Answers between commas make one answer together: `answer` is
    the whole line, `answers` are its parts. DAQUAR names no answer types: a whole number is given
    "number", yes and no "yes/no", the rest "other".

    The number of the image would let a model know the image by its name, so it is not in `text`:
    "in the image7 ?" (also "on the", "in this", "in") is cut off at the end, and `image7` becomes
    `image` elsewhere ("left of the image?"). `raw` is the line as written.

    Left out and counted: questions about an image in neither list, listed images without a
    question, questions whose image file is missing.

    Args:
        folder: holds `all_qa_pairs.txt`, `train_images_list.txt` and `test_images_list.txt`.
        images: folder of `imageN.jpg` or `.png`; when not given, `folder/images` if that exists,
            else the questions are read without files.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "all_qa_pairs.txt").write_text("what is red in the image2 ?\napple\n")
        >>> _ = (folder / "train_images_list.txt").write_text("image2\n")
        >>> _ = (folder / "test_images_list.txt").write_text("")
        >>> read_daquar(folder).questions[0].text
        'what is red?'
    """
    folder = require_folder(folder, f"the DAQUAR folder with {QUESTION_FILE}")
    image_folder: Path | None = folder / "images"
    if images is not None:
        image_folder = require_folder(images, "the folder of the DAQUAR images")
    elif not (folder / "images").is_dir():
        image_folder = None
    splits = _read_lists(folder)
    files = {} if image_folder is None else _image_files(image_folder)

    questions: list[Question] = []
    unlisted: list[str] = []
    asked: set[int] = set()
    for place, pair in enumerate(_read_pairs(folder / QUESTION_FILE), start=1):
        if pair.image not in splits:
            unlisted.append(f"image{pair.image}")
            continue
        asked.add(pair.image)
        questions.append(
            Question(
                id=str(place),
                image=files.get(pair.image, f"image{pair.image}.jpg"),
                text=pair.text,
                answers=pair.answers,
                answer=pair.answer,
                answer_type=_answer_type(pair.answer),
                split=splits[pair.image],
                raw=pair.raw,
            )
        )
    if not questions:
        problem = "holds no question about an image of the train and test lists"
        raise FileFormatError(folder / QUESTION_FILE, problem)

    idle = [f"image{number}" for number in splits if number not in asked]
    left_out = left_out_questions("questions about an image in neither list", unlisted)
    left_out += LeftOut.of("listed images without a question", idle)
    if image_folder is None:
        return QuestionSet("daquar", tuple(questions), None, left_out)
    kept, missing = with_image_file(questions, set(files.values()), image_folder)
    return QuestionSet("daquar", kept, image_folder, left_out + missing)


class _Pair(NamedTuple):
    """A question line and its answer line, parsed."""

    image: int
    raw: str
    text: str
    answer: str
    answers: tuple[str, ...]


def _read_pairs(path: Path) -> Iterator[_Pair]:
    """Yield the questions of the file in order; every line is part of one, or blank."""
    lines = read_lines(path, "DAQUAR's questions and answers")
    rows = [(n, line.strip()) for n, line in enumerate(lines, start=1) if line.strip()]
    pairs = zip_longest(rows[::2], rows[1::2], fillvalue=(0, ""))
    for (number, raw), (answer_number, answer) in pairs:
        ending = _ENDING.search(raw)
        if ending is None:
            problem = f"{_shown(raw)} is not a question, wanted it to end 'in the imageN ?'"
            raise FileFormatError(path, problem, line=number)
        if not answer or _ENDING.search(answer):
            raise FileFormatError(path, "the question has no answer line after it", line=number)
        answers = tuple(part.strip() for part in answer.split(","))
        if not all(answers):
            problem = f"{_shown(answer)} has nothing between two commas, wanted an answer"
            raise FileFormatError(path, problem, line=answer_number)
        image = int(ending[1])
        others = [other for _, other in _MENTION.findall(raw) if int(other) != image]
        if others:
            problem = f"names image{others[0]} and ends with image{image}, wanted one image"
            raise FileFormatError(path, problem, line=number)
        text = _without_number(raw)
        if text.lower() in ("?", "image?"):
            raise FileFormatError(path, "there is no question before the image", line=number)
        yield _Pair(image, raw, text, answer, answers)


def _without_number(raw: str) -> str:
    """Return a question without the number of its image.

    Example:
        >>> _without_number("what is left of the desk in the image7 ?")
        'what is left of the desk?'
        >>> _without_number("what is on the left side of the image7 ?")
        'what is on the left side of the image?'
    """
    text = _MENTION.sub(r"\1", raw).rstrip("? ")
    return _PLACE.sub("", text).rstrip() + "?"


def _answer_type(answer: str) -> str:
    if answer in ("yes", "no"):
        return "yes/no"
    return "number" if re.fullmatch("[0-9]+", answer) else "other"


def _read_lists(folder: Path) -> dict[int, str]:
    """Return the split of each image number."""
    splits: dict[int, str] = {}
    for split, name in LIST_FILES.items():
        path = folder / name
        for number, line in enumerate(read_lines(path, f"DAQUAR's list of {split} images"), 1):
            if not line.strip():
                continue
            found = _FILE_NAME.fullmatch(line.strip())
            if found is None:
                problem = f"{_shown(line)} is not an image, wanted imageN"
                raise FileFormatError(path, problem, line=number)
            image = int(found[1])
            if image in splits:
                problem = f"image{image} is already in the {splits[image]} list"
                raise FileFormatError(path, problem, line=number)
            splits[image] = split
    return splits


def _image_files(folder: Path) -> dict[int, str]:
    """Map image numbers to the paths of their files; a .jpg wins over a .png."""
    found = ((_FILE_NAME.fullmatch(name), path) for name, path in image_files(folder).items())
    numbered = [(path, int(match[1])) for match, path in found if match and "." in match[0]]
    return {number: path for path, number in sorted(numbered, reverse=True)}


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
