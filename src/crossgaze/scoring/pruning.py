"""Exact top K without scoring everything: cheap upper bounds first, exact scores where they matter.

**Bounds.** Let P be an orthonormal basis of r directions (the principal ones of a sample of
regions). For a region v and a word e, with v' and e' what is left of them outside of P,

    v . e = Pv . Pe + v' . e'  <=  Pv . Pe + |v'| |e'|  =: h(v, e),                          (1)

by Cauchy and Schwarz; the right side needs r numbers of v and its residual length.

*Sum-Max* adds up maxima of v . e, so the same sums of maxima of h bound it.

*Cross attention.* Let a = sum_i alpha_i v_i be what e attends to, alpha >= 0 and sum_i alpha_i = 1,
as in SCAN and in BFAN, whatever the norm and the temperature. Then

    e . a = sum_i alpha_i v_i . e  <=  max_i h(v_i, e),                                      (2)

and for every unit vector c,

    |a|  >=  c . a  =  sum_i alpha_i c . v_i  >=  min_i c . v_i  =: m,                       (3)

so that, where m > 0, the relevance e . a / max(|e| |a|, 1e-8) is at most

    U(e) = min(1, max(0, max_i h(v_i, e)) / (|e| m)),                                        (4)

(if the numerator is negative, so is the relevance, and 0 bounds it), and 1 where m is not positive,
since it is a cosine. AVG, SUM, MAX and LSE never fall when a relevance rises, so pooling U bounds
the score. The image's best c is the direction of the point of its regions' convex hull nearest to
zero; any c is right, so an approximate one is found once an image (Frank and Wolfe's method on
the Gram matrix) and (3) evaluated for it in double precision. Where m is below a twentieth of the
longest region, 1 is taken: an attended vector that short is itself known to few digits in float32,
so a computed score might exceed a finer bound. In i-t words and regions change places.

**Search.** Score images in the order of falling bounds. When the K-th best exact score so far is
above the bound of the next image, no image that is left can be among the best K: its score is
at most its bound. Bounds get a slack of 1e-4 for rounding. Images that score the same up to
rounding may change places with each other, as they may when blocks have another size.

How much this saves depends on the regions alone: on how much of them r directions hold, and on how
far from zero their hulls stay. The factor is measured in `benchmarks/bench_pruning.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.models.norms import EPS
from crossgaze.scoring.attention import Attend
from crossgaze.scoring.every_pair import Scorer, score_into
from crossgaze.scoring.fragments import FragmentKernel
from crossgaze.scoring.kernel import HALF
from crossgaze.scoring.sinks import ScoreMatrix

SLACK = 1e-4
STEPS = 64  # of Frank and Wolfe's method
MARGINS = 1024  # images whose margins are found at once, in double precision
SAMPLE = 20_000  # regions that the directions are computed from


@dataclass(frozen=True)
class Found:
    """The best K images of a sentence.

    Args:
        rows: (K,) int64, which images, best first.
        scores: (K,).
        scored: how many images were scored exactly.
    """

    rows: Tensor
    scores: Tensor
    scored: int


class PrunedSearch:
    """Finds the best K of many images for a sentence, with proof and without scoring all.

    Args:
        model: a model that compares fragments: SCAN, BFAN or Sum-Max.
        images: the images, encoded by it, each with all its regions (no padding).
        directions: r, how many principal directions the bounds use.

    Example:
        ```python
        search = PrunedSearch(model, images)
        found = search(model.encode_texts(["two dogs play"]), k=10)
        ```
    """

    def __init__(self, model: Scorer, images: Encoded, directions: int = 128) -> None:
        kernel = model.kernel()
        if not isinstance(kernel, FragmentKernel) or images.fragments is None:
            raise InputError("pruning: wanted a model that compares fragments: SCAN, BFAN, Sum-Max")
        x = images.fragments  # (N, k, D)
        x = x.float() if x.dtype in HALF else x
        images = Encoded(None, x, images.counts)
        if not len(images) or bool((images.counts != x.shape[1]).any()):
            raise InputError("pruning: wanted at least one image, each with all its regions")
        self._model, self._kernel, self._images = model, kernel, images
        self._basis = _principal(x, min(directions, x.shape[2]))  # (D, r)
        self._inside, self._outside = _split(x, self._basis)  # (N, k, r), (N, k)
        self._lengths = x.norm(dim=2)  # (N, k)
        self._margin = hull_margin(x)  # (N,)

    def __call__(self, text: Encoded, k: int, block: int = 256) -> Found:
        """Return the best K images of one sentence.

        Args:
            text: the sentence.
            k: how many.
            block: images scored exactly at a time.
        """
        if len(text) != 1:
            raise InputError(f"text: got {len(text)} sentences, wanted one")
        if k < 1:
            raise InputError(f"k: got {k}, wanted 1 or more")
        assert text.fragments is not None
        text = Encoded(None, text.fragments.to(self._inside.dtype), text.counts)
        bounds, order = self.bounds(text).sort(descending=True, stable=True)
        rows = order.new_zeros(0)
        scores = bounds.new_zeros(0)
        scored = 0
        for start in range(0, len(order), block):
            if len(scores) >= k and scores[k - 1] > bounds[start]:
                break
            chosen = order[start : start + block].sort().values
            exact = bounds.new_empty(len(chosen), 1)
            score_into(self._model, self._images[chosen], text, [ScoreMatrix(exact)])
            rows, scores = torch.cat([rows, chosen]), torch.cat([scores, exact[:, 0]])
            rows, by_row = rows.sort()
            best = scores[by_row].sort(descending=True, stable=True)
            rows, scores = rows[best.indices][:k], best.values[:k]
            scored += len(chosen)
        return Found(rows, scores, scored)

    def bounds(self, text: Encoded) -> Tensor:
        """Return an upper bound of each image's score with a sentence, (N,)."""
        assert text.fragments is not None
        e = text.fragments[0, : int(text.counts[0])].to(self._inside.dtype)  # (n, D)
        inside, outside = _split(e, self._basis)  # (n, r), (n,)
        # Eq. (1) above, for all pairs of a region and a word.
        h = (self._inside.flatten(0, 1) @ inside.T).view(*self._outside.shape, -1)  # (N, k, n)
        h.addcmul_(self._outside[..., None], outside)
        total = h.new_zeros(len(h))
        for direction, reduce in self._kernel.ways.items():
            words_look = direction == "t-i"
            best = h.amax(1 if words_look else 2)  # (N, n) or (N, k)
            if isinstance(reduce, Attend):
                lengths = e.norm(dim=1) if words_look else self._lengths  # (n,) or (N, k)
                margin = self._margin[:, None] if words_look else hull_margin(e[None])[:, None]
                total += _pool(_relevance(best, lengths, margin), reduce)
            else:
                total += best.sum(1)
        return total + SLACK * (1 + total.abs())


def _relevance(best: Tensor, lengths: Tensor, margin: Tensor) -> Tensor:
    """Eq. (4) above: the largest relevance that a fragment can have."""
    found: Tensor = best.clamp(min=0) / (lengths * margin).clamp(min=EPS)
    return torch.where(margin > 0, found.clamp(max=1), 1.0)


def _pool(relevances: Tensor, how: Attend) -> Tensor:
    """Pool (N, q) bounds of relevances, (N,)."""
    if how.pooling == "LSE":
        return (how.lambda2 * relevances).logsumexp(1).div(how.lambda2)
    if how.pooling == "MAX":
        return relevances.amax(1)
    return relevances.mean(1) if how.pooling == "AVG" else relevances.sum(1)


def _principal(x: Tensor, directions: int) -> Tensor:
    """Return the directions along which a sample of fragments has most of its length, (D, r)."""
    flat = x.flatten(0, 1)
    step = max(len(flat) // SAMPLE, 1)
    sample = flat[::step].double()
    _, vectors = torch.linalg.eigh(sample.T @ sample)
    basis: Tensor = vectors[:, -directions:].to(x.dtype)
    return basis


def _split(x: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
    """Return what lies within the basis, (..., r), and the length of the rest, (...)."""
    inside = x @ basis
    rest = x.square().sum(-1) - inside.square().sum(-1)
    # Rounding of the difference must never make the rest too short.
    return inside, (rest + 1e-6 * x.square().sum(-1)).clamp(min=0).sqrt()


def hull_margin(x: Tensor) -> Tensor:
    """Return a lower bound of the length of every convex combination of an item's fragments.

    Eq. (3) above with c from Frank and Wolfe's method: alpha moves towards the fragment with the
    smallest inner product with c = sum_i alpha_i v_i, as far as makes c shortest.

    Args:
        x: (N, k, D) fragments.

    Returns:
        (N,), 0 where nothing better than 0 was found.
    """
    parts = [_margin(part) for part in torch.split(x, MARGINS)]
    return torch.cat(parts).to(x.dtype)


def _margin(x: Tensor) -> Tensor:
    x = x.double()
    gram = x @ x.transpose(1, 2)  # (N, k, k)
    rows = torch.arange(len(x), device=x.device)
    alpha = gram.new_full(gram.shape[:2], 1 / gram.shape[1])  # (N, k)
    best = gram.new_zeros(len(x))
    for _ in range(STEPS):
        along = (gram @ alpha[..., None])[..., 0]  # c . v_i, (N, k)
        square = (alpha * along).sum(1)  # |c|^2
        least, corner = along.min(1)
        best = torch.maximum(best, least / square.clamp(min=EPS).sqrt())
        # Shortest point between c and the corner u: t = c . (c - u) / |c - u|^2.
        gap = square - 2 * least + gram[rows, corner, corner]
        t = ((square - least) / gap.clamp(min=EPS)).clamp(0, 1)
        alpha = alpha * (1 - t[:, None])
        alpha[rows, corner] += t
    longest = gram.diagonal(dim1=1, dim2=2).amax(1).sqrt()
    return torch.where(best >= longest / 20, best * (1 - 1e-4), 0.0)
