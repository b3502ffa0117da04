"""Train a model by a recipe, into a run's folder.

A recipe is a YAML file: data (captions; questions for r-DAN), the model's family and its own
settings, loss, constraints, optimiser, schedule, augmentation, epochs, batch, seed. Any key can be
set behind it, inner keys with dots.

The same command goes on with a run that was stopped, however it was stopped, and gives what it
would have given. A folder that holds a run with other settings is refused.

The run's folder holds config.yaml (all settings), log.jsonl (losses and dev figures), checkpoint.pt
(where to go on), best/ (the model with the highest sum of recalls, or accuracy, on dev;
crossgaze.load reads it) and, at the end, summary.json and curves.png.

Examples:
  crossgaze train recipes/flickr8k/scan-t-i-avg.yaml --dry-run        (what would be done)
  crossgaze train recipes/flickr8k/scan-t-i-avg.yaml
  crossgaze train recipes/flickr8k/scan-t-i-avg.yaml seed=1 --out runs/flickr8k/scan-t-i-avg-1
  crossgaze train recipes/flickr8k/scan-t-i-avg.yaml data.regions=mine/ epochs=2 --out runs/short
  crossgaze train recipes/rdan-daquar.yaml model.steps=3
  crossgaze train mine.yaml --tensorboard --device cpu

Several GPUs or processes together, each with a part of every batch, features in memory once:
  torchrun --nproc-per-node 2 -m crossgaze train recipes/flickr8k/bfan.yaml data.in_memory=false
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from crossgaze.cli.output import add_json, print_json, print_table, readable_bytes, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the verb's arguments."""
    parser.add_argument("recipe", metavar="RECIPE", help="a YAML file, such as recipes/*/*.yaml")
    parser.add_argument(
        "settings",
        metavar="key=value",
        nargs="*",
        default=[],  # without it argparse calls them required
        help="any setting of the recipe, such as seed=1 model.size=512 optimiser.rate=5e-4",
    )
    parser.add_argument(
        "--out", metavar="DIR", help="the run's folder (default: runs/, then the recipe's name)"
    )
    parser.add_argument(
        "--device", metavar="NAME", default="auto", help="cpu, cuda, cuda:1 (default: auto)"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="read everything, print the plan, train nothing"
    )
    parser.add_argument("--tensorboard", action="store_true", help="write DIR/tensorboard, too")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Train, and print how well the best snapshot does on dev."""
    from crossgaze.config import load_recipe
    from crossgaze.progress import progress_bar
    from crossgaze.training.config import TrainConfig

    config = load_recipe(TrainConfig, args.recipe, args.settings)
    out = Path(args.out) if args.out is not None else default_folder(Path(args.recipe))
    if args.dry_run:
        return _plan(config, out, args)
    from crossgaze.training.distributed import started_first
    from crossgaze.training.trainer import train

    words = ["crossgaze", "train", args.recipe, *args.settings]
    words += ["--out", args.out] if args.out is not None else []
    unit = "questions" if config.task == "answer" else "captions"
    with progress_bar(f"Training {config.family}", unit) as step:
        summary = train(
            config,
            out,
            device=args.device,
            tensorboard=args.tensorboard,
            command=shlex.join(words),
            on_progress=step if started_first() else lambda done, total: None,
        )
    if not started_first():
        return 0
    if args.json:
        print_json(summary)
        return 0
    _show(summary, out)
    return 0


def default_folder(recipe: Path) -> Path:
    """Return where a recipe's run goes if nothing is said: runs/, then its path below recipes/.

    Example:
        >>> default_folder(Path("recipes/flickr8k/scan.yaml")).as_posix()
        'runs/flickr8k/scan'
    """
    parts = recipe.with_suffix("").parts
    below = parts[parts.index("recipes") + 1 :] if "recipes" in parts else parts[-1:]
    return Path("runs", *below)


def _plan(config: Any, out: Path, args: argparse.Namespace) -> int:  # noqa: ANN401
    from crossgaze.training.plan import make_plan

    plan = make_plan(config, out, args.device)
    if args.json:
        print_json(plan)
        return 0
    shown = dict(plan)
    notes = shown.pop("notes")
    shown["checkpoint"] = readable_bytes(shown["checkpoint"])
    print_table(shown.items(), title=f"{args.recipe}: the plan")
    for note in notes:
        say(f"  {note}")
    return 0


def _show(summary: dict[str, Any], out: Path) -> None:
    found = summary["metrics"]
    title = f"{out}: best on {summary['metrics_of']}, epoch {summary['best_epoch']}"
    if "accuracy" in found:
        rows = [(name.replace("_", "/"), f"{value:.1f}") for name, value in found.items()]
        print_table(rows, header=("answers", "right, %"), title=title)
        figure = f"accuracy {found['accuracy']:.1f} %"
    else:
        sides = (("sentences for an image", "i2t"), ("images for a sentence", "t2i"))
        recalls = [
            (what, *(f"{found[f'{side}_r{k}']:.1f}" for k in (1, 5, 10))) for what, side in sides
        ]
        print_table(recalls, header=("", "R@1", "R@5", "R@10"), title=title)
        figure = f"sum of recalls {found['rsum']:.1f}"
    say(f"{figure}; {summary['epochs']} epochs in {summary['seconds'] / 60:.1f} min")
    say(f"the model: {out / 'best'}; learning curves: {out / 'curves.png'}")
    for note in summary["notes"]:
        say(f"  {note}")
