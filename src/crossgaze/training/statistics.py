"""Statistics of batch norms that fit what a model is when it is looked at.

In training a batch norm gathers mean and variance of what it is shown then: images with regions and
numbers left out, through weights that change from step to step. A model that is looked at has other
weights (their running mean) and sees whole images, and where the two differ every image is moved by
the same wrong amount. So where they do, statistics are measured again, on training images as they
are, through the weights that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from crossgaze.collectives import alone
from crossgaze.models.matcher import Matcher
from crossgaze.training.batches import ImageRegions

IMAGES, BLOCK = 4096, 128  # measured on at most, and encoded at once


@contextmanager
def measured_statistics(model: nn.Module, regions: ImageRegions) -> Iterator[None]:
    """Let a matcher's batch norms have statistics of images as they are, for the block.

    Mean and variance are the means of those of blocks of images. A norm that no image goes through
    keeps what it has; a model without norms is not run at all. Afterwards everything is as before.

    Args:
        model: with the weights that are looked at; on one process of several it is run alone.
        regions: of the training images.
    """
    norms = [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]
    norms = [layer for layer in norms if layer.track_running_stats]
    if not norms or not isinstance(model, Matcher):
        yield
        return
    modes = [(module, module.training) for module in model.modules()]
    kept = [
        ({key: value.clone() for key, value in layer.named_buffers()}, layer.momentum)
        for layer in norms
    ]
    try:
        model.eval()
        for layer in norms:
            layer.reset_running_stats()
            layer.momentum = None  # the mean over all blocks
            layer.train()
        _show(model, regions)
        for layer, (buffers, _) in zip(norms, kept, strict=True):
            layer.eval()
            if not layer.num_batches_tracked:
                _put(layer, buffers)
        yield
    finally:
        for layer, (buffers, momentum) in zip(norms, kept, strict=True):
            layer.momentum = momentum
            _put(layer, buffers)
        for module, training in modes:
            module.training = training


@torch.no_grad()
def _show(model: Matcher, regions: ImageRegions) -> None:
    """Encode images from all over the set, in blocks of nearly one size."""
    count = min(len(regions), IMAGES)
    some = np.linspace(0, len(regions) - 1, count).astype(np.int64)
    with alone():
        for block in np.array_split(some, max(count // BLOCK, 1)):
            model.encode_images(*regions.gather(block))


@torch.no_grad()
def _put(layer: nn.Module, buffers: dict[str, torch.Tensor]) -> None:
    for key, value in layer.named_buffers():
        value.copy_(buffers[key])
