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
"""

from __future__ import annotations

import torch

from crossgaze.training.losses import Blend, LossConfig, MeanViolation, RankingLoss, make_loss


class WarmStart:
    """Gives the loss of every training step.

    Args:
        config: the loss to come to, and over how many steps.
        generator: of the draws of "sampled".

    Example:
        >>> start = WarmStart(LossConfig(kind="hardest", warm_steps=100))
        >>> [type(start.at(step)).__name__ for step in (0, 50, 100)]
        ['MeanViolation', 'Blend', 'Hardest']
    """

    def __init__(self, config: LossConfig, generator: torch.Generator | None = None) -> None:
        self.config = config
        self.last = make_loss(config, generator)
        self.first = MeanViolation(config.margin, mean=config.mean)

    def at(self, step: int) -> RankingLoss:
        """Return the loss of a step; the first is step 0."""
        steps = self.config.warm_steps if self.config.kind == "hardest" else 0
        if step >= steps:
            return self.last
        if step <= 0 or self.config.warm == "switch":
            return self.first
        return Blend(self.first, self.last, step / steps)


def collapsed(loss: float, batch: int, margin: float, *, within: float = 0.01) -> bool:
    """Tell whether a loss stands where all similarities are equal: at 2 x batch x margin.

    True for one batch can be chance early on; a run has collapsed if it stays so. Meant for
    "hardest" and "blend" without `mean` (with it, give a batch of 1).

    Args:
        loss: the loss of a batch, summed.
        batch: how many right pairs it has.
        margin: the margin.
        within: how near counts, as a share.

    Example:
        >>> collapsed(51.3, 128, 0.2), collapsed(40.0, 128, 0.2)
        (True, False)
    """
    return abs(loss - 2 * batch * margin) <= within * 2 * batch * margin
