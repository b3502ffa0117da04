"""Where a training run is."""

from __future__ import annotations

from dataclasses import dataclass, field

from crossgaze.training.config import TrainConfig


@dataclass
class State:
    """Where a run is.

    Args:
        step: steps that were made.
        epoch: epochs that were finished.
        batch: batches of the next epoch that were done.
        best: the highest sum of recalls so far.
        best_epoch: when it was reached.
        history: dev figures after each epoch.
        seconds: time that was spent, also before the run was stopped.
        sums: of losses by name, over `count` steps since the last line of the log.
        count: those steps.
        log_bytes: of the log that belong to this state.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best: float = -1.0
    best_epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0
    sums: dict[str, float] = field(default_factory=dict)
    count: int = 0
    log_bytes: int = 0

    def ended(self, config: TrainConfig) -> bool:
        """Whether there is nothing left to do."""
        stale = self.epoch - self.best_epoch
        return self.epoch >= config.epochs or bool(config.patience and stale >= config.patience)
