"""What differs between learning to match and learning to answer; the loop is the same.

A family decides the task. A task gives the step (a batch to its loss), the figures on dev, and the
one of them that the best snapshot is chosen by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from crossgaze.collectives import rank, ranks, sum_over_ranks
from crossgaze.evaluation.judging import judge
from crossgaze.models.answerer import Answerer
from crossgaze.training.augment import augment
from crossgaze.training.batches import Batch
from crossgaze.training.config import TrainConfig
from crossgaze.training.losses import RankingLoss
from crossgaze.training.questions import AskedSet
from crossgaze.training.seeds import seed_everything
from crossgaze.training.step import Step, autocast, share_of
from crossgaze.training.validation import evaluate_dev

QUESTIONS = 256  # answered at once


@dataclass(frozen=True)
class Task:
    """What a run does.

    Args:
        unit: what a batch is made of, for people.
        figure: of dev, by which the best snapshot is chosen: the highest.
        title: what that figure is called.
        step: makes the module that gives the loss, from settings, model and companion.
        look: gives the figures of a model on the dev set.
    """

    unit: str
    figure: str
    title: str
    step: Callable[[TrainConfig, Any, Any], nn.Module]
    look: Callable[[Any, Any], dict[str, float]]


class AnswerStep(nn.Module):
    """A model that answers, as a module that gives the loss.

    Args:
        config: of the run.
        model: the answerer.
        companion: nothing learns along.
    """

    def __init__(self, config: TrainConfig, model: Answerer, companion: None = None) -> None:
        super().__init__()
        self.config, self.model, self.companion = config, model, companion

    def forward(
        self, batch: Batch, loss: RankingLoss, step: int = 0
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the cross-entropy of the right answers, to differentiate, and for people.

        Section 3.3 of DAN: a softmax classifier with cross-entropy, here its mean over the batch.
        The first is multiplied by the number of processes, since their gradients are averaged.

        Args:
            batch: this process's part, on the model's device.
            loss: of a matching model; not looked at.
            step: its number, which decides what is drawn in it.
        """
        seed_everything(self.config.seed, step, rank())
        regions, counts = augment(self.config.augment, batch.regions, batch.counts)
        with autocast(self.config.precision, batch.ids.device):
            found = self.model.answer_tokens(regions, batch.ids, batch.lengths, counts=counts)
        labels, share = batch.labels, share_of(batch)
        assert labels is not None  # an `AskedSet` gives them
        mine = share * F.cross_entropy(found.logits.float(), labels)
        right = share * (found.logits.argmax(1) == labels).float().mean()
        told = {"loss": sum_over_ranks(mine.detach()), "right": sum_over_ranks(right.detach())}
        return mine * ranks(), told


@torch.no_grad()
def look_at_answers(model: Answerer, dev: AskedSet) -> dict[str, float]:
    """Return the accuracy of a model on dev, in all and by type; its mode is left as it was."""
    training = model.training
    model.eval()
    try:
        said = []
        for start in range(0, len(dev.sentences), QUESTIONS):
            rows = range(start, min(start + QUESTIONS, len(dev.sentences)))
            batch = dev.read(torch.tensor(rows).numpy()).to(model.device)
            found = model.answer_tokens(
                batch.regions, batch.ids, batch.lengths, counts=batch.counts
            )
            said += [model.answers[number] for number in found.logits.argmax(1).tolist()]
        judged = judge(dev.questions, said, dev.metric)
        return {name: 100 * float(values.mean()) for name, values in judged.groups().items()}
    finally:
        model.train(training)


TASKS = {
    "match": Task("captions", "rsum", "sum of recalls", Step, evaluate_dev),
    "answer": Task("questions", "accuracy", "accuracy", AnswerStep, look_at_answers),
}


def task_of(config: TrainConfig) -> Task:
    """Return the task of a recipe, which its family decides."""
    return TASKS[config.task]
