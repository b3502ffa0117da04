"""The part of `crossgaze evaluate` that measures a model that answers questions."""

from __future__ import annotations

import argparse
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossgaze.cli.output import print_json, print_table, say
from crossgaze.errors import InputError

if TYPE_CHECKING:
    from crossgaze.data.questions.questions import QuestionSet
    from crossgaze.evaluation.answers import AnswerConfig

# What only makes sense for models that match, and its default.
MATCHING: dict[str, object] = {"folds": "1", "ensemble": [], "entities": None, "against": None}


def add_question_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments that question sets have."""
    group = parser.add_argument_group("for a model that answers questions")
    group.add_argument("--annotations", metavar="FILE", help="the answers of a VQA questions file")
    group.add_argument(
        "--task", metavar="NAME", help="open-ended or multiple-choice, of a folder of VQA's files"
    )
    group.add_argument(
        "--single", action="store_true", help="only questions with a single answer (DAQUAR's)"
    )
    group.add_argument("--no-wups", action="store_true", help="leave DAQUAR's WUPS out")
    group.add_argument("--wordnet", metavar="DIR", help="WordNet's files, for WUPS")


def answers(model: str) -> bool:
    """Whether a model's folder holds one that answers questions."""
    from crossgaze.models import families
    from crossgaze.models.pretrained import family_of

    return families.answers(family_of(model))


def evaluate_questions(args: argparse.Namespace, out: Path | None, device: str) -> int:
    """Evaluate, print the table, write the file."""
    from crossgaze.data.regions.store import RegionStore
    from crossgaze.evaluation.answers import evaluate_answers
    from crossgaze.evaluation.answers_report import answer_table, to_dict
    from crossgaze.models.pretrained import load_answerer
    from crossgaze.progress import progress_bar

    for name, default in MATCHING.items():
        if getattr(args, name) != default:
            raise InputError(f"{name}: is for models that match, {args.model} answers questions")
    if args.store is None:
        raise InputError(
            "store: got none, wanted the region store of the images (crossgaze extract makes one)"
        )
    began = time.monotonic()
    config = _config(args)
    questions = _read(args)
    model = load_answerer(args.model, device=device)
    with progress_bar("Answering", "questions") as step:
        found = evaluate_answers(
            model, questions, RegionStore(args.store), config, on_progress=step
        )
    described: dict[str, Any] = to_dict(found, config.bootstrap) | {
        "model": {"folder": args.model, "family": model.family, "origin": model.origin},
        "command": _command(args),
        "seconds": round(time.monotonic() - began, 1),
    }
    if out is not None:
        from crossgaze import __version__
        from crossgaze.files import write_json

        whole = to_dict(found, config.bootstrap, queries=True)
        write_json(out, described | {"queries": whole["queries"], "crossgaze": __version__})
    if args.json:
        print_json(described)
        return 0
    name = Path(args.model).name
    table = answer_table(found, name, config.bootstrap.level, papers=not args.no_papers)
    print_table(table.rows, header=table.header, title=table.title)
    for note in (*table.notes, *map(str, questions.left_out), *found.notes):
        say(f"  {note}")
    if out is not None:
        say(f"everything, with each question's answers: {out}")
    return 0


def _config(args: argparse.Namespace) -> AnswerConfig:
    from crossgaze.evaluation.answers import AnswerConfig
    from crossgaze.evaluation.bootstrap import BootstrapConfig

    return AnswerConfig(
        batch=args.batch,
        top=max(args.top, 1),
        single=args.single,
        wups=not args.no_wups,
        wordnet=args.wordnet,
        bootstrap=BootstrapConfig(resamples=args.resamples, seed=args.seed),
    )


def _read(args: argparse.Namespace) -> QuestionSet:
    """Read the split that is meant: "test" by default, or all of a set that has but one."""
    from dataclasses import replace

    from crossgaze.data.detect import holds_questions
    from crossgaze.data.questions.reading import read_questions

    if not holds_questions(args.data, args.format):
        raise InputError(f"{args.data}: holds captions, {args.model} answers questions")
    read = read_questions(args.data, args.annotations, format=args.format, task=args.task)
    splits = {question.split for question in read.questions}
    if args.split is not None or len(splits) > 1:
        read = read.split(args.split or "test")
    if args.first is None:
        return read
    images = set(read.images[: args.first])
    return replace(read, questions=tuple(q for q in read.questions if q.image in images))


def _command(args: argparse.Namespace) -> str:
    """Return what to type to measure this again."""
    words = ["crossgaze", "evaluate", args.model, args.data]
    for name in ("store", "split", "format", "first", "annotations", "task", "wordnet"):
        value = getattr(args, name)
        if value is not None:
            words += [f"--{name}", str(value)]
    words += ["--single"] if args.single else []
    words += ["--no-wups"] if args.no_wups else []
    words += ["--resamples", str(args.resamples), "--seed", str(args.seed)]
    return shlex.join(words)
