"""What a training run is: a recipe's keys, as frozen dataclasses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from crossgaze.config import build, to_dict
from crossgaze.errors import InputError
from crossgaze.models.checks import (
    require_choice,
    require_positive,
    require_share,
    require_whole,
)
from crossgaze.models.families import answers, family
from crossgaze.training.constraints import ConstraintConfig
from crossgaze.training.data_config import DataConfig
from crossgaze.training.losses import LossConfig

MOST = 1 << 40  # steps, epochs, seeds: no bound that anybody meets
Optimiser = Literal["adam", "adamw", "sgd"]
Schedule = Literal["constant", "drop", "cosine"]
Precision = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class OptimiserConfig:
    """How weights are changed.

    Args:
        kind: "adam", "adamw" or "sgd".
        rate: the learning rate at its highest.
        pretrained: the share of it that a BERT has which is trained along.
        momentum: of SGD.
        betas: of Adam.
        weight_decay: pull towards zero.
        clip: bound on the gradient; 0 for none.
        clip_by: bound its length ("norm", as the public code does) or every number ("value").
    """

    kind: Optimiser = "adam"
    rate: float = 2e-4
    pretrained: float = 0.1
    momentum: float = 0.9
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    clip: float = 2.0
    clip_by: Literal["norm", "value"] = "norm"

    def __post_init__(self) -> None:
        require_choice("optimiser.kind", self.kind, get_args(Optimiser))
        require_choice("optimiser.clip_by", self.clip_by, ("norm", "value"))
        require_positive("optimiser.rate", self.rate)
        require_positive("optimiser.pretrained", self.pretrained)
        require_share("optimiser.momentum", self.momentum)
        for beta in self.betas:
            require_share("optimiser.betas", beta)
        _require_from_zero("optimiser.weight_decay", self.weight_decay)
        _require_from_zero("optimiser.clip", self.clip)


@dataclass(frozen=True)
class ScheduleConfig:
    """How the learning rate changes.

    Args:
        kind: "constant", "drop" after some epochs, or "cosine" to `floor` at the end.
        after: epochs after which it drops.
        factor: what each drop multiplies it by.
        warmup: steps over which it rises first.
        floor: share of the rate that a cosine ends at.
    """

    kind: Schedule = "drop"
    after: tuple[int, ...] = (15,)
    factor: float = 0.1
    warmup: int = 0
    floor: float = 0.0

    def __post_init__(self) -> None:
        require_choice("schedule.kind", self.kind, get_args(Schedule))
        for epoch in self.after:
            require_whole("schedule.after", epoch, most=MOST)
        require_positive("schedule.factor", self.factor)
        require_whole("schedule.warmup", self.warmup, least=0, most=MOST)
        require_share("schedule.floor", self.floor)


@dataclass(frozen=True)
class AugmentConfig:
    """What is changed in what the model is shown, anew in every step.

    Args:
        words: share of words that become <unk>; the caption generator still learns the real ones.
        regions: share of regions that are left out; one always stays.
        features: share of the features' numbers that become 0 in all regions of an image (the rest
            grows to match).
        noise: Gaussian noise on features, as a share of each number's deviation in the batch.
    """

    words: float = 0.0
    regions: float = 0.0
    features: float = 0.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        for name in ("words", "regions", "features"):
            require_share(f"augment.{name}", getattr(self, name))
        _require_from_zero("augment.noise", self.noise)

    @property
    def changes_images(self) -> bool:
        """Whether images in training are others than in use."""
        return bool(self.regions or self.features or self.noise)


@dataclass(frozen=True)
class TrainConfig:
    """A training run.

    Args:
        data: what is learned from.
        family: the model's family (`crossgaze.models.families`).
        model: the keys of that family's own configuration; `region_width` may be left out, then it
            is the store's.
        companion: the keys of what the family trains along (VSRN: the caption generator); None for
            nothing.
        loss: the ranking loss and its warm start.
        constraints: CCR and CCS; 0 for none.
        optimiser: how weights are changed.
        schedule: how the learning rate changes.
        augment: what is changed in what the model is shown.
        epochs: passes over all training captions.
        batch: captions a step, over all devices together.
        patience: epochs without a better dev result after which training ends; 0 for never.
        average: decay of the averaged weights that are evaluated and kept; 0 for the weights
            themselves.
        precision: what encoders compute in; anything but float32 is for a GPU.
        seed: of weights, order, dropout, augmentation and sampled negatives.
        start: a model's folder to start from instead of random weights.
        save_every: steps between checkpoints, beside the one after each epoch.
        log_every: steps between lines in the log.
    """

    data: DataConfig
    family: str = "scan"
    model: Any = field(default_factory=dict)
    companion: Any = None
    loss: LossConfig = field(default_factory=LossConfig)
    constraints: ConstraintConfig = field(default_factory=ConstraintConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    epochs: int = 30
    batch: int = 128
    patience: int = 0
    average: float = 0.0
    precision: Precision = "float32"
    seed: int = 0
    start: Path | None = None
    save_every: int = 200
    log_every: int = 20

    def __post_init__(self) -> None:
        for name in ("epochs", "save_every", "log_every"):
            require_whole(name, getattr(self, name), most=MOST)
        require_whole("batch", self.batch, least=2)
        require_whole("patience", self.patience, least=0, most=MOST)
        require_whole("seed", self.seed, least=0, most=MOST)
        require_share("average", self.average)
        require_choice("precision", self.precision, get_args(Precision))
        wanted = "questions" if self.task == "answer" else "captions"
        if (self.data.questions is not None) != (self.task == "answer"):
            raise InputError(f"data: {self.family} learns from {wanted}, wanted data.{wanted}")
        if self.task == "answer" and self.constraints.active:
            raise InputError(f"constraints: {self.family} has none, wanted no such key")
        if self.augment.words and self.constraints.ccs and self.constraints.drawn:
            raise InputError(
                "constraints.drawn: words that augment.words drops cannot be swapped beforehand, "
                "wanted 0 for one of them"
            )
        self.model_config()
        self.companion_config()

    @property
    def task(self) -> Literal["match", "answer"]:
        """What is learned, which the family decides."""
        return "answer" if answers(self.family) else "match"

    def model_config(self, region_width: int | None = None) -> Any:  # noqa: ANN401 (each family's)
        """Return the family's own configuration.

        Args:
            region_width: the store's, for a recipe that leaves it out.
        """
        _, kind = family(self.family)
        given = _keys("model", self.model)
        if region_width is not None and "region_width" not in given:
            given["region_width"] = region_width
        return _build("model", kind, given)

    def companion_config(self) -> Any:  # noqa: ANN401
        """Return the configuration of what the family trains along, or None."""
        if self.companion is None:
            return None
        model, _ = family(self.family)
        kind = getattr(model, "companion_type", None)
        if kind is None:
            raise InputError(f"companion: {self.family} has none, wanted no such key")
        return _build("companion", kind, _keys("companion", self.companion))


def differences(one: TrainConfig, other: TrainConfig) -> list[str]:
    """Return what differs between two runs, each as 'key is this, not that'."""
    first, second = _flat(to_dict(one)), _flat(to_dict(other))
    return [
        f"{key} is {first.get(key, 'not given')}, not {second.get(key, 'not given')}"
        for key in sorted(first.keys() | second.keys())
        if first.get(key, _ABSENT) != second.get(key, _ABSENT)
    ]


_ABSENT = object()


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:  # noqa: ANN401
    if not isinstance(tree, Mapping) or not tree:
        return {prefix.rstrip("."): tree}
    parts: dict[str, Any] = {}
    for key, value in tree.items():
        parts |= _flat(value, f"{prefix}{key}.")
    return parts


def _keys(name: str, tree: Any) -> dict[str, Any]:  # noqa: ANN401
    if not isinstance(tree, Mapping):
        raise InputError(f"{name}: got {tree!r}, wanted keys and values")
    return dict(tree)


def _build(name: str, kind: type[Any], tree: Mapping[str, Any]) -> Any:  # noqa: ANN401
    try:
        return build(kind, tree)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _require_from_zero(name: str, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:  # type: ignore[operator]
        raise InputError(f"{name}: got {value!r}, wanted a number, 0 or more")
