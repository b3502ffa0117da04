"""Ranking losses over a batch's similarities.

| loss | kind | paper |
| --- | --- | --- |
| every negative that violates the margin, summed | "violations" | SCAN, eq. 11 |
| the hardest negative alone | "hardest" | SCAN eq. 12, VSRN eq. 8, MMCA eq. 15, CCR/CCS eq. 4 |
| negatives drawn at random | "sampled" | DAN, eq. 20 |
| the logarithm of the right one's share among the hardest few | "softmax" | none of the five |

All are sums, over the right pairs (I, T) of a batch, of two costs (hinges, but for the last): the
image asks among sentences, the sentence asks among images. A sentence of the same image is never a
negative, whichever pair of the batch it came with. (The public code takes only a pair's own
sentence for right, so that a batch that holds an image twice punishes a right answer.)

| paper | code | shape |
| --- | --- | --- |
| S(I, T), S(I, T-hat), S(I-hat, T) | `scores` | (N, M) images x sentences |
| alpha, m, gamma_1 | `LossConfig.margin` | |
| T-hat given I, I-hat given T | `RankingLoss.one_way` on `scores`, on `scores.T` | (Q, C) |

Where a score plays no part in the loss its gradient is exactly zero, not small:
`crossgaze.scoring.pairs` then never computes that pair's backward pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from crossgaze.errors import InputError
from crossgaze.models.checks import (
    require_choice,
    require_positive,
    require_switch,
    require_whole,
)

Kind = Literal["violations", "hardest", "sampled", "softmax"]
Warm = Literal["blend", "switch"]


@dataclass(frozen=True)
class LossConfig:
    """What a ranking loss is, and how training comes to it.

    Args:
        kind: "violations", "hardest", "sampled" or "softmax".
        margin: how far a right pair must be ahead of a wrong one; 100 in DAN, 0.2 elsewhere.
        negatives: wrong sentences for an image, and images for a sentence: how many are drawn
            ("sampled"), how many of the hardest count ("softmax").
        temperature: what similarities are divided by ("softmax").
        mean: whether to divide by the number of right pairs; the papers' code does not.
        warm_steps: first steps in which "hardest" gives way to the mean violation: an epoch's if
            not given, since a cold start, 0, can collapse. The other kinds need none. See
            `crossgaze.training.warm_start`.
        warm: "blend" moves over step by step, "switch" at once.
    """

    kind: Kind = "hardest"
    margin: float = 0.2
    negatives: int = 1
    temperature: float = 0.05
    mean: bool = False
    warm_steps: int | None = None
    warm: Warm = "blend"

    def __post_init__(self) -> None:
        require_choice("loss.kind", self.kind, get_args(Kind))
        require_choice("loss.warm", self.warm, get_args(Warm))
        require_positive("loss.margin", self.margin)
        require_positive("loss.temperature", self.temperature)
        require_whole("loss.negatives", self.negatives)
        if self.warm_steps is not None:
            require_whole("loss.warm_steps", self.warm_steps, least=0, most=1 << 40)
        require_switch("loss.mean", self.mean)


class RankingLoss(ABC):
    """Sums what is wrong with a batch's similarities.

    Args:
        margin: how far a right pair must be ahead.
        mean: whether to divide by the number of right pairs.
    """

    def __init__(self, margin: float, *, mean: bool = False) -> None:
        self.margin, self.mean = margin, mean

    def __call__(self, scores: Tensor, images: Tensor, texts: Tensor) -> Tensor:
        """Return the loss of a batch of N right pairs, ().

        Args:
            scores: (N, N), row i an image, column j a sentence; sentence i came with image i.
            images: (N,) int64, the number of each row's image.
            texts: (N,) int64, the number of the image that each column's sentence belongs to.
        """
        if scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
            raise InputError(
                f"scores: got shape {tuple(scores.shape)}, wanted (N, N); "
                "for a part of a larger batch there is one_way"
            )
        asked = self.one_way(scores, images, texts)
        return asked + self.one_way(scores.T, texts, images)

    def one_way(
        self, scores: Tensor, queries: Tensor, answers: Tensor, own: Tensor | None = None
    ) -> Tensor:
        """Return the half of the loss in which rows ask and columns answer, ().

        The whole loss of a batch is this of its scores plus this of their transpose. A process
        that holds Q of a batch's C pairs gives its images against all sentences, then its sentences
        against all images; the sums over the processes make the loss of the whole batch. (With
        `mean`, their averages do.)

        Args:
            scores: (Q, C) of Q queries with C answers of the other side.
            queries: (Q,) int64, the image number of each query.
            answers: (C,) int64, the image number of each answer.
            own: (Q,) int64, the answer that each query came with; the first Q if not given.
        """
        own = _require(scores, queries, answers, own)
        if not len(queries):
            return scores.sum()  # zero, and still part of the graph
        right = scores.gather(1, own[:, None])  # (Q, 1), S(I, T)
        wrong = queries[:, None] != answers  # (Q, C), which answers are negatives
        total = self._costs(scores, right, wrong, own).sum()
        return total / len(queries) if self.mean else total

    @abstractmethod
    def _costs(self, scores: Tensor, right: Tensor, wrong: Tensor, own: Tensor) -> Tensor:
        """Return what each query costs, (Q,) or (Q, anything).

        Args:
            scores: (Q, C).
            right: (Q, 1) the score of each query with its own answer.
            wrong: (Q, C), which answers are negatives; maybe none.
            own: (Q,) each query's own answer.
        """


def _require(scores: Tensor, queries: Tensor, answers: Tensor, own: Tensor | None) -> Tensor:
    """Check shapes and that each query's own answer is right; return `own`."""
    if scores.ndim != 2 or scores.shape != (len(queries), len(answers)):
        raise InputError(
            f"scores: got shape {tuple(scores.shape)} with {len(queries)} queries and "
            f"{len(answers)} answers, wanted one score for each two of them"
        )
    if own is None:
        own = torch.arange(len(queries), device=scores.device)
        if len(queries) > len(answers):
            raise InputError(f"own: got none for {len(queries)} queries and {len(answers)} answers")
    if own.shape != queries.shape:
        raise InputError(f"own: got shape {tuple(own.shape)}, wanted ({len(queries)},)")
    inside = (own >= 0) & (own < len(answers))
    # An index that is not inside must not be looked up: on a GPU that ends the process.
    if not bool((inside & (answers[own * inside] == queries)).all()):
        raise InputError("own: got an answer of another image, wanted each query's own answer")
    return own


class Violations(RankingLoss):
    """Eq. 11 of SCAN: the sum over all negatives that come closer than the margin."""

    def _costs(self, scores: Tensor, right: Tensor, wrong: Tensor, own: Tensor) -> Tensor:
        return self._hinges(scores, right, wrong)

    def _hinges(self, scores: Tensor, right: Tensor, wrong: Tensor) -> Tensor:
        """Return [alpha - S(I, T) + S(I, T-hat)]_+ of every negative, (Q, C), 0 elsewhere."""
        # relu and not clamp: at exactly 0 its gradient is 0, so that pair is left alone.
        return F.relu(self.margin - right + scores).masked_fill(~wrong, 0.0)


class MeanViolation(Violations):
    """The mean over the negatives that come closer than the margin: the size of "hardest"."""

    def _costs(self, scores: Tensor, right: Tensor, wrong: Tensor, own: Tensor) -> Tensor:
        hinges = self._hinges(scores, right, wrong)
        return hinges.sum(1) / (hinges.detach() > 0).sum(1).clamp(min=1)  # (Q,)


class Hardest(RankingLoss):
    """Eq. 12 of SCAN: the hardest negative of each query, T-hat_h and I-hat_h.

    Eq. 8 of VSRN (its L_M), Eq. 15 of MMCA and Eq. 4 of CCR/CCS (l_rank) are the same.
    """

    def _costs(self, scores: Tensor, right: Tensor, wrong: Tensor, own: Tensor) -> Tensor:
        # Of equals one is taken: max with a dimension gives the gradient to one place alone.
        hardest = scores.masked_fill(~wrong, -torch.inf).max(1, keepdim=True).values  # (Q, 1)
        return F.relu(self.margin - right + hardest)  # 0 where there is no negative


class Sampled(RankingLoss):
    """Eq. 20 of DAN: a negative image and a negative sentence drawn for each right pair.

    They are drawn from the batch, each as likely as any other, without repetition: a batch is
    itself drawn at random, and this costs no further encoding. (DAN encodes a quadruplet of a right
    pair, a negative image and a negative sentence.) Draws are made for all C pairs of a batch, so
    that processes with the same generator draw what one process would.

    Args:
        margin: m, 100 in the paper.
        negatives: how many are drawn; the paper draws one.
        mean: whether to divide by the number of right pairs.
        generator: of the draws, on the CPU; torch's own if not given.
    """

    def __init__(
        self,
        margin: float,
        negatives: int = 1,
        *,
        mean: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(margin, mean=mean)
        self.negatives, self.generator = negatives, generator

    def _costs(self, scores: Tensor, right: Tensor, wrong: Tensor, own: Tensor) -> Tensor:
        count = scores.shape[1]
        draws = torch.rand(count, count, generator=self.generator).to(scores.device)[own]
        draws = draws.masked_fill(~wrong, -1.0)  # (Q, C)
        drawn, places = draws.topk(min(self.negatives, count), dim=1)  # (Q, negatives)
        hinges = F.relu(self.margin - right + scores.gather(1, places))
        return hinges.masked_fill(drawn < 0, 0.0)  # where there are fewer negatives than wanted


class Softmax(RankingLoss):
    """The cross entropy of the right answer among itself and the hardest negatives.

    -log(exp(S(I, T) / t) / (exp(S(I, T) / t) + sum over T-hat of exp(S(I, T-hat) / t))), the loss
    of contrastive learning, over the few negatives that weigh most in it: the others' pairs need
    no backward pass.

    Args:
        temperature: t.
        negatives: how many of the hardest count.
        mean: whether to divide by the number of right pairs.
    """

    def __init__(self, temperature: float, negatives: int = 1, *, mean: bool = False) -> None:
        super().__init__(margin=0.0, mean=mean)
        self.temperature, self.negatives = temperature, negatives

    def _costs(self, scores: Tensor, right: Tensor, wrong: Tensor, own: Tensor) -> Tensor:
        hardest = scores.masked_fill(~wrong, -torch.inf)
        hardest = hardest.topk(min(self.negatives, scores.shape[1]), dim=1).values
        logits = torch.cat([right, hardest], 1) / self.temperature  # (Q, 1 + negatives)
        return torch.logsumexp(logits, 1) - logits[:, 0]


class Blend(RankingLoss):
    """A weighted sum of two losses.

    Args:
        first: counts 1 - share.
        second: counts share.
        share: from 0 to 1.
    """

    def __init__(self, first: RankingLoss, second: RankingLoss, share: float) -> None:
        super().__init__(second.margin, mean=second.mean)
        self.first, self.second, self.share = first, second, share

    def _costs(self, scores: Tensor, right: Tensor, wrong: Tensor, own: Tensor) -> Tensor:
        easy = self.first._costs(scores, right, wrong, own)
        hard = self.second._costs(scores, right, wrong, own)
        return (1 - self.share) * easy.sum() + self.share * hard.sum()


def make_loss(config: LossConfig, generator: torch.Generator | None = None) -> RankingLoss:
    """Return the loss that a configuration names, without its warm start.

    Args:
        config: which.
        generator: of the draws of "sampled".

    Example:
        >>> loss = make_loss(LossConfig(kind="hardest", margin=0.5))
        >>> scores = torch.tensor([[1.0, 0.75], [0.25, 1.0]])
        >>> loss(scores, torch.tensor([0, 1]), torch.tensor([0, 1]))
        tensor(0.5000)
    """
    if config.kind == "violations":
        return Violations(config.margin, mean=config.mean)
    if config.kind == "sampled":
        return Sampled(config.margin, config.negatives, mean=config.mean, generator=generator)
    if config.kind == "softmax":
        return Softmax(config.temperature, config.negatives, mean=config.mean)
    return Hardest(config.margin, mean=config.mean)
