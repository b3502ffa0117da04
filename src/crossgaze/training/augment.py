"""Changes to what a model is shown in training, drawn anew in every step."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from crossgaze.models.encoded import real
from crossgaze.training.config import AugmentConfig


def drop_words(
    ids: Tensor, lengths: Tensor, share: float, unknown: int, generator: torch.Generator
) -> Tensor:
    """Return word numbers (N, n) in which a share of the words is `unknown`.

    The first and the last real number, <start> and <end>, stay.
    """
    places = torch.arange(ids.shape[1], device=ids.device)
    inner = (places > 0) & (places < lengths[:, None] - 1)  # (N, n)
    chosen = torch.rand(ids.shape, generator=generator).to(ids.device) < share
    return ids.masked_fill(inner & chosen, unknown)


def drop_regions(regions: Tensor, counts: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Return regions (N, k, d) without a share of them, and how many are left, at least one.

    The rest moves up and keeps its order; what stands behind `counts` means nothing.
    """
    here = real(counts, regions.shape[1])  # (N, k)
    luck = torch.rand(here.shape, device=regions.device).masked_fill(~here, -1.0)
    kept = here & ((luck >= share) | (luck == luck.amax(1, keepdim=True)))  # (N, k)
    order = (~kept).to(torch.uint8).argsort(dim=1, stable=True)  # (N, k), the kept first
    return regions.gather(1, order[..., None].expand_as(regions)), kept.sum(1)


def add_noise(regions: Tensor, counts: Tensor, share: float) -> Tensor:
    """Return (N, k, d) with noise as strong as a share of each number's deviation in the batch."""
    rows = regions[real(counts, regions.shape[1])]  # (real, d)
    return regions + share * rows.std(0, correction=0) * torch.randn_like(regions)


def augment(config: AugmentConfig, regions: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return regions (N, k, d) in single precision or better, changed as configured, and counts."""
    if config.regions:
        regions, counts = drop_regions(regions, counts, config.regions)
    if regions.dtype in (torch.float16, torch.bfloat16):
        regions = regions.float()
    if config.noise:
        regions = add_noise(regions, counts, config.noise)
    return F.dropout(regions, config.features, training=bool(config.features)), counts
