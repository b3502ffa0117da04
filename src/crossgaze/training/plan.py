"""What a run would do, without doing it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crossgaze.models.answerer import Answerer
from crossgaze.training.config import TrainConfig
from crossgaze.training.distributed import choose_device
from crossgaze.training.optimisers import rate_factor
from crossgaze.training.prepare import parameters_of, prepare
from crossgaze.training.snapshots import CHECKPOINT, SETTINGS, require_same
from crossgaze.training.summary import SUMMARY
from crossgaze.training.tasks import task_of


def make_plan(config: TrainConfig, out: Path, device: str = "auto") -> dict[str, Any]:
    """Read data and model as a run does and return what it would do, in words and numbers.

    Args:
        config: the recipe.
        out: the run's folder; nothing is written to it.
        device: as `train` takes it.
    """
    place = choose_device(device)
    if (out / SETTINGS).is_file():
        require_same(out, config)
    ready = prepare(config, remember=False)
    train, dev, unit = ready.train, ready.dev, task_of(config).unit
    per_epoch = train.steps(config.batch)
    learned = parameters_of(ready.model)
    along = 0 if ready.companion is None else parameters_of(ready.companion)
    # Weights, the optimiser's memory of them, and their running mean.
    kept = 1 + (1 if config.optimiser.kind == "sgd" else 2) + bool(config.average)
    ends = [
        config.optimiser.rate * rate_factor(config.schedule, step, per_epoch, config.epochs)
        for step in (max(config.schedule.warmup - 1, 0), per_epoch * config.epochs - 1)
    ]
    return {
        "model": f"{config.family}, {learned:,} weights",
        **({"answers": len(ready.model.answers)} if isinstance(ready.model, Answerer) else {}),
        **({"trained along": f"{along:,} weights"} if along else {}),
        "words": ready.model.text.words,
        "learns from": f"{len(train.sentences):,} {unit} of {len(train.regions):,} images",
        "chosen by": f"{len(dev.sentences):,} {unit} of {len(dev.regions):,} images",
        "regions": f"{train.regions.most} x {train.regions.width} an image",
        "loss": _loss(config),
        "optimiser": f"{config.optimiser.kind}, rate {ends[0]:g} to {ends[1]:g}",
        "steps": f"{per_epoch:,} an epoch, {per_epoch * config.epochs:,} in {config.epochs} epochs",
        "device": str(place),
        "seed": config.seed,
        "out": f"{out} ({_stage(out)})",
        "checkpoint": 4 * kept * (learned + along),
        "notes": list(ready.notes),
    }


def _loss(config: TrainConfig) -> str:
    if config.task == "answer":
        return "cross-entropy"
    loss, names = config.loss, config.constraints
    steps = "an epoch" if loss.warm_steps is None else f"{loss.warm_steps} steps"
    warm = f", warm start of {steps}" if loss.kind == "hardest" and loss.warm_steps != 0 else ""
    more = [f"{name} x {getattr(names, name):g}" for name in ("ccr", "ccs") if getattr(names, name)]
    return ", ".join([f"{loss.kind}, margin {loss.margin:g}{warm}", *more])


def _stage(out: Path) -> str:
    if (out / SUMMARY).is_file():
        return "has ended"
    return "goes on" if (out / CHECKPOINT).is_file() else "new"
