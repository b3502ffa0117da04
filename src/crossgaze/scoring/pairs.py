"""Chosen pairs, and all pairs with a gradient that only chosen pairs pay for.

A ranking loss looks at few of the scores it is given: the hardest negatives, or those that violate
the margin. The derivative with respect to all other scores is zero, and so is what flows through
them into the encoders. So the forward pass computes all scores by the fast kernel, without
autograd, and the backward pass computes again, with autograd, the pairs whose derivative is not
zero. By the chain rule the gradient is the same, for any loss:

    dL/dx = sum over pairs p of dL/dS_p dS_p/dx, and pairs with dL/dS_p = 0 add nothing.

A loss that looks at many pairs (all violations, early in training) would pay more for copying
fragments pair by pair than for computing all pairs again, so then all are, from large products.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.scoring.every_pair import GIGABYTE, Scorer, score_into
from crossgaze.scoring.fragments import FragmentKernel
from crossgaze.scoring.sinks import ScoreMatrix
from crossgaze.scoring.tiles import make_tiles

DENSE = 8  # with more than one pair in so many, all pairs are computed again, without copies
NUMBERS = 1 << 24  # of a tensor of fragments while pairs are scored with gradient
CACHED = 1 << 21  # the same on a CPU, whose caches it must fit


class PairScorer(Scorer, Protocol):
    """A model that also scores pairs, image i with sentence i, with gradient."""

    def pair_similarity(self, images: Encoded, texts: Encoded) -> Tensor:
        """Return the (P,) similarities of P pairs."""


def score_pairs(
    model: PairScorer, images: Encoded, texts: Encoded, pairs: Tensor, *, block: int | None = None
) -> Tensor:
    """Return the scores of chosen pairs, (P,), with gradient where torch records one.

    Args:
        model: whose similarity.
        images: encoded images.
        texts: encoded sentences.
        pairs: (P, 2) int64, image and sentence of each pair.
        block: pairs computed at once; by memory if not given.
    """
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"pairs: got shape {tuple(pairs.shape)}, wanted (P, 2)")
    parts = [
        model.pair_similarity(_select(images, part[:, 0]), _select(texts, part[:, 1]))
        for part in torch.split(pairs, block or _block(images, texts))
    ]
    return torch.cat(parts)


def score_every_pair(
    model: PairScorer,
    images: Encoded,
    texts: Encoded,
    parameters: tuple[Tensor, ...] = (),
    *,
    budget: int = GIGABYTE,
    workers: int | None = None,
) -> Tensor:
    """Return the scores of all pairs, (images, texts), with a gradient that pays for few of them.

    Args:
        model: whose similarity; the kernel and the pairs must agree, so no dropout in between.
        images: encoded images.
        texts: encoded sentences.
        parameters: weights that are used when sides meet, which get a gradient too.
        budget: bytes of working memory of the forward pass.
        workers: threads of the forward pass.
    """
    parts = (images.vectors, images.fragments, texts.vectors, texts.fragments)
    given = [part for part in (*parts, *parameters) if part is not None]
    if not (torch.is_grad_enabled() and any(part.requires_grad for part in given)):
        return _dense(model, images, texts, budget, workers)
    scores: Tensor = _EveryPair.apply(  # type: ignore[no-untyped-call]
        (model, images, texts, budget, workers), *parts, *parameters
    )
    return scores


def _dense(
    model: Scorer, images: Encoded, texts: Encoded, budget: int, workers: int | None
) -> Tensor:
    part = next(part for part in (images.fragments, images.vectors) if part is not None)
    dtype = part.dtype if part.dtype == torch.float64 else torch.float32
    out = torch.empty(len(images), len(texts), dtype=dtype, device=part.device)
    score_into(model, images, texts, [ScoreMatrix(out)], budget=budget, workers=workers)
    return out


class _EveryPair(torch.autograd.Function):
    """All scores forward, chosen pairs backward."""

    @staticmethod
    def forward(ctx: Any, call: Any, *tensors: Tensor | None) -> Tensor:  # noqa: ANN401
        model, images, texts, budget, workers = call
        ctx.call = model, images.counts, texts.counts
        ctx.there = [tensor is not None for tensor in tensors]
        ctx.save_for_backward(*(tensor for tensor in tensors if tensor is not None))
        return _dense(model, images, texts, budget, workers)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        model, image_counts, text_counts = ctx.call
        saved = iter(ctx.saved_tensors)
        tensors = [next(saved) if there else None for there in ctx.there]
        wanted = ctx.needs_input_grad[1:]
        grads = [
            torch.zeros_like(tensor) if tensor is not None and needed else None
            for tensor, needed in zip(tensors, wanted, strict=True)
        ]
        sides = (
            Encoded(tensors[0], tensors[1], image_counts),
            Encoded(tensors[2], tensors[3], text_counts),
        )
        pairs, kernel = grad.nonzero(), model.kernel()  # (P, 2)
        pairs = pairs[text_counts[pairs[:, 1]].argsort(stable=True)]  # like lengths: little padding
        if isinstance(kernel, FragmentKernel) and len(pairs) * DENSE > grad.numel():
            _add_all_gradients(kernel, sides, grad, grads)
            return (None, *grads)
        for part in torch.split(pairs, _block(*sides)) if len(pairs) else ():
            _add_gradients(model, sides, part, grad[part[:, 0], part[:, 1]], tensors, grads)
        return (None, *grads)


def _add_gradients(
    model: PairScorer,
    sides: tuple[Encoded, Encoded],
    pairs: Tensor,
    grad: Tensor,
    tensors: list[Tensor | None],
    grads: list[Tensor | None],
) -> None:
    """Add what some pairs contribute to the gradients of vectors, fragments and parameters.

    Args:
        model: whose similarity.
        sides: all images and all sentences.
        pairs: (P, 2) image and sentence of each pair.
        grad: (P,) derivative with respect to the pairs' scores.
        tensors: vectors and fragments of both sides, and parameters.
        grads: their gradients, added to.
    """
    rows = (pairs[:, 0], pairs[:, 0], pairs[:, 1], pairs[:, 1])
    with torch.enable_grad():
        images, texts = _leaves(sides[0], pairs[:, 0]), _leaves(sides[1], pairs[:, 1])
        scores = model.pair_similarity(images, texts)
        chosen = [images.vectors, images.fragments, texts.vectors, texts.fragments]
        inputs = [
            (number, leaf)
            for number, leaf in enumerate([*chosen, *tensors[4:]])
            if leaf is not None and grads[number] is not None
        ]
        found = torch.autograd.grad(
            scores, [leaf for _, leaf in inputs], grad.to(scores.dtype), allow_unused=True
        )
    for (number, _), part in zip(inputs, found, strict=True):
        total = grads[number]
        if part is None or total is None:
            continue
        if number < 4:
            # Narrower where the longest sentences are not among the pairs.
            room = total if total.ndim == 2 else total[:, : part.shape[1]]
            room.index_add_(0, rows[number], part)
        else:
            total += part


def _add_all_gradients(
    kernel: FragmentKernel,
    sides: tuple[Encoded, Encoded],
    grad: Tensor,
    grads: list[Tensor | None],
) -> None:
    """Add what all pairs contribute to the gradients of fragments, tile by tile."""
    seen = list(make_tiles(sides[0], kernel.tile[0]))
    for text in make_tiles(sides[1], kernel.tile[1]):
        for image in seen:
            part = grad[image.rows[:, None], text.rows]
            leaves = [_leaf(tile.side.fragments) for tile in (image, text)]
            with torch.enable_grad():
                scores = kernel.recorded(*leaves)
            found = torch.autograd.grad(scores, leaves, part.to(scores.dtype))
            for number, tile, one in zip((1, 3), (image, text), found, strict=True):
                total = grads[number]
                if total is not None:
                    total[:, : tile.count].index_add_(0, tile.rows, one)


def _leaf(part: Tensor | None) -> Tensor:
    assert part is not None
    return part.detach().requires_grad_()


def _leaves(side: Encoded, rows: Tensor) -> Encoded:
    """Return some rows of a side, cut to the longest of them, to be derived by."""
    counts = side.counts[rows]
    width = int(counts.max())

    def pick(part: Tensor | None) -> Tensor | None:
        if part is None:
            return None
        chosen = part[rows] if part.ndim == 2 else part[:, :width][rows]
        return chosen.detach().requires_grad_()

    return Encoded(pick(side.vectors), pick(side.fragments), counts)


def _select(side: Encoded, rows: Tensor) -> Encoded:
    """Return some rows of a side, cut to the longest of them."""
    counts = side.counts[rows]
    width = int(counts.max()) if len(counts) else 1

    def pick(part: Tensor | None) -> Tensor | None:
        if part is None:
            return None
        # index_select and not brackets: its backward pass adds rows and does not sort them.
        return (part if part.ndim == 2 else part[:, :width]).index_select(0, rows)

    return Encoded(pick(side.vectors), pick(side.fragments), counts)


def _block(images: Encoded, texts: Encoded) -> int:
    """Return how many pairs' fragments stay within NUMBERS, or CACHED."""
    most = CACHED if images.counts.device.type == "cpu" else NUMBERS
    parts = [side.fragments for side in (images, texts) if side.fragments is not None]
    return max(most // max((part[0].numel() for part in parts if len(part)), default=1), 1)
