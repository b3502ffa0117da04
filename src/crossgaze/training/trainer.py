"""The training loop: repeats bit for bit, and goes on after SIGKILL as if nothing had been.

A run is a folder:

| file | what |
| --- | --- |
| `config.yaml` | all settings |
| `log.jsonl` | losses every few steps, figures after each epoch |
| `checkpoint.pt` | where to go on |
| `best/` | the model with the highest sum of recalls or accuracy on dev, for `crossgaze.load` |
| `best-companion/` | what was trained along with it, if anything |
| `summary.json`, `curves.png` | when the run has ended |
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crossgaze.collectives import rank, ranks
from crossgaze.config import to_dict
from crossgaze.errors import FileFormatError, InputError, one_line
from crossgaze.files import only_writer
from crossgaze.training.augment import drop_words
from crossgaze.training.batches import Batch
from crossgaze.training.config import TrainConfig
from crossgaze.training.distributed import from_first, is_first, process_group, wrap
from crossgaze.training.logs import LOG, RunLog, require_log
from crossgaze.training.optimisers import (
    AveragedWeights,
    clip,
    make_optimiser,
    rate_factor,
    set_rate,
)
from crossgaze.training.prepare import Prepared, prepare
from crossgaze.training.seeds import repeatable, seed_of
from crossgaze.training.snapshots import CHECKPOINT, open_run, read_checkpoint, write_checkpoint
from crossgaze.training.state import State
from crossgaze.training.statistics import measured_statistics
from crossgaze.training.summary import read_summary, write_summary
from crossgaze.training.swaps import Swaps
from crossgaze.training.tasks import task_of
from crossgaze.training.warm_start import WarmStart, collapsed

Progress = Callable[[int, int], None]


def train(
    config: TrainConfig,
    out: str | Path,
    *,
    device: str = "auto",
    tensorboard: bool = False,
    command: str = "",
    on_progress: Progress = lambda done, total: None,
) -> dict[str, Any]:
    """Train, or go on with a run that was stopped, and return its summary.

    Args:
        config: the recipe.
        out: the run's folder, new or of a run with the same settings.
        device: "auto", "cpu", "cuda", "cuda:1" ...
        tensorboard: whether to write for TensorBoard, too.
        command: how the run was started, for the summary.
        on_progress: called with (done, total) captions or questions.
    """
    out = Path(out)
    with process_group(device) as place, repeatable(place), contextlib.ExitStack() as held:
        if place.type == "cpu" and config.precision != "float32":
            # Not only slow: on CPUs without units for it torch meets an illegal instruction.
            raise InputError(f"precision: got {config.precision} on a cpu, wanted float32")
        if is_first():
            open_run(out, config)
            held.enter_context(only_writer(out, "this run"))
        done: dict[str, Any] | None = from_first(read_summary(out) if is_first() else None)
        if done is not None:
            return done
        run = Run(config, prepare(config, device=place), out, place)
        held.callback(run.close)
        run.resume(tensorboard=tensorboard)
        while not run.state.ended(config):
            run.one_epoch(on_progress)
        return from_first(run.finish(command) if is_first() else {})


class Run:
    """A run between its first step and its last.

    Args:
        config: the recipe.
        prepared: model and data.
        out: the run's folder.
        device: where to train.
    """

    def __init__(
        self, config: TrainConfig, prepared: Prepared, out: Path, device: torch.device
    ) -> None:
        self.config, self.data, self.out, self.device = config, prepared, out, device
        self.task = task_of(config)
        self.step: Any = self.task.step(config, prepared.model, prepared.companion).to(device)
        self.trained = [p for p in self.step.parameters() if p.requires_grad]
        self.wrapped = wrap(self.step, device)
        self.optimiser = make_optimiser(
            config.optimiser, self.trained, prepared.model.text.pretrained()
        )
        self.average = AveragedWeights(self.step, config.average) if config.average else None
        self.scaler = torch.amp.GradScaler(device.type, enabled=config.precision == "float16")
        self.state = State()
        self.per_epoch = prepared.train.steps(config.batch)
        self.losses = WarmStart(config.loss, self.per_epoch)
        self.log: RunLog | None = None
        self._began = time.perf_counter()
        smallest = len(prepared.train.sentences) // self.per_epoch
        if smallest < max(2, ranks()):
            raise InputError(
                f"batch: {len(prepared.train.sentences):,} training {self.task.unit} in batches of "
                f"{config.batch} leave one of {smallest}, wanted {max(2, ranks())} or more"
            )

    # Keeping ----------------------------------------------------------------------------------

    def resume(self, *, tensorboard: bool = False) -> None:
        """Go on from the checkpoint, if there is one."""
        saved = read_checkpoint(self.out, self.device)
        if saved is not None:
            if saved.get("fingerprint") != self.data.fingerprint:
                raise InputError(
                    f"{self.out}: the {self.task.unit} or regions have changed since this run "
                    "began; start anew with another --out"
                )
            try:
                self._restore(saved)
            # What torch and Python raise, by experiment, on parts that are missing or of others.
            except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
                first = one_line(str(error).splitlines()[0] if str(error) else "")
                raise FileFormatError(
                    self.out / CHECKPOINT, f"is not of this run: {type(error).__name__} {first}"
                ) from None
        if is_first():
            size, step = self.state.log_bytes, self.state.step
            require_log(self.out / LOG, size, self.state.history)
            self.log = RunLog(self.out, size=size, step=step, tensorboard=tensorboard)
        self._began = time.perf_counter() - self.state.seconds

    def _restore(self, saved: dict[str, Any]) -> None:
        """Take over what a checkpoint holds."""
        self.step.load_state_dict(saved["weights"])
        self.optimiser.load_state_dict(saved["optimiser"])
        self.scaler.load_state_dict(saved["scaler"])
        if self.average is not None:
            self.average.load_state_dict(saved["average"])
        state = State(**saved["state"])
        for name, kind in (("step", int), ("epoch", int), ("batch", int), ("log_bytes", int)):
            value = getattr(state, name)
            if type(value) is not kind or value < 0:
                raise ValueError(f"{name} is {value!r}")
        self.state = state

    def save(self) -> None:
        """Write the checkpoint; only one process does."""
        if self.log is None:
            return
        self.state.log_bytes = self.log.size()
        self.state.seconds = time.perf_counter() - self._began
        write_checkpoint(
            self.out,
            {
                "fingerprint": self.data.fingerprint,
                "state": asdict(self.state),
                "weights": self.step.state_dict(),
                "optimiser": self.optimiser.state_dict(),
                "scaler": self.scaler.state_dict(),
                "average": None if self.average is None else self.average.state_dict(),
            },
        )

    # Training ---------------------------------------------------------------------------------

    def one_epoch(self, on_progress: Progress) -> None:
        """Do what is left of an epoch, then look at dev and keep the best."""
        config, state, train = self.config, self.state, self.data.train
        order = train.order(config.seed, state.epoch, config.batch)
        total = config.epochs * len(train.sentences)
        done = state.epoch * len(train.sentences) + sum(map(len, order[: state.batch]))
        on_progress(done, total)
        self.step.train()
        show = partial(self.shown, state.step - state.batch)
        for batch in train.batches(order, state.batch, rank(), ranks(), show):
            told, length = self.one_step(batch)
            done += len(batch.owners)
            self._count(told | {"gradient": length})
            state.step, state.batch = state.step + 1, state.batch + 1
            last = state.batch == len(order)
            if state.step % config.log_every == 0 or last:
                self._note_steps()
            if state.step % config.save_every == 0 and not last:
                self.save()
            on_progress(done, total)
        state.epoch, state.batch = state.epoch + 1, 0
        self.look_at_dev()
        self.save()

    def shown(self, first: int, number: int, batch: Batch) -> Batch:
        """Return a batch as the model is shown it: words dropped, and with swapped sentences.

        Both are drawn for the whole batch, as one process alone would draw them, whatever part of
        it this process has.

        Args:
            first: the number of the epoch's first step.
            number: of the batch in its epoch.
            batch: as it was read.
        """
        share, sampler = self.config.augment.words, self.data.sampler
        if not share and sampler is None:
            return batch
        numbers = (self.config.seed, first + number, 0)
        which = batch.all_captions.numpy()
        lengths = batch.all_lengths
        ids = self.data.train.sentences.padded(which, batch.ids.shape[1])  # (N, n)
        start = sum(batch.sizes[: rank()])
        mine = slice(start, start + len(batch.ids))
        if share:
            unknown = self.step.model.text.unknown
            assert unknown is not None  # `prepare` has looked
            draws = torch.Generator().manual_seed(seed_of(*numbers, 1))
            ids = drop_words(ids, lengths, share, unknown, draws)
            batch = replace(batch, ids=ids[mine])
        if sampler is not None:
            generator = np.random.default_rng(seed_of(*numbers, 2))
            if self.data.drawn is not None:
                swaps = self.data.drawn.sample(ids, lengths, which, generator)
            else:
                swaps = sampler.sample(ids, lengths, batch.owners, generator)
            parts = (swaps.ids, swaps.lengths, swaps.places, swaps.found)
            batch = replace(batch, swaps=Swaps(*(part[mine] for part in parts)))
        return batch

    def one_step(self, batch: Batch) -> tuple[dict[str, Tensor], Tensor]:
        """Change the weights by one batch; return its losses and the gradient's length."""
        config, step = self.config, self.state.step
        factor = rate_factor(config.schedule, step, self.per_epoch, config.epochs)
        set_rate(self.optimiser, config.optimiser.rate * factor)
        self.optimiser.zero_grad(set_to_none=True)
        objective, told = self.wrapped(batch.to(self.device), self.losses.at(step), step)
        self.scaler.scale(objective).backward()
        self.scaler.unscale_(self.optimiser)
        length = clip(config.optimiser, self.trained)
        self.scaler.step(self.optimiser)
        self.scaler.update()
        if self.average is not None:
            self.average.update()
        return told, length

    def _count(self, told: dict[str, Tensor]) -> None:
        state = self.state
        for name, value in zip(told, torch.stack(list(told.values())).tolist(), strict=True):
            state.sums[name] = state.sums.get(name, 0.0) + value
        state.count += 1
        # Half precision's scaler expects gradients that are not finite, and leaves such steps out.
        if not math.isfinite(state.sums["loss"]):
            raise InputError(
                f"step {state.step + 1}: the loss is not a number any more; "
                "lower optimiser.rate or optimiser.clip, in another --out"
            )

    def _note_steps(self) -> None:
        """Write a line of the means since the last."""
        state = self.state
        means = {name: value / state.count for name, value in state.sums.items()}
        line: dict[str, Any] = {
            "kind": "step",
            "step": state.step,
            "epoch": state.epoch + 1,
            "at": round(state.epoch + state.batch / self.per_epoch, 4),
            **{name: round(value, 6) for name, value in means.items()},
            "rate": self.optimiser.param_groups[0]["lr"],
        }
        # In the first epoch all similarities are nearly equal without anything being wrong.
        if state.epoch > 0 and "spread" in means and collapsed(means["spread"]):
            line["collapsed"] = True
        if self.log is not None:
            self.log.write(line | {"seconds": round(time.perf_counter() - self._began, 1)})
        state.sums, state.count = {}, 0

    # Choosing ---------------------------------------------------------------------------------

    def look_at_dev(self) -> None:
        """Evaluate on dev, write it down, and keep the model if it is the best so far."""
        state = self.state
        figures: dict[str, float] = {}
        if is_first():
            with self._as_kept():
                figures = self.task.look(self.step.model, self.data.dev)
                if figures[self.task.figure] > state.best:
                    self._keep_best(figures)
        figures = from_first(figures)
        found = figures[self.task.figure]
        better = found > state.best
        if better:
            state.best, state.best_epoch = found, state.epoch
        state.history.append(figures)
        if self.log is not None:
            shown = {name: round(value, 3) for name, value in figures.items()}
            seconds = round(time.perf_counter() - self._began, 1)
            line = {"kind": "epoch", "step": state.step, "epoch": state.epoch, "dev": shown}
            self.log.write(line | {"best": better, "seconds": seconds})

    @contextlib.contextmanager
    def _as_kept(self) -> Iterator[None]:
        """Let the model be for the block what is looked at and kept."""
        with contextlib.ExitStack() as held:
            if self.average is not None:
                held.enter_context(self.average.in_place())
            # Where use is as training is, statistics stay what training gathered.
            if self.average is not None or self.config.augment.changes_images:
                regions = self.data.train.regions
                held.enter_context(measured_statistics(self.step.model, regions))
            yield

    def _keep_best(self, figures: dict[str, float]) -> None:
        model, figure = self.step.model, self.task.figure
        model.origin = {
            "trained by": "crossgaze train",
            "data": ", ".join(Path(one).name for one in self.config.data.named),
            "epoch": self.state.epoch,
            f"{figure} on dev": round(figures[figure], 2),
            "seed": self.config.seed,
            **self.data.origin,
        }
        model.save_pretrained(self.out / "best")
        if self.step.companion is not None:
            self.step.companion.save(self.out / "best-companion")

    def close(self) -> None:
        """Close the log."""
        if self.log is not None:
            self.log.close()

    def finish(self, command: str) -> dict[str, Any]:
        """Write the summary and the picture."""
        self.close()
        facts = {
            "config": to_dict(self.config),
            "command": command,
            "steps": self.state.step,
            "epochs": self.state.epoch,
            "best_epoch": self.state.best_epoch,
            "history": self.state.history,
            "seconds": round(self.state.seconds, 1),
            "device": str(self.device),
            "ranks": ranks(),
        }
        model, log = self.step.model, self.out / LOG
        return write_summary(self.out, model, self.data, facts, log, self.task.unit)
