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
    """Return regions (N, k, d) without a share of each image's, (N, w, d), and how many are left.

    Which are left is drawn, how many is not, so that what follows has less to do: the share of
    the count, rounded, at least one. They keep their order; what stands behind the counts that
    are returned means nothing.
    """
    most = regions.shape[1]
    luck = torch.rand(regions.shape[:2], device=regions.device)  # (N, k)
    luck = luck.masked_fill(~real(counts, most), -1.0)
    left = (counts.double() * (1 - share)).round().clamp(min=1)  # as Python rounds
    left = counts.minimum(left.to(counts.dtype))  # (N,)
    width = max(round(most * (1 - share)), 1)
    chosen = luck.topk(width, dim=1).indices.masked_fill(~real(left, width), most)  # (N, w)
    order = chosen.sort(dim=1).values.clamp(max=most - 1)
    rows = order + torch.arange(len(order), device=order.device)[:, None] * most
    moved = regions.flatten(0, 1).index_select(0, rows.flatten())  # row by row: gather is slow
    return moved.view(len(regions), width, -1), left


def drop_features(regions: Tensor, share: float) -> Tensor:
    """Return regions (N, k, d) in which a share of the d numbers is 0; the rest grows to match.

    Which, is drawn once an image: drawn for each region alone it would average out where regions
    are pooled or attended to.
    """
    kept = F.dropout(regions.new_ones(len(regions), 1, regions.shape[2]), share)
    return regions * kept


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
    if config.features:
        regions = drop_features(regions, config.features)
    return regions, counts
