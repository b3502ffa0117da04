"""Measure a model: recall both ways, median rank, rsum, attention, each with its interval.

MODEL is a folder that `crossgaze.load` reads, DATA anything that `crossgaze data` reads with
captions. Regions come from --store; a *_precomp folder brings its own. The papers' numbers stand
below in the same table, marked as theirs. For a model that answers (r-DAN) DATA is a question set:
VQA's metric, DAQUAR's accuracy and WUPS, or plain accuracy, in all and by type of answer.

Examples:
  crossgaze evaluate my-scan/ flickr8k/ --store regions/ --out result.json
  crossgaze evaluate scan-coco/ coco_precomp/ --split testall --folds 1,5      (5K and 5-fold 1K)
  crossgaze evaluate scan-t-i/ f30k_precomp/ --ensemble scan-i-t/
  crossgaze evaluate my-scan/ flickr8k/ --store regions/ --entities annotations.zip
  crossgaze evaluate new/ flickr8k/ --store regions/ --against result.json
  crossgaze evaluate new/ flickr8k/ --store regions/ --bank train   (hubs held back, see the docs)
  crossgaze evaluate my-rdan/ daquar/ --store daquar-regions/ --single
  crossgaze evaluate my-rdan/ vqa/ --store vqa-regions/ --split dev --task multiple-choice
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossgaze.cli.evaluate_answers import add_question_arguments, answers, evaluate_questions
from crossgaze.cli.output import add_json, print_json, print_table, say
from crossgaze.errors import InputError, require_folder

if TYPE_CHECKING:
    Step = Callable[[int, int], None]

    from crossgaze.evaluation.bootstrap import Estimate
    from crossgaze.evaluation.evaluate import EvaluateConfig, Evaluation
    from crossgaze.models.matcher import Matcher


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the verb's arguments."""
    parser.add_argument("model", metavar="MODEL", help="a model's folder or Hub id")
    parser.add_argument("data", metavar="DATA", help="a data set's folder or file")
    parser.add_argument("--store", metavar="STORE", help="the region store of its images")
    parser.add_argument("--split", metavar="NAME", help="train, dev, test (default) or testall")
    parser.add_argument(
        "--format", metavar="NAME", help="DATA's format, where its files do not tell"
    )
    parser.add_argument("--first", metavar="N", type=int, help="only the first N images")
    parser.add_argument(
        "--folds",
        metavar="N,N",
        default="1",
        help="1 searches all images at once (default), 5 is the mean of five folds, 1,5 does both",
    )
    parser.add_argument(
        "--ensemble",
        metavar="MODEL",
        action="append",
        default=[],
        help="average the scores with this model's; may be given again",
    )
    parser.add_argument(
        "--entities", metavar="PATH", help="Flickr30k Entities, to measure attention against"
    )
    parser.add_argument(
        "--bank",
        metavar="NAME",
        help="hold back what fits everything, as seen by this other split (CSLS; no paper's)",
    )
    parser.add_argument(
        "--bank-images",
        metavar="N",
        type=int,
        default=1000,
        help="how many of its images, with all their captions (default 1000)",
    )
    parser.add_argument(
        "--top", metavar="K", type=int, default=10, help="best answers kept a query (default 10)"
    )
    parser.add_argument(
        "--out", metavar="FILE", help="write everything to a JSON file, each query's rank, too"
    )
    parser.add_argument(
        "--against", metavar="FILE", help="an earlier --out on the same data: show the differences"
    )
    parser.add_argument(
        "--no-papers", action="store_true", help="leave the papers' rows out of the tables"
    )
    parser.add_argument(
        "--resamples", metavar="N", type=int, default=1000, help="of the bootstrap (default 1000)"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the bootstrap")
    parser.add_argument("--batch", metavar="N", type=int, default=128, help="images a batch")
    add_question_arguments(parser)
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1 (default: auto)")
    parser.add_argument(
        "--kept-words",
        metavar="FOLDER",
        type=Path,
        help="where a frozen BERT's output for the captions is kept for the next time",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Evaluate, print the tables, write the file."""
    out = _require_out(args.out)
    if answers(args.model):
        return evaluate_questions(args, out, _device(args.device))
    config = _config(args)
    from crossgaze.evaluation.report import against, to_dict
    from crossgaze.evaluation.scores import matchers_of
    from crossgaze.models.pretrained import load

    began = time.monotonic()
    device = _device(args.device)
    matchers = matchers_of([load(name, device=device) for name in (args.model, *args.ensemble)])
    found = _measure(args, config, matchers)
    bootstrap = config.bootstrap
    changes = None if args.against is None else against(found, args.against, bootstrap)
    described: dict[str, Any] = {
        "model": {
            "folders": [args.model, *args.ensemble],
            "families": [model.family for model in matchers],
            "origins": [model.origin for model in matchers],
        },
        "command": _command(args),
        "seconds": round(time.monotonic() - began, 1),
    }
    described = to_dict(found, bootstrap, queries=False) | described
    for entry in described["protocols"] if changes else ():
        change = (changes or {}).get(entry["folds"], {})
        entry["against"] = {name: figure.to_dict() for name, figure in change.items()}
    if out is not None:
        _write(out, described, to_dict(found, bootstrap, queries=True))
    if args.json:
        print_json(described)
        return 0
    _print(args, config, matchers, found, changes)
    if out is not None:
        say(f"everything, with each query's rank: {out}")
    return 0


def _measure(
    args: argparse.Namespace, config: EvaluateConfig, matchers: list[Matcher]
) -> Evaluation:
    from crossgaze.data.entities.archive import Entities
    from crossgaze.evaluation.evaluate import evaluate
    from crossgaze.evaluation.hubs import Bank, spread
    from crossgaze.evaluation.report import read_ranks
    from crossgaze.evaluation.sources import open_regions, read_split

    captioned = read_split(args.data, args.split, format=args.format)
    if args.first is not None:
        captioned = captioned.first(args.first)
    regions = open_regions(captioned, args.data, args.store)
    bank = None
    if args.bank is not None:
        others = spread(read_split(args.data, args.bank, format=args.format), args.bank_images)
        bank = Bank(others, open_regions(others, args.data, args.store))
    if args.against is not None:  # refused now and not after an hour
        read_ranks(args.against)
    entities = None if args.entities is None else Entities.open(args.entities)
    with _bars() as stage:
        return evaluate(
            matchers,
            captioned,
            regions,
            config,
            entities=entities,
            bank=bank,
            on_progress=stage("Scoring", "images"),
            on_attention=stage("Attention", "captions"),
        )


@contextmanager
def _bars() -> Iterator[Callable[[str, str], Step]]:
    """Give a function that makes the bar of a stage; a stage that begins ends the one before."""
    from crossgaze.progress import progress_bar

    with ExitStack() as stack:
        drawn: dict[str, Step] = {}

        def stage(label: str, unit: str) -> Step:
            def step(done: int, total: int) -> None:
                if label not in drawn:
                    stack.close()  # rich draws one bar at a time
                    drawn.clear()
                    drawn[label] = stack.enter_context(progress_bar(label, unit))
                drawn[label](done, total)

            return step

        yield stage


def _config(args: argparse.Namespace) -> EvaluateConfig:
    from crossgaze.evaluation.bootstrap import BootstrapConfig
    from crossgaze.evaluation.evaluate import EvaluateConfig

    try:
        folds = tuple(int(number) for number in args.folds.split(","))
    except ValueError:
        raise InputError(f"folds: got {args.folds!r}, wanted numbers such as 1 or 1,5") from None
    bootstrap = BootstrapConfig(resamples=args.resamples, seed=args.seed)
    kept = args.kept_words
    return EvaluateConfig(folds, args.top, args.batch, bootstrap=bootstrap, kept_words=kept)


def _require_out(out: str | None) -> Path | None:
    """Refuse a file that could not be written before anything is computed."""
    if out is None:
        return None
    path = Path(out)
    if path.is_dir():
        raise InputError(f"{path}: is a folder, wanted a file to write the result to")
    require_folder(path.parent, "a folder to write the result to")
    return path


def _device(name: str | None) -> str:
    import torch

    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise InputError(f"device: {name!r} cannot be used here: {first}") from None
    return name


def _command(args: argparse.Namespace) -> str:
    """Return what to type to measure this again."""
    import shlex

    words = ["crossgaze", "evaluate", args.model, args.data]
    for name in ("store", "split", "format", "first", "folds", "entities", "top", "bank"):
        value = getattr(args, name)
        if value is not None:
            words += [f"--{name}", str(value)]
    if args.bank is not None:
        words += ["--bank-images", str(args.bank_images)]
    for model in args.ensemble:
        words += ["--ensemble", model]
    words += ["--resamples", str(args.resamples), "--seed", str(args.seed)]
    return shlex.join(words)


def _write(out: Path, described: dict[str, Any], whole: dict[str, Any]) -> None:
    """Write the result with every query's rank."""
    from crossgaze import __version__
    from crossgaze.files import write_json

    for entry, full in zip(described["protocols"], whole["protocols"], strict=True):
        full.update({key: value for key, value in entry.items() if key not in full})
    details = {name: whole[name] for name in ("protocols", "attention")}
    write_json(out, described | details | {"crossgaze": __version__})


def _print(
    args: argparse.Namespace,
    config: EvaluateConfig,
    matchers: list[Matcher],
    found: Evaluation,
    changes: dict[int, dict[str, Estimate]] | None,
) -> None:
    from crossgaze.evaluation.report import attention_tables, tables
    from crossgaze.evaluation.tables import change_table

    families = {model.family for model in matchers}
    name = " + ".join(Path(folder).name for folder in (args.model, *args.ensemble))
    level, papers = config.bootstrap.level, not args.no_papers
    made = tables(found, name, families, level, papers=papers)
    made += attention_tables(found, name, config.bootstrap, papers=papers)
    made += [change_table(folds, args.against, change) for folds, change in (changes or {}).items()]
    for table in made:
        print_table(table.rows, header=table.header, title=table.title)
        for note in table.notes:
            say(f"  {note}")
        say("")
    if found.bank is not None:
        images, captions = found.bank
        say(
            f"  what fits everything was held back, as seen by {images:,} images and {captions:,} "
            f"captions of {args.bank} (CSLS); the papers' rows are without"
        )
    if found.unknown is not None and found.unknown[0]:
        unknown, words = found.unknown
        share = 100 * unknown / words
        say(f"  words that the model does not know: {unknown:,} of {words:,} ({share:.1f} %)")
    for line in (*found.captioned.notes, *found.notes):
        say(f"  {line}")
