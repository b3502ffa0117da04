"""The one in-memory type for questions about images, whatever file they were read from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from crossgaze.data.left_out import LeftOut
from crossgaze.errors import InputError, nearest

ANSWER_TYPES = ("yes/no", "number", "other")


@dataclass(frozen=True, slots=True)
class Question:
    """One question about one image.

    Args:
        id: unique in its set.
        image: the image's file name, relative to the set's folder where there are files.
        text: the question, to be read by a model.
        answers: every human answer as written: ten in VQA, one or several in DAQUAR (there they
            are all needed together), one in easy-vqa, none where the answers are kept secret.
        answer: the consensus of `answers`, the class of a classifier; None without answers.
        answer_type: "yes/no", "number", "other", or "" when nobody says.
        choices: the answers to choose from in a multiple-choice set, else empty.
        split: "train", "dev", "test", or "" for none.
        raw: the question as its author wrote it; `text` itself unless a reader changed that.

    Example:
        >>> Question("1", "a.jpg", "what is it?", ("cat",), "cat", "other").raw
        'what is it?'
    """

    id: str
    image: str
    text: str
    answers: tuple[str, ...] = ()
    answer: str | None = None
    answer_type: str = ""
    choices: tuple[str, ...] = ()
    split: str = ""
    raw: str = ""

    def __post_init__(self) -> None:
        if not self.raw:
            object.__setattr__(self, "raw", self.text)


@dataclass(frozen=True)
class QuestionSet:
    """Questions about images, with their answers where they are known.

    Args:
        name: what the set is called, for tables and messages.
        questions: in the order they were read; their ids are unique.
        folder: where the image files lie, if there are any.
        left_out: what the reader did not take, and why.

    Example:
        >>> asked = Question("1", "a.jpg", "is it red?", ("yes",), "yes", "yes/no", split="train")
        >>> toy = QuestionSet("toy", (asked,))
        >>> toy.images, toy.most_frequent_answers(10)
        (('a.jpg',), ('yes',))
    """

    name: str
    questions: tuple[Question, ...]
    folder: Path | None = None
    left_out: tuple[LeftOut, ...] = field(default=())

    def __post_init__(self) -> None:
        for question_id, count in Counter(q.id for q in self.questions).most_common(1):
            if count > 1:
                raise InputError(f"{self.name}: question id {question_id!r} occurs {count} times")
        for question in self.questions:
            if question.answer_type and question.answer_type not in ANSWER_TYPES:
                raise InputError(
                    f"{self.name}: question {question.id!r} has answer type "
                    f"{question.answer_type!r}, wanted one of {list(ANSWER_TYPES)} or ''"
                )

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def images(self) -> tuple[str, ...]:
        """The images asked about, each once, in the order of their first question."""
        return tuple(dict.fromkeys(question.image for question in self.questions))

    def split(self, *names: str) -> QuestionSet:
        """Return the questions of these splits.

        Example:
            >>> toy = QuestionSet("toy", (Question("1", "a.jpg", "why?", split="test"),))
            >>> len(toy.split("test"))
            1
        """
        known = sorted({question.split for question in self.questions})
        for name in names:
            if name not in known:
                raise InputError(
                    f"{self.name}: no split {name!r}{nearest(name, known)}, it has {known}"
                )
        return replace(self, questions=tuple(q for q in self.questions if q.split in names))

    def most_frequent_answers(self, count: int) -> tuple[str, ...]:
        """Return the `count` most frequent consensus answers, the most frequent first.

        Equally frequent answers stand in alphabetical order, so the classes of a model do not
        depend on the order of the file. Fewer are returned when the set has fewer.
        """
        if count < 1:
            raise InputError(f"count is {count}, wanted at least 1 answer")
        seen = Counter(q.answer for q in self.questions if q.answer is not None)
        if not seen:
            raise InputError(f"{self.name}: none of its {len(self)} questions has an answer")
        return tuple(sorted(seen, key=lambda answer: (-seen[answer], answer))[:count])

    def describe(self) -> dict[str, object]:
        """Return counts for a table or JSON.

        `answers_per_question` maps a number of human answers (a string, as JSON has it) to how
        many questions have that many, so that a set with other than ten shows.
        """
        groups: dict[str, list[Question]] = {}
        for question in self.questions:
            groups.setdefault(question.split, []).append(question)
        per_question = Counter(len(question.answers) for question in self.questions)
        return {
            "name": self.name,
            **_counts(self.questions),
            "answers": len({q.answer for q in self.questions} - {None}),
            "answers_per_question": {str(n): per_question[n] for n in sorted(per_question)},
            "splits": {split or "(none)": _counts(groups[split]) for split in sorted(groups)},
            "left_out": [str(entry) for entry in self.left_out],
        }


def _counts(questions: Sequence[Question]) -> dict[str, object]:
    """Return how many questions, images, and questions of each answer type there are."""
    kinds = Counter(question.answer_type for question in questions)
    return {
        "questions": len(questions),
        "images": len({question.image for question in questions}),
        "answer_types": {kind or "(none)": kinds[kind] for kind in sorted(kinds)},
    }


def image_files(folder: Path) -> dict[str, str]:
    """Map each file name in a folder and its direct subfolders to its path in the folder."""
    files: dict[str, str] = {}
    try:
        # scandir tells files from folders without asking the disk for each of 80,000 images.
        with os.scandir(folder) as entries:
            listed = sorted((entry.is_dir(), entry.name) for entry in entries)
        for is_folder, name in listed:  # files first: they win over the same name one deeper
            if not is_folder:
                files[name] = name
                continue
            with os.scandir(folder / name) as entries:
                for below in sorted(entry.name for entry in entries if entry.is_file()):
                    files.setdefault(below, f"{name}/{below}")
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed ({error.strerror})") from error
    return files


def with_image_file(
    questions: Sequence[Question], files: Collection[str], folder: Path
) -> tuple[tuple[Question, ...], tuple[LeftOut, ...]]:
    """Return the questions whose image is among `files` of `folder`, and the count of the rest.

    None at all means a wrong folder rather than a few lost files, and is an error.
    """
    taken = tuple(question for question in questions if question.image in files)
    lost = [question.image for question in questions if question.image not in files]
    if not lost:
        return taken, ()
    if not taken:
        raise InputError(
            f"{folder}: has none of the {len(set(lost)):,} images asked about, "
            f"the first is {lost[0]!r}"
        )
    return taken, left_out_questions("questions whose image file is missing", lost)


def left_out_questions(reason: str, images: Sequence[str]) -> tuple[LeftOut, ...]:
    """Return one entry for questions left out, given the image of each; none for none.

    Example:
        >>> str(left_out_questions("questions lost", ["a.jpg", "a.jpg", "b.jpg"])[0])
        '3 questions lost (a.jpg, b.jpg, ...)'
    """
    shown = tuple(dict.fromkeys(images))[:3]
    return (LeftOut(reason, len(images), shown),) if images else ()
