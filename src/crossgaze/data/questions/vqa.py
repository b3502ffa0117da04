"""Reader for the questions and annotations JSON of VQA v1 and v2 (and OK-VQA, which shares it).

Format: https://visualqa.org/download.html and https://visualqa.org/vqa_v1_download.html
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from crossgaze.data.left_out import LeftOut
from crossgaze.data.questions.questions import (
    ANSWER_TYPES,
    Question,
    QuestionSet,
    image_files,
    with_image_file,
)
from crossgaze.data.textfiles import read_json, sentence_problem
from crossgaze.errors import FileFormatError, require_folder

# Some question files are not named after the images they ask about: test-dev is a part of test,
# trainval a sum, and the balanced abstract scenes of 2017 are those of 2015.
_REAL_IMAGES_OF = {
    "test-dev2015": ("test2015",),
    "trainval2014": ("train2014", "val2014"),
    "": ("train2014", "val2014", "test2015"),
}
_ABSTRACT_IMAGES_OF = {
    "train2017": ("train2015",),
    "val2017": ("val2015",),
    "": ("train2015", "val2015", "test2015"),
}


def read_vqa(
    questions: str | Path,
    annotations: str | Path | None = None,
    *,
    images: str | Path | None = None,
    split: str = "",
) -> QuestionSet:
    """Read an OpenEnded or MultipleChoice question file, with its annotations if there are any.

    Left out and counted: questions without an annotation (when `annotations` is given),
    annotations without a question, questions whose image file is missing (when `images` is given).
    Ten answers are usual but not demanded; `QuestionSet.describe` tells how many there are. Where
    `multiple_choice_answer` is missing (OK-VQA), the most frequent answer is the consensus, the
    first of equals.

    Args:
        questions: JSON file with `questions`: `question_id`, `image_id`, `question` and, in the
            multiple-choice file, `multiple_choices`.
        annotations: JSON file with `annotations`: `question_id`, `image_id`, `answers`,
            `answer_type`, `multiple_choice_answer`; None for a test set.
        images: folder of the image files, which may lie one folder deeper (`train2014/`), named
            `COCO_train2014_000000000009.jpg`, `000000000009.jpg`, or for abstract scenes
            `abstract_v002_train2015_000000000009.png`. None to go without files.
        split: the split of all the questions; "" takes it from the file's `data_subtype`
            (train* is "train", val* "dev", test* "test").

    Example:
        >>> import json, tempfile
        >>> asked = {"question_id": 90, "image_id": 9, "question": "What is it?"}
        >>> path = Path(tempfile.mkdtemp()) / "questions.json"
        >>> _ = path.write_text(json.dumps({"data_subtype": "val2014", "questions": [asked]}))
        >>> read_vqa(path).questions[0].image
        'COCO_val2014_000000000009.jpg'
    """
    source = Path(questions)
    answered = None if annotations is None else Path(annotations)
    return read_pairs(source.stem, [(source, answered)], images=images, split=split)


def read_pairs(
    name: str,
    pairs: Sequence[tuple[Path, Path | None]],
    *,
    images: str | Path | None = None,
    split: str = "",
) -> QuestionSet:
    """Read several question files, each with its annotations or None, as one set (see read_vqa)."""
    folder = None if images is None else require_folder(images, "the folder of the images")
    files = {} if folder is None else image_files(folder)
    taken: list[Question] = []
    unanswered: list[str] = []
    orphans: list[str] = []
    for source, answers in pairs:
        read = _read_pair(source, answers, files, split)
        taken += read[0]
        unanswered += read[1]
        orphans += read[2]
    left_out = LeftOut.of("questions without an annotation", unanswered)
    left_out += LeftOut.of("annotations without a question", orphans)
    if folder is None:
        return QuestionSet(name, tuple(taken), None, left_out)
    kept, missing = with_image_file(taken, set(files.values()), folder)
    return QuestionSet(name, kept, folder, left_out + missing)


def _read_pair(
    source: Path, annotations: Path | None, files: dict[str, str], split: str
) -> tuple[list[Question], list[str], list[str]]:
    """Return the questions, the ids of those without annotation, and annotations without one."""
    head, entries = _read(source, "questions", "a VQA questions JSON file")
    subtype = head.subtype()
    abstract = head.text("data_type", default="").startswith("abstract")
    notes = None if annotations is None else _read_annotations(annotations, source, subtype)

    taken: list[Question] = []
    places: dict[str, str] = {}
    unanswered: list[str] = []
    for entry in entries:
        question_id = entry.question_id(places)
        image_id = entry.image_id()
        note = None if notes is None else notes.get(question_id)
        if notes is not None and note is None:
            unanswered.append(question_id)
            continue
        if note is not None and note.entry.image_id() != image_id:
            note.entry.fail("image_id", f"{image_id}, as question {question_id} has in {source}")
        names = _image_names(image_id, subtype, abstract)
        taken.append(
            Question(
                id=question_id,
                image=next((files[name] for name in names if name in files), names[0]),
                text=entry.question(),
                answers=note.answers if note else (),
                answer=note.answer if note else None,
                answer_type=note.answer_type if note else "",
                choices=entry.choices(),
                split=split or _split_of(subtype),
            )
        )
    if not taken:
        problem = f"none of its {len(notes or ()):,} annotations belongs to a question of {source}"
        raise FileFormatError(str(annotations), problem)
    orphans = [question_id for question_id in notes or () if question_id not in places]
    return taken, unanswered, orphans


@dataclass(frozen=True, slots=True)
class _Entry:
    """One JSON object of a file, and where it stands, so that a bad field can be named."""

    path: Path
    at: str
    fields: dict[str, object]

    def fail(self, key: str, wanted: str) -> NoReturn:
        found = f"is {_shown(self.fields[key])}" if key in self.fields else "is missing"
        raise FileFormatError(self.path, f"{self.at}: {key!r} {found}, wanted {wanted}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self.fields.get(key, default)
        return value if isinstance(value, str) else self.fail(key, "a string")

    def question(self) -> str:
        """Return the question as written, which may not be blank."""
        text = self.text("question")
        if problem := sentence_problem(text):
            raise FileFormatError(self.path, f"{self.at}: 'question' {problem}")
        return text

    def subtype(self) -> str:
        """Return which images the file is about, "" when it does not say."""
        value = self.text("data_subtype", default="")
        if value and (not re.fullmatch(r"[A-Za-z0-9_.-]+", value) or ".." in value):
            self.fail("data_subtype", "letters, digits and _.- such as train2014")
        return value

    def image_id(self) -> int:
        value = self.fields.get("image_id")
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.fail("image_id", "an integer from 0")
        return value

    def question_id(self, places: dict[str, str]) -> str:
        """Return the id and note in `places` where it stands; an id seen before is an error."""
        value = self.fields.get("question_id")
        if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
            self.fail("question_id", "an integer or a string")
        question_id = str(value)
        if places.setdefault(question_id, self.at) != self.at:
            self.fail("question_id", f"another: {places[question_id]} has this one")
        return question_id

    def answers(self) -> tuple[str, ...]:
        """Return the human answers as written; an empty string is an answer too."""
        value = self.fields.get("answers")
        if not isinstance(value, list) or not value:
            self.fail("answers", "a list of at least one answer")
        answers = []
        for index, item in enumerate(value):
            answer = item.get("answer") if isinstance(item, dict) else None
            if not isinstance(answer, str):
                problem = f"answers[{index}] is {_shown(item)}, wanted an object with an 'answer'"
                raise FileFormatError(self.path, f"{self.at}: {problem}")
            answers.append(answer)
        return tuple(answers)

    def answer_type(self) -> str:
        value = self.text("answer_type", default="")
        if value and value not in ANSWER_TYPES:
            self.fail("answer_type", f"one of {', '.join(ANSWER_TYPES)}")
        return value

    def choices(self) -> tuple[str, ...]:
        value = self.fields.get("multiple_choices", [])
        if not isinstance(value, list) or not all(isinstance(choice, str) for choice in value):
            self.fail("multiple_choices", "a list of strings")
        return tuple(value)


@dataclass(frozen=True, slots=True)
class _Annotation:
    entry: _Entry
    answers: tuple[str, ...]
    answer: str
    answer_type: str


def _read_annotations(path: Path, questions: Path, subtype: str) -> dict[str, _Annotation]:
    """Return the annotations of a file by question id, in its order."""
    head, entries = _read(path, "annotations", "a VQA annotations JSON file")
    if head.subtype() and subtype and head.subtype() != subtype:
        head.fail("data_subtype", f"{subtype!r}, as {questions} has")
    notes: dict[str, _Annotation] = {}
    places: dict[str, str] = {}
    for entry in entries:
        question_id = entry.question_id(places)
        entry.image_id()
        answers = entry.answers()
        usual = Counter(answers).most_common(1)[0][0]
        answer = entry.text("multiple_choice_answer", default=usual)
        notes[question_id] = _Annotation(entry, answers, answer, entry.answer_type())
    return notes


def _read(path: Path, key: str, what: str) -> tuple[_Entry, list[_Entry]]:
    """Return the head of a JSON file and the objects of its list `key`."""
    value = read_json(path, what)
    if not isinstance(value, dict):
        raise FileFormatError(path, f"holds {_shown(value)}, wanted an object with a list {key!r}")
    entries = value.get(key)
    if key == "questions" and entries is None and isinstance(value.get("annotations"), list):
        raise FileFormatError(
            path,
            "holds annotations (the answers), wanted the questions file; the answers are given "
            "beside it, as annotations",
        )
    if not isinstance(entries, list) or not entries:
        found = "an empty list" if entries == [] else "no list"
        keys = ", ".join(sorted(value)[:6])
        raise FileFormatError(path, f"has {found} {key!r} (its keys: {keys}), wanted {what}")
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise FileFormatError(path, f"{key}[{index}] is {_shown(entry)}, wanted an object")
    listed = [_Entry(path, f"{key}[{index}]", entry) for index, entry in enumerate(entries)]
    return _Entry(path, "the top level", value), listed


def _shown(value: object) -> str:
    """Return a value short enough for one line."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _split_of(subtype: str) -> str:
    found = re.match("train|val|test", subtype)
    return {"val": "dev"}.get(found[0], found[0]) if found else ""


def _image_names(image_id: int, subtype: str, abstract: bool) -> tuple[str, ...]:
    """Return the names an image's file may have, the one to use without files first."""
    known = _ABSTRACT_IMAGES_OF if abstract else _REAL_IMAGES_OF
    prefix, suffix = ("abstract_v002", "png") if abstract else ("COCO", "jpg")
    subsets = known.get(subtype, (subtype,))
    long = tuple(f"{prefix}_{subset}_{image_id:012d}.{suffix}" for subset in subsets)
    short = f"{image_id:012d}.{suffix}"
    return (*long, short) if len(long) == 1 else (short, *long)
