"""Optimisers, the learning rate over time, and averaged weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from crossgaze.training.config import OptimiserConfig, ScheduleConfig


def make_optimiser(
    config: OptimiserConfig,
    parameters: Iterable[nn.Parameter],
    pretrained: Iterable[nn.Parameter] = (),
) -> torch.optim.Optimizer:
    """Return the optimiser of a configuration; `set_rate` sets its rate before every step.

    Args:
        config: the optimiser.
        parameters: all that is trained.
        pretrained: those of them that were trained before, a BERT's; they have a share of the rate.
    """
    before = {id(parameter) for parameter in pretrained}
    fresh: list[nn.Parameter] = []
    old: list[nn.Parameter] = []
    for parameter in parameters:
        if parameter.requires_grad:
            (old if id(parameter) in before else fresh).append(parameter)
    groups: list[dict[str, Any]] = [{"params": fresh, "share": 1.0}]
    if old:
        groups.append({"params": old, "share": config.pretrained})
    rate, decay = config.rate, config.weight_decay
    if config.kind == "sgd":
        return torch.optim.SGD(groups, rate, momentum=config.momentum, weight_decay=decay)
    kind = torch.optim.AdamW if config.kind == "adamw" else torch.optim.Adam
    return kind(groups, rate, betas=config.betas, weight_decay=decay)


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Give every weight the rate, or its share of it."""
    for group in optimiser.param_groups:
        group["lr"] = rate * group.get("share", 1.0)


def rate_factor(config: ScheduleConfig, step: int, per_epoch: int, epochs: int) -> float:
    """Return what the learning rate is multiplied by in a step, counted from 0.

    A function of the step alone, so that a run that goes on needs to remember nothing.

    Args:
        config: the schedule.
        step: how many steps were made before.
        per_epoch: steps of an epoch.
        epochs: of the whole run.

    Example:
        >>> from crossgaze.training.config import ScheduleConfig
        >>> drop = ScheduleConfig(kind="drop", after=(2,))
        >>> [round(rate_factor(drop, step, 10, 3), 3) for step in (0, 19, 20)]
        [1.0, 1.0, 0.1]
    """
    rise = min(1.0, (step + 1) / config.warmup) if config.warmup else 1.0
    if config.kind == "constant":
        return rise
    if config.kind == "drop":
        return rise * config.factor ** sum(step >= epoch * per_epoch for epoch in config.after)
    done = min(step / max(per_epoch * epochs, 1), 1.0)
    fall = 0.5 + 0.5 * math.cos(math.pi * done)
    return rise * (config.floor + (1 - config.floor) * fall)


def clip(config: OptimiserConfig, parameters: Iterable[nn.Parameter]) -> Tensor:
    """Bound the gradient as configured and return its length before, ()."""
    given = [parameter for parameter in parameters if parameter.grad is not None]
    if config.clip and config.clip_by == "value":
        length = nn.utils.get_total_norm([p.grad for p in given if p.grad is not None])
        nn.utils.clip_grad_value_(given, config.clip)
        return length
    return nn.utils.clip_grad_norm_(given, config.clip or math.inf)


class AveragedWeights:
    """A running mean of a module's weights, which overfits later than the weights themselves.

    After n steps the mean keeps min(decay, (1 + n) / (10 + n)) of itself, so that the first steps,
    far from where training ends, are soon forgotten. Buffers, such as a batch norm's statistics,
    and whole numbers are taken as they are.

    Args:
        module: whose weights.
        decay: how much of the mean stays in a step, 0 to less than 1.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.module, self.decay, self.steps = module, decay, 0
        self.mean = {name: p.detach().clone() for name, p in module.named_parameters()}

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights as they are now."""
        keep = min(self.decay, (1 + self.steps) / (10 + self.steps))
        self.steps += 1
        for name, parameter in self.module.named_parameters():
            self.mean[name].lerp_(parameter.detach(), 1 - keep)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the module have the mean for the block, and its own weights again afterwards."""
        own = {name: p.detach().clone() for name, p in self.module.named_parameters()}
        self._put(self.mean)
        try:
            yield
        finally:
            self._put(own)

    @torch.no_grad()
    def _put(self, weights: Mapping[str, Tensor]) -> None:
        for name, parameter in self.module.named_parameters():
            parameter.copy_(weights[name])

    def state_dict(self) -> dict[str, object]:
        """Return what a checkpoint keeps."""
        return {"steps": self.steps, "mean": self.mean}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from a checkpoint."""
        self.steps = int(state["steps"])  # type: ignore[call-overload]
        for name, value in state["mean"].items():  # type: ignore[attr-defined]
            self.mean[name].copy_(value)
