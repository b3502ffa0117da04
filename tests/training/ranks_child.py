"""What test_distributed.py does in each of two processes, and in one alone."""

import json
from dataclasses import replace

import numpy as np
import torch

from crossgaze.collectives import rank, ranks
from crossgaze.config import build
from crossgaze.training.config import TrainConfig
from crossgaze.training.distributed import process_group, wrap
from crossgaze.training.losses import make_loss
from crossgaze.training.prepare import prepare
from crossgaze.training.swaps import Swaps, SwapSampler, word_list
from crossgaze.training.tasks import task_of
from crossgaze.training.trainer import train


def one_step(config, rows):
    """Return the losses and gradients of one batch, and buffers after it."""
    ready = prepare(config)
    step = task_of(config).step(config, ready.model, ready.companion)
    batch = ready.train.read(rows, rank(), ranks())
    if ready.sampler is not None:
        sentences, owners = ready.train.sentences, ready.train.owners
        sampler = SwapSampler(sentences.rows(), owners, word_list(ready.model.text), least=1)
        whole = ready.train.read(rows)
        swaps = sampler.sample(whole.ids, whole.lengths, owners[rows], np.random.default_rng(0))
        start = sum(batch.sizes[: rank()])
        mine = slice(start, start + batch.sizes[rank()])
        parts = (swaps.ids, swaps.lengths, swaps.places, swaps.found)
        batch = replace(batch, swaps=Swaps(*(part[mine] for part in parts)))
    wrapped = wrap(step, torch.device("cpu"))  # must live until the backward pass is done
    objective, told = wrapped(batch, make_loss(config.loss), 5)
    objective.backward()
    return {
        "told": told,
        "read": batch.captions,
        "gradients": {name: p.grad for name, p in step.named_parameters()},
        "buffers": dict(step.named_buffers()),
    }


def main(out, recipes):
    """Write losses and gradients of each recipe's first step; train by the first and the last."""
    found = {}
    with process_group("cpu"):
        for recipe in recipes:
            config = build(TrainConfig, json.loads(recipe.read_text()))
            found[recipe.stem] = one_step(config, np.arange(3, 14))  # 11: parts of 6 and 5
        config = build(TrainConfig, json.loads(recipes[0].read_text()))
        train(config, out / "run", device="cpu")
        # Batch norms are measured again for dev, which the first process does alone.
        config = build(TrainConfig, json.loads(recipes[-1].read_text()))
        train(replace(config, average=0.5), out / "run-with-norms", device="cpu")
        torch.save(found, out / f"rank{rank()}.pt")
