"""What test_distributed.py does in each of two processes, and in one alone."""

import json
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from crossgaze.collectives import rank, ranks
from crossgaze.config import build
from crossgaze.models.bert import BertText
from crossgaze.training.config import TrainConfig
from crossgaze.training.distributed import process_group
from crossgaze.training.losses import make_loss
from crossgaze.training.prepare import prepare
from crossgaze.training.trainer import Run, train


def one_step(config, rows):
    """Return the losses and gradients of one batch, what was shown of it, and buffers after it."""
    with patch.object(BertText, "_run", autospec=True, side_effect=BertText._run) as reads:
        ready = prepare(config)
    run = Run(config, ready, Path("no-folder"), torch.device("cpu"))
    batch = run.shown(2, 3, run.data.train.read(rows, rank(), ranks()))
    objective, told = run.wrapped(batch, make_loss(config.loss), 5)
    objective.backward()
    return {
        "told": told,
        "reads": reads.call_count,
        "read": batch.captions,
        "shown": batch.ids,
        "swapped": None if batch.swaps is None else batch.swaps.ids,
        "gradients": {name: p.grad for name, p in run.step.named_parameters()},
        "buffers": dict(run.step.named_buffers()),
    }


def main(out, recipes):
    """Write losses and gradients of a step of each recipe; train by the second and the last."""
    found = {}
    with process_group("cpu"):
        for recipe in recipes:
            config = build(TrainConfig, json.loads(recipe.read_text()))
            if "bert" in recipe.stem:
                config = replace(config, data=replace(config.data, kept_words=out / "words"))
            found[recipe.stem] = one_step(config, np.arange(3, 14))  # 11: parts of 6 and 5
        config = build(TrainConfig, json.loads(recipes[1].read_text()))
        train(config, out / "run", device="cpu")
        # Batch norms are measured again for dev, which the first process does alone.
        config = build(TrainConfig, json.loads(recipes[-1].read_text()))
        train(replace(config, average=0.5), out / "run-with-norms", device="cpu")
        torch.save(found, out / f"rank{rank()}.pt")
