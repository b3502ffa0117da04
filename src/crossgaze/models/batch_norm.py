"""A batch norm over the rows of all processes that train together, on any device.

torch's own (`SyncBatchNorm`) needs a GPU and the same number of rows from every process.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from crossgaze.collectives import sum_over_ranks


def shared_batch_norm(layer: nn.BatchNorm1d, x: Tensor) -> Tensor:
    """Apply a batch norm in training to (N, D) or (N, D, k) with all ranks' mean and variance.

    Args:
        layer: its weights and running statistics, which every rank updates the same way.
        x: this rank's rows; N may differ between ranks.
    """
    kind = x.dtype
    x = x.to(torch.promote_types(kind, torch.float32))  # half precision counts and adds up wrongly
    dims = (0,) if x.ndim == 2 else (0, 2)
    rows = x.new_tensor([x.numel() / layer.num_features])
    count = sum_over_ranks(rows)  # (1,)
    if float(count) < 2:  # one row has no variance
        mean, variance = layer.running_mean, layer.running_var
        return F.batch_norm(x, mean, variance, layer.weight, layer.bias, eps=layer.eps).to(kind)
    shape = (1, -1) if x.ndim == 2 else (1, -1, 1)
    mean = sum_over_ranks(x.sum(dims)) / count  # (D,)
    centred = x - mean.view(shape)
    variance = sum_over_ranks(centred.square().sum(dims)) / count  # (D,)
    with torch.no_grad():
        assert layer.running_mean is not None
        assert layer.running_var is not None
        assert layer.num_batches_tracked is not None
        share = layer.momentum if layer.momentum is not None else 0.1
        layer.num_batches_tracked += 1
        layer.running_mean.lerp_(mean, share)
        layer.running_var.lerp_(variance * count / (count - 1), share)
    normed = centred / (variance + layer.eps).sqrt().view(shape)
    return (normed * layer.weight.view(shape) + layer.bias.view(shape)).to(kind)
