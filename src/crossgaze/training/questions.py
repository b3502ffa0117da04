"""Questions as the trainer takes them: words, image and the class of the answer of each.

What a batch of captions has a batch of questions has, too, so order, batches and reading ahead are
those of `crossgaze.training.batches`; a question's answer comes along as a number.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, replace

import numpy as np
import torch

from crossgaze.data.questions.questions import Question, QuestionSet
from crossgaze.data.questions.reading import read_questions
from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import InputError
from crossgaze.evaluation.judging import Metric, metric_of
from crossgaze.models.answerer import Answerer
from crossgaze.models.families import family
from crossgaze.models.pretrained import load_answerer
from crossgaze.training.batches import Batch, CaptionSet, ImageRegions, Ints, Sentences
from crossgaze.training.config import TrainConfig
from crossgaze.training.data_config import DataConfig
from crossgaze.training.prepare import (
    Prepared,
    make_vocabulary,
    read_once,
    require_droppable,
    require_width,
    store_marks,
)
from crossgaze.training.seeds import seed_everything


@dataclass(frozen=True, eq=False)
class AskedSet(CaptionSet):
    """Questions with their images and answers, ready to be batched.

    Args:
        labels: (M,) the class of each question's answer; -1 where the model has no such answer.
        questions: as they were read.
        metric: by which answers to them are judged.
    """

    labels: Ints
    questions: tuple[Question, ...]
    metric: Metric

    def read(self, captions: Ints, rank: int = 0, ranks: int = 1) -> Batch:
        """Read this rank's part of a batch, with its labels."""
        batch = super().read(captions, rank, ranks)
        return replace(batch, labels=torch.from_numpy(self.labels[batch.captions.numpy()]))


def prepare_questions(
    config: TrainConfig, *, remember: bool = True, device: torch.device | None = None
) -> Prepared:
    """Read questions and regions and build the model, the same for the same recipe.

    Args:
        config: a recipe of a family that answers.
        remember: as `crossgaze.training.prepare.prepare` has it.
        device: the same.
    """
    train, dev, notes = split_questions(config.data)
    (path,) = config.data.stores
    store = RegionStore(path)
    train, dev, absent = _with_regions(train, dev, store)
    answers = train.most_frequent_answers(config.data.answers)
    known = set(answers)
    learned = tuple(question for question in train.questions if question.answer in known)
    notes += absent
    if left := len(train) - len(learned):
        notes += (f"{left:,} training questions with a rarer answer are left out",)
    train = replace(train, questions=learned)
    seed_everything(config.seed)
    model = make_answerer(config, train, answers, store.head.width)
    require_droppable(config, model)
    sets = [_asked(part, model, store, config.data) for part in (train, dev)]
    if device is not None:
        model.to(device)
    if remember:
        rows = [row for part in sets for row in part.sentences.rows()]
        read_once(model.text, rows, config.data.kept_words)
    fingerprint = _fingerprint(train, dev, answers, store)
    origin = {"regions": dict(store.head.made_by), "questions": train.name}
    return Prepared(
        model=model,
        companion=None,
        train=sets[0],
        dev=sets[1],
        sampler=None,
        fingerprint=fingerprint,
        notes=notes,
        origin=origin,
        chosen_by=config.data.chosen_by,
    )


def split_questions(config: DataConfig) -> tuple[QuestionSet, QuestionSet, tuple[str, ...]]:
    """Return the questions that are learned from, those that are chosen by, and what was left out.

    Where `dev_share` is given, dev are the questions about that share of the training images, the
    same images whatever the seed, and no other split is looked at.
    """
    source = config.questions
    assert source is not None  # the configuration has seen to it
    every = read_questions(source)
    notes = tuple(f"{source}: {entry}" for entry in every.left_out)
    if config.single:
        kept = tuple(question for question in every.questions if len(question.answers) == 1)
        if not kept:
            raise InputError(f"{source}: no question has a single answer, wanted data.single=false")
        if left := len(every) - len(kept):
            notes += (f"{source}: {left:,} questions with several answers are left out",)
        every = replace(every, questions=kept)
    learned = every.split(*config.train)
    if not config.dev_share:
        return learned, _dev(every.split(config.dev), config), notes
    held = {image for image in learned.images if _held_out(image, config.dev_share)}
    parts = [
        replace(learned, questions=tuple(q for q in learned.questions if (q.image in held) is dev))
        for dev in (False, True)
    ]
    if not len(parts[0]) or not len(parts[1]):
        raise InputError(
            f"data.dev_share: {config.dev_share} of {len(learned.images)} images leaves nothing "
            "to learn from or to choose by"
        )
    return parts[0], _dev(parts[1], config), notes


def _held_out(image: str, share: float) -> bool:
    """Whether an image is one of those held out: its name decides, not its place in the file."""
    return zlib.crc32(image.encode()) < share * (1 << 32)


def _dev(questions: QuestionSet, config: DataConfig) -> QuestionSet:
    if config.dev_images:
        first = set(questions.images[: config.dev_images])
        chosen = tuple(q for q in questions.questions if q.image in first)
        questions = replace(questions, questions=chosen)
    if not any(question.answers for question in questions.questions):
        raise InputError(
            f"{questions.name}: its {config.dev!r} questions have no answers, wanted some to "
            "choose by (or data.dev_share, a share of the training images)"
        )
    return questions


def _with_regions(
    train: QuestionSet, dev: QuestionSet, store: RegionStore
) -> tuple[QuestionSet, QuestionSet, tuple[str, ...]]:
    """Leave out training questions whose image the store lacks; of dev none may be missing."""
    store.rows(dev.images)
    kept = tuple(question for question in train.questions if question.image in store)
    if not kept:
        raise InputError(
            f"{store.folder}: has none of the {len(train.images):,} training images, the first "
            f"is {train.images[0]!r}"
        )
    lost = len(train) - len(kept)
    notes = (f"{lost:,} training questions: image not in {store.folder}",) if lost else ()
    return replace(train, questions=kept), dev, notes


def make_answerer(
    config: TrainConfig, train: QuestionSet, answers: tuple[str, ...], region_width: int
) -> Answerer:
    """Build the recipe's model, or load what it starts from.

    Args:
        config: the recipe.
        train: the training questions, for the vocabulary.
        answers: the classes.
        region_width: of the store.
    """
    wanted = config.model_config(region_width)
    require_width(wanted, region_width)
    if wanted.answers:
        raise InputError("model.answers: are found in the training questions, wanted no such key")
    wanted = replace(wanted, answers=answers)
    if config.start is not None:
        found = load_answerer(config.start)
        if found.config != wanted:
            raise InputError(
                f"start: {config.start} has another configuration or other answers than the recipe"
            )
        return found
    texts = [question.text for question in train.questions]
    model_type, _ = family(config.family)
    made: Answerer = model_type(wanted, make_vocabulary(config, wanted, texts))  # type: ignore[call-arg, assignment]
    return made


def _asked(part: QuestionSet, model: Answerer, store: RegionStore, config: DataConfig) -> AskedSet:
    places = {image: number for number, image in enumerate(part.images)}
    classes = {answer: number for number, answer in enumerate(model.answers)}
    rows = [model.text.tokenize(question.text) for question in part.questions]
    for question, row in zip(part.questions, rows, strict=True):
        if not row:
            raise InputError(f"{part.name}: question {question.id!r} has no word in it")
    return AskedSet(
        sentences=Sentences(rows),
        owners=np.array([places[q.image] for q in part.questions], np.int64),
        regions=ImageRegions([store], [part.images], in_memory=config.in_memory),
        texts=tuple(question.text for question in part.questions),
        written=None,
        labels=np.array([classes.get(q.answer or "", -1) for q in part.questions], np.int64),
        questions=part.questions,
        metric=metric_of(part),
    )


def _fingerprint(
    train: QuestionSet, dev: QuestionSet, answers: tuple[str, ...], store: RegionStore
) -> str:
    """Return a checksum of questions, answers, images and the store's own checksums."""
    digest = hashlib.sha256("\0".join(answers).encode())
    for part in (train, dev):
        for question in part.questions:
            digest.update(repr((question.image, question.text, question.answers)).encode())
    for known in store_marks(store):
        digest.update(known)
    return digest.hexdigest()
