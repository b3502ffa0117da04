"""A start that does not collapse under hardest negatives.

With the hardest negative of each query an untrained model can shorten its loss fastest by making
all similarities equal: each of the 2 N hinges is then exactly the margin, the loss of a batch of N
stands at 2 N margin, and every gradient cancels. The loss never falls again. Users of the papers'
code meet this, most of all with high rates of learning and large batches.

A mean over all negatives that violate the margin does not have this way out: it rewards what tells
*most* sentences from the right one. So the first steps use that mean, and "blend" moves over to the
hardest in a straight line,

    (1 - t / T) mean violation + (t / T) hardest,    t = 0 .. T,

while "switch" stays with the mean until step T. A mean and not eq. 11's sum, so that a query weighs
as much as it will later: the sum is up to N - 1 times as large.

What cold and warm starts come to is a table of docs/training.md, which
`tools/measure_warm_start.py` makes (`results/warm-start.json`). An epoch is the default.
"""

from __future__ import annotations

import torch

from crossgaze.training.losses import Blend, LossConfig, MeanViolation, RankingLoss, make_loss


class WarmStart:
    """Gives the loss of every training step.

    Args:
        config: the loss to come to, and over how many steps.
        per_epoch: steps of an epoch, over which it comes where the configuration says nothing.
        generator: of the draws of "sampled".

    Example:
        >>> start = WarmStart(LossConfig(kind="hardest", warm_steps=100))
        >>> [type(start.at(step)).__name__ for step in (0, 50, 100)]
        ['MeanViolation', 'Blend', 'Hardest']
    """

    def __init__(
        self, config: LossConfig, per_epoch: int = 0, generator: torch.Generator | None = None
    ) -> None:
        self.config = config
        self.steps = 0
        if config.kind == "hardest":
            self.steps = per_epoch if config.warm_steps is None else config.warm_steps
        self.last = make_loss(config, generator)
        self.first = MeanViolation(config.margin, mean=config.mean)

    def at(self, step: int) -> RankingLoss:
        """Return the loss of a step; the first is step 0."""
        if step >= self.steps:
            return self.last
        if step <= 0 or self.config.warm == "switch":
            return self.first
        return Blend(self.first, self.last, step / self.steps)


def collapsed(spread: float, *, least: float = 0.005) -> bool:
    """Tell whether all similarities of a batch have become equal.

    The loss alone does not tell: it also passes 2 x batch x margin on its way down.

    Args:
        spread: the standard deviation of the batch's scores.
        least: what a model that learns stays above.

    Example:
        >>> collapsed(0.001), collapsed(0.02)
        (True, False)
    """
    return spread < least
