"""Reader for easy-vqa: simple questions about drawn shapes, carried by a package of that name."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from crossgaze.data.questions.questions import (
    Question,
    QuestionSet,
    image_files,
    with_image_file,
)
from crossgaze.data.textfiles import read_json, read_lines
from crossgaze.errors import FileFormatError, MissingExtraError, require_folder

SPLITS = ("train", "test")


def read_easy_vqa(folder: str | Path | None = None) -> QuestionSet:
    """Read easy-vqa from the installed package, or from a folder laid out like its data.

    Both splits number their images from 0, so an image is called `train/images/0.png`, and a
    question `train/0` after its place in the file. Questions whose image file is missing are left
    out and counted. The package holds 38,575 train and 9,673 test questions about 4,000 and 1,000
    images, with 13 answers.

    Args:
        folder: holds `answers.txt` (an answer a line) and, in `train/` and `test/`,
            `questions.json` (a list of [question, answer, image number]) and `images/N.png`;
            None for the package, which is found but not imported.

    Example:
        >>> read_easy_vqa().split("test").questions[0].text
        'what is the red shape?'
    """
    root = _package_data() if folder is None else Path(folder)
    require_folder(root, "the data folder of easy-vqa")
    lines = read_lines(root / "answers.txt", "the answers of easy-vqa")
    known = {line.strip() for line in lines} - {""}
    questions: list[Question] = []
    files: set[str] = set()
    for split in SPLITS:
        questions += _read_split(root / split / "questions.json", split, known)
        images = require_folder(root / split / "images", "the images of easy-vqa")
        files.update(f"{split}/images/{name}" for name in image_files(images).values())
    kept, left_out = with_image_file(questions, files, root)
    return QuestionSet("easy-vqa", kept, root, left_out)


def _package_data() -> Path:
    """Return the data folder of the installed package."""
    found = find_spec("easy_vqa")
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError("the question set easy-vqa", "easy-vqa", "vqa")
    return Path(next(iter(found.submodule_search_locations))) / "data"


def _read_split(path: Path, split: str, known: set[str]) -> list[Question]:
    """Return the questions of one file."""
    entries = read_json(path, f"the {split} questions of easy-vqa")
    if not isinstance(entries, list) or not entries:
        raise FileFormatError(path, "wanted a list of [question, answer, image number]")
    questions = []
    for index, entry in enumerate(entries):
        match entry:
            case [str(text), str(answer), int(image)] if image >= 0 and not isinstance(image, bool):
                pass
            case _:
                problem = f"entry {index} is {repr(entry)[:60]}"
                raise FileFormatError(path, f"{problem}, wanted [question, answer, image number]")
        if answer not in known:
            problem = f"entry {index} has the answer {answer!r}, which is not in answers.txt"
            raise FileFormatError(path, problem)
        questions.append(
            Question(
                id=f"{split}/{index}",
                image=f"{split}/images/{image}.png",
                text=text,
                answers=(answer,),
                answer=answer,
                answer_type="yes/no" if answer in ("yes", "no") else "other",
                split=split,
            )
        )
    return questions
