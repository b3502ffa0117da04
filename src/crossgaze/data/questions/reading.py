"""One call that reads any of the known question sets, telling the formats apart by their files."""

from __future__ import annotations

from pathlib import Path

from crossgaze.data.questions.daquar import QUESTION_FILE, read_daquar
from crossgaze.data.questions.easy_vqa import read_easy_vqa
from crossgaze.data.questions.questions import QuestionSet
from crossgaze.data.questions.vqa import read_vqa
from crossgaze.data.questions.vqa_folder import holds_vqa, read_vqa_folder
from crossgaze.errors import InputError, nearest

FORMATS = ("vqa", "daquar", "easy-vqa")


def read_questions(
    source: str | Path,
    annotations: str | Path | None = None,
    images: str | Path | None = None,
    format: str | None = None,  # noqa: A002 - the word a user of the command line expects
    task: str | None = None,
) -> QuestionSet:
    """Read a question set, whichever of the known formats it has.

    Args:
        source: a VQA questions JSON file or a folder of VQA's JSON files (all its splits are read,
            each with its annotations), the folder of DAQUAR (or its `all_qa_pairs.txt`), the
            data folder of easy-vqa, or the name "easy-vqa" for the installed package.
        annotations: the annotations JSON file of a VQA questions file.
        images: the folder of the images, for vqa and daquar.
        format: "vqa", "daquar" or "easy-vqa"; None to detect it.
        task: "open-ended" (what None means) or "multiple-choice", for a folder of VQA's files.

    Example:
        >>> read_questions("easy-vqa").describe()["questions"]
        48248
    """
    if format is not None and format not in FORMATS:
        raise InputError(
            f"format is {format!r}{nearest(format, FORMATS)}, wanted one of {', '.join(FORMATS)}"
        )
    found = format or detect_format(source)
    if annotations is not None and found != "vqa":
        raise InputError(f"annotations: {found} keeps its answers with its questions, wanted none")
    if images is not None and found == "easy-vqa":
        raise InputError("images: easy-vqa keeps its images with its questions, wanted none")
    if found == "vqa" and Path(source).is_dir():
        if annotations is not None:
            raise InputError("annotations: those in the folder are taken, wanted none")
        return read_vqa_folder(source, images=images, task=task or "open-ended")
    if task is not None:
        raise InputError(f"task: {source} has one task, only a folder of VQA's files has two")
    if found == "vqa":
        return read_vqa(source, annotations, images=images)
    if found == "daquar":
        path = Path(source)
        return read_daquar(path.parent if path.name == QUESTION_FILE else path, images=images)
    return read_easy_vqa(None if _is_name(source) else source)


def detect_format(source: str | Path) -> str:
    """Return which of `FORMATS` a file or folder has, by the files it holds.

    Example:
        >>> detect_format("easy-vqa")
        'easy-vqa'
    """
    if _is_name(source):
        return "easy-vqa"
    path = Path(source)
    if path.is_file():
        if path.name == QUESTION_FILE:
            return "daquar"
        if path.suffix.lower() == ".json":
            return "vqa"
    elif path.is_dir():
        if (path / QUESTION_FILE).is_file():
            return "daquar"
        if (path / "train" / "questions.json").is_file():
            return "easy-vqa"
        if holds_vqa(path):
            return "vqa"
    else:
        raise InputError(
            f"{path}: no such file or folder{nearest(str(source), ['easy-vqa'])}, wanted a "
            "question set"
        )
    raise InputError(
        f"{path}: not a question set, wanted a VQA questions .json file or a folder with e.g. "
        "v2_OpenEnded_mscoco_train2014_questions.json, a DAQUAR folder with "
        f"{QUESTION_FILE}, or an easy-vqa folder with train/questions.json"
    )


def _is_name(source: str | Path) -> bool:
    """Tell the name of the packaged set from a folder that happens to be called the same."""
    return str(source) == "easy-vqa" and not Path(source).exists()
