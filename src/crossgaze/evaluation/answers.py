"""A model's answers to a question set: judged, each figure with its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from crossgaze.data.questions.questions import QuestionSet
from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import InputError, MissingExtraError
from crossgaze.evaluation.bootstrap import BootstrapConfig, Estimate, estimate, mean_draws
from crossgaze.evaluation.choices import best_answers
from crossgaze.evaluation.judging import TYPES, Judged, Metric, Values, judge, metric_of
from crossgaze.evaluation.wordnet import Nouns
from crossgaze.evaluation.wups import Wups, answer_parts
from crossgaze.models.answerer import Answerer

THRESHOLDS = (0.9, 0.0)  # of WUPS


@dataclass(frozen=True)
class AnswerConfig:
    """How a model's answers are evaluated.

    Args:
        batch: questions answered together.
        top: how many of the likeliest answers of each question are kept.
        single: only questions with one answer (DAQUAR's).
        wups: whether WUPS is measured, where the set is DAQUAR.
        wordnet: WordNet's folder, if it is not that of the installed package.
        bootstrap: how intervals are made.
    """

    batch: int = 256
    top: int = 5
    single: bool = False
    wups: bool = True
    wordnet: str | None = None
    bootstrap: BootstrapConfig = field(default_factory=BootstrapConfig)

    def __post_init__(self) -> None:
        if self.batch < 1 or self.top < 1:
            raise InputError(f"batch, top: got {self.batch}, {self.top}, wanted 1 or more")


@dataclass(frozen=True, eq=False)
class AnswerEvaluation:
    """Everything that was measured.

    Args:
        questions: those that were judged.
        metric: by which.
        figures: accuracy in all and by type, WUPS, in percent, each with its interval.
        best: (N, top) the likeliest answers of each question with their probability.
        right: (N,) how right the first is.
        notes: what was left out, and what could not be measured.
        choices: whether the questions' choices limited the answers.
        known: share of the questions whose answer is one of the model's, in percent.
    """

    questions: QuestionSet
    metric: Metric
    figures: Mapping[str, Estimate]
    best: tuple[tuple[tuple[str, float], ...], ...]
    right: Values
    notes: tuple[str, ...]
    choices: bool
    known: float


def evaluate_answers(
    model: Answerer,
    questions: QuestionSet,
    store: RegionStore,
    config: AnswerConfig | None = None,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> AnswerEvaluation:
    """Let a model answer a question set and judge it.

    Args:
        model: in evaluation mode.
        questions: with answers; choices, where there are any, limit what may be answered.
        store: the regions of all their images.
        config: what is measured and how.
        on_progress: called with (questions answered, questions in all).

    Example:
        ```python
        test = read_questions("daquar/").split("test")
        found = evaluate_answers(load_answerer("my-rdan"), test, RegionStore("regions/"))
        found.figures["accuracy"]
        ```
    """
    config = config or AnswerConfig()
    questions, notes = _askable(questions, single=config.single)
    if store.head.width != model.config.region_width:
        raise InputError(
            f"{store.folder}: has regions of width {store.head.width}, the model takes "
            f"{model.config.region_width}"
        )
    known = _known(model, questions)
    metric = metric_of(questions)
    wups = None
    if metric == "daquar" and config.wups:
        try:  # before anything is answered: a wrong folder is refused at once
            wups = Wups(Nouns.open(config.wordnet))
        except MissingExtraError as error:
            notes += (str(error),)
    limited = any(question.choices for question in questions.questions)
    best, lost = _answer(model, questions, store, config, on_progress)
    if lost:
        notes += (f"{lost:,} questions have no choice that the model knows, and count as wrong",)
    said = [row[0][0] for row in best]
    judged = judge(questions.questions, said, metric)
    found = _estimates(questions, judged, config.bootstrap)
    if wups is not None:
        for threshold in THRESHOLDS:
            scores = [
                wups(answer_parts(answer), question.answers, threshold)
                for answer, question in zip(said, questions.questions, strict=True)
            ]
            name = f"wups_{threshold:.1f}"
            found[name] = _estimate(questions, np.array(scores), config.bootstrap)
    return AnswerEvaluation(questions, metric, found, best, judged.values, notes, limited, known)


def _askable(questions: QuestionSet, *, single: bool) -> tuple[QuestionSet, tuple[str, ...]]:
    """Return the questions that can be judged, and what was left out."""
    notes: tuple[str, ...] = ()
    answered = tuple(question for question in questions.questions if question.answers)
    if not answered:
        raise InputError(
            f"{questions.name}: none of its {len(questions):,} questions has an answer to judge by"
        )
    if left := len(questions) - len(answered):
        notes += (f"{left:,} questions without an answer are left out",)
    if single:
        ones = tuple(question for question in answered if len(question.answers) == 1)
        if not ones:
            raise InputError(f"{questions.name}: no question has a single answer, as was asked for")
        notes += (f"{len(answered) - len(ones):,} questions with several answers are left out",)
        answered = ones
    return replace(questions, questions=answered), notes


def _known(model: Answerer, questions: QuestionSet) -> float:
    """Return for how many questions in a hundred the model has the answer; refuse none at all."""
    mine = set(model.answers)
    known = sum(question.answer in mine for question in questions.questions)
    if not known:
        theirs = questions.most_frequent_answers(3)
        raise InputError(
            f"{questions.name}: its answers ({', '.join(theirs)} ...) are none of the model's "
            f"{len(mine):,} ({', '.join(model.answers[:3])} ...); it was trained on another set"
        )
    return 100 * known / len(questions)


def _answer(
    model: Answerer,
    questions: QuestionSet,
    store: RegionStore,
    config: AnswerConfig,
    on_progress: Callable[[int, int], None] | None,
) -> tuple[tuple[tuple[tuple[str, float], ...], ...], int]:
    """Return the best answers of each question, and how many had no choice that is known."""
    asked = questions.questions
    rows = store.rows([question.image for question in asked])
    best: list[tuple[tuple[str, float], ...]] = []
    lost = 0
    for start in range(0, len(asked), config.batch):
        part = asked[start : start + config.batch]
        mine = rows[start : start + config.batch]
        with torch.no_grad():
            found = model.answer(
                np.asarray(store.features[mine]),
                [question.text for question in part],
                np.asarray(store.counts[mine]),
            )
        logits = found.logits.float().cpu()  # (b, C)
        for question, row in zip(part, logits, strict=True):
            chosen = best_answers(model.answers, row, config.top, question.choices)
            lost += not chosen
            best.append(chosen or (("", 0.0),))
        if on_progress:
            on_progress(start + len(part), len(asked))
    return tuple(best), lost


def _estimates(
    questions: QuestionSet, judged: Judged, config: BootstrapConfig
) -> dict[str, Estimate]:
    """Return the figures with intervals: images are drawn, each with all its questions."""
    found = {"accuracy": _estimate(questions, judged.values, config)}
    kinds = np.array(judged.kinds)
    for name in judged.groups():
        for kind, called in TYPES.items():
            if called == name:
                values = np.where(kinds == kind, judged.values, np.nan)
                found[name] = _estimate(questions, values, config)
    return found


def _estimate(questions: QuestionSet, values: Values, config: BootstrapConfig) -> Estimate:
    """Return the mean of values in percent; NaN is not counted."""
    places = {image: number for number, image in enumerate(questions.images)}
    owners = np.array([places[question.image] for question in questions.questions], np.int64)
    drawn = mean_draws(values, owners, len(places), config)
    return estimate(100 * float(np.nanmean(values)), 100 * drawn, config.level)
