"""A folder of VQA's JSON files: which questions belong to which annotations, by their names.

v2_OpenEnded_mscoco_train2014_questions.json belongs to v2_mscoco_train2014_annotations.json.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from crossgaze.data.left_out import LeftOut
from crossgaze.data.questions.questions import QuestionSet
from crossgaze.data.questions.vqa import read_pairs
from crossgaze.errors import InputError, nearest, require_folder

TASKS = {"open-ended": "OpenEnded", "multiple-choice": "MultipleChoice"}
# v1 has no edition in its names; the images are "mscoco" or "abstract_v002".
_NAME = re.compile(
    r"(?:(?P<edition>v\d+)_)?(?:(?P<task>OpenEnded|MultipleChoice)_)?"
    r"(?P<about>mscoco|abstract_v\d+)_(?P<subtype>[A-Za-z0-9.-]+)_"
    r"(?P<kind>questions|annotations)\.json"
)
# The questions of the first are among those of the second.
_PART_OF = {"test-dev2015": "test2015"}
_ORDER = ("train", "val", "test")


@dataclass(frozen=True)
class _File:
    """One file of the folder, and what its name says."""

    path: Path
    edition: str
    about: str
    subtype: str
    task: str  # "" for annotations, which serve both tasks


def read_vqa_folder(
    folder: str | Path, *, images: str | Path | None = None, task: str = "open-ended"
) -> QuestionSet:
    """Read every question file of one task in a folder, with its annotations, as one set.

    Left out and counted, beside what `read_vqa` leaves out: question files of the other task,
    those whose questions are all in another file (test-dev2015 in test2015), and annotations that
    have no questions. Questions without an annotations file, as those of test, have no answers.

    Args:
        folder: with files named as VQA's authors name them, such as
            OpenEnded_mscoco_val2014_questions.json and mscoco_val2014_annotations.json, or v2_...
        images: folder of the image files, as for `read_vqa`; it may hold the images of some splits.
        task: "open-ended" or "multiple-choice".

    Example:
        >>> import json, tempfile
        >>> asked = {"question_id": 90, "image_id": 9, "question": "What is it?"}
        >>> folder = Path(tempfile.mkdtemp())
        >>> path = folder / "v2_OpenEnded_mscoco_val2014_questions.json"
        >>> _ = path.write_text(json.dumps({"data_subtype": "val2014", "questions": [asked]}))
        >>> read_vqa_folder(folder).questions[0].split
        'dev'
    """
    folder = require_folder(folder, "a folder with VQA's JSON files")
    if task not in TASKS:
        raise InputError(
            f"task is {task!r}{nearest(task, TASKS)}, wanted one of {', '.join(TASKS)}"
        )
    files = _vqa_files(folder)
    asked = [file for file in files if file.task]
    if not asked:
        raise InputError(
            f"{folder}: has no VQA questions, looked for names such as "
            "v2_OpenEnded_mscoco_train2014_questions.json"
        )
    chosen = [file for file in asked if file.task == TASKS[task]]
    others = [file.path.name for file in asked if file.task != TASKS[task]]
    if not chosen:
        other = next(name for name in TASKS if name != task)
        raise InputError(
            f"{folder}: has no {task} questions, only {others[0]}; ask for them with task={other!r}"
        )
    _require_one_kind(folder, chosen)
    there = {file.subtype for file in chosen}
    parts = [file for file in chosen if _PART_OF.get(file.subtype) in there]
    left_out = LeftOut.of("question files of the other task", others)
    left_out += LeftOut.of("question files that are part of another", [f.path.name for f in parts])
    answers = {(f.edition, f.about, f.subtype): f.path for f in files if not f.task}
    pairs: list[tuple[Path, Path | None]] = [
        (file.path, answers.pop((file.edition, file.about, file.subtype), None))
        for file in chosen
        if file not in parts
    ]
    unused = [path.name for path in answers.values()]
    left_out += LeftOut.of("annotation files without their questions", unused)
    found = read_pairs(folder.resolve().name, pairs, images=images)
    return replace(found, left_out=left_out + found.left_out)


def holds_vqa(folder: Path) -> bool:
    """Whether a folder has VQA's question or annotation files, by their names."""
    return bool(_vqa_files(folder))


def _vqa_files(folder: Path) -> list[_File]:
    """Return the files whose names are VQA's, train before val before test."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed ({error.strerror})") from error
    found = []
    for match in filter(None, map(_NAME.fullmatch, names)):
        task = match["task"] or ""
        if bool(task) == (match["kind"] == "questions") and (folder / match[0]).is_file():
            edition = match["edition"] or "v1"
            path = folder / match[0]
            found.append(_File(path, edition, match["about"], match["subtype"], task))
    return sorted(found, key=lambda file: _rank(file.subtype))


def _rank(subtype: str) -> int:
    places = [place for place, name in enumerate(_ORDER) if subtype.startswith(name)]
    return places[0] if places else len(_ORDER)


def _require_one_kind(folder: Path, files: list[_File]) -> None:
    """Refuse v1 beside v2, or photographs beside abstract scenes: their ids mean other things."""
    first = files[0]
    for file in files:
        if (file.edition, file.about) != (first.edition, first.about):
            raise InputError(
                f"{folder}: has {first.path.name} and {file.path.name}, which are different "
                "sets; name the file to read"
            )
