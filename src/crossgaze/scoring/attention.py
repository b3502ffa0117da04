"""Cross attention of all pairs without a single attended vector: SCAN and BFAN.

The relevance of a query fragment e is its cosine with the attended vector a = sum_i alpha_i v_i
(eqs. 2 and 4 of SCAN). Both parts of that cosine follow from inner products that are there already:

    e . a = sum_i alpha_i s_i              with s_i = v_i . e
    |a|^2 = alpha' G alpha                 with G_il = v_i . v_l, the context's Gram matrix,

and G is made once an item, not once a pair. Softmax weights need not be divided by their sum Z
either: with E_i = exp(lambda s-bar_i) = Z alpha_i the cosine is

    sum_i E_i s_i / max(|e| sqrt(E' G E), 1e-8 Z),

where 1e-8 is the guard of `crossgaze.models.norms.cosine`. BFAN's focal attention is the same with
E_i = 0 for what it drops.

Rounding: |a|^2 is a sum whose terms may cancel, so in float32 an attended vector a hundred times
shorter than its fragments is known to about three digits. Cosines are kept within -1 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from crossgaze.models.cross_attention import LEAK, UNIFORM, FeatureNorm, Focal, Pooling
from crossgaze.models.norms import EPS, length, root
from crossgaze.scoring import compiled
from crossgaze.scoring.fragments import Fragments, slices

STEEPEST = 30.0  # exp(lambda), squared and summed, stays far from float32's limits up to here


@dataclass(frozen=True)
class Attend:
    """A reduction of scores by cross attention; the arguments are those of the models.

    Args:
        norm: how scores are normalised over the query.
        sharpness: lambda_1.
        pooling: how relevances become a score.
        lambda2: factor of LSE.
        focal: which context fragments BFAN keeps, None for all.
    """

    norm: FeatureNorm = "clipped_l2norm"
    sharpness: float = 9.0
    pooling: Pooling = "AVG"
    lambda2: float = 6.0
    focal: Focal | None = None

    def __call__(self, scores: Tensor, context: Fragments, query: Fragments) -> Tensor:
        """Reduce (C, c, q, I) scores, which are overwritten, to (C, I)."""
        relevances = self.relevances(scores, context, query)  # (C, q, I)
        if self.pooling == "LSE":
            return relevances.mul_(self.lambda2).logsumexp(1).div_(self.lambda2)
        if self.pooling == "MAX":
            return relevances.amax(1)
        return relevances.mean(1) if self.pooling == "AVG" else relevances.sum(1)

    def relevances(self, scores: Tensor, context: Fragments, query: Fragments) -> Tensor:
        """Return the cosine of each query fragment with what it attends to, (C, q, I)."""
        items, c, q, others = scores.shape
        if compiled.takes(scores, self.norm) and abs(self.sharpness) <= STEEPEST:
            return compiled.relevances(
                scores, context.gram, query.lengths,
                norm=self.norm, sharpness=self.sharpness, focal=self.focal,
            )  # fmt: skip
        # E . s, |sum_i E_i v_i| and Z of each query fragment.
        top, length, total = (scores.new_empty(items, q * others) for _ in range(3))
        for part in slices(scores):
            s = scores[part]
            weights = self._weights(s, context, part, query)  # E, (C, c, q, I)
            flat = weights.view(len(s), c, q * others)
            if q * others < c:
                # Fewer query fragments than a Gram matrix has rows: attended vectors are cheaper.
                attended = flat.transpose(1, 2) @ context.fragments[part]  # (C, q I, D)
                length[part] = attended.norm(dim=2)
                total[part] = flat.sum(1)
            else:
                mixed = torch.bmm(context.gram[part], flat)  # (C, c + 1, q I), the last row is Z
                total[part] = mixed[:, c]
                torch.sum(mixed[:, :c].mul_(flat), 1, out=length[part])  # E' G E
            torch.sum(s.view(len(s), c, -1).mul_(flat), 1, out=top[part])
        if q * others >= c:
            length.clamp_(min=0).sqrt_()
        bottom = length.mul_(query.lengths.flatten()).maximum(total.mul_(EPS))
        return top.div_(bottom).clamp_(-1, 1).view(items, q, others)

    def recorded(self, scores: Tensor, context: Tensor, query: Tensor) -> Tensor:
        """Do the same with autograd: nothing is overwritten, every step has a gradient.

        Args:
            scores: (C, c, q, I).
            context: (C, c, D).
            query: (q, I, D).
        """
        weights = self._recorded_logits(scores, context, query).softmax(1)  # alpha
        if self.focal is not None:
            with torch.no_grad():  # what is kept is a decision
                kept = _focus(weights.clone(), self.focal) > 0
            weights = weights * kept  # cosines do not see that they no longer sum to 1
        flat = weights.flatten(2)  # (C, c, q I)
        gram = context @ context.transpose(1, 2)
        attended = root(((gram @ flat) * flat).sum(1)).view_as(scores[:, 0])  # (C, q, I)
        bottom = torch.maximum(attended * length(query, -1)[..., 0], EPS * weights.detach().sum(1))
        relevances = (weights * scores).sum(1) / bottom
        if self.pooling == "LSE":
            return (relevances * self.lambda2).logsumexp(1).div(self.lambda2)
        if self.pooling == "MAX":
            return relevances.max(1).values
        return relevances.mean(1) if self.pooling == "AVG" else relevances.sum(1)

    def _recorded_logits(self, scores: Tensor, context: Tensor, query: Tensor) -> Tensor:
        norm, x = self.norm, scores
        if norm == "softmax":
            return x.softmax(2) * self.sharpness
        if norm == "paper":
            lengths = length(context, -1)[..., None] * length(query, -1)[..., 0]  # (C, c, q, I)
            x = (x / lengths.clamp(min=EPS)).relu()
            return x * (self.sharpness / length(x, 2).clamp(min=EPS))
        x = F.leaky_relu(x, LEAK) if norm.startswith("clipped") else x
        if norm.endswith("l2norm"):
            return x * (self.sharpness / (length(x, 2) + EPS))
        if norm.endswith("l1norm"):
            return x * (self.sharpness / (x.abs().sum(2, keepdim=True) + EPS))
        return x * self.sharpness

    def _weights(self, scores: Tensor, context: Fragments, part: slice, query: Fragments) -> Tensor:
        """Return softmax weights, each query fragment's up to a factor of its own."""
        logits = self._logits(scores, context, part, query)
        unbounded = self.norm in ("clipped", "no_norm")  # with the others |s-bar| is at most 1
        if unbounded or self.sharpness > STEEPEST:
            logits.sub_(logits.amax(1, keepdim=True))
        weights = logits.exp_()
        return weights if self.focal is None else _focus(weights, self.focal)

    def _logits(self, scores: Tensor, context: Fragments, part: slice, query: Fragments) -> Tensor:
        """Return lambda_1 s-bar in a tensor of its own; as `normalize_scores` without padding."""
        norm = self.norm
        if norm == "softmax":
            return scores.softmax(2).mul_(self.sharpness)
        if norm == "paper":
            lengths = context.lengths.T[part, :, None, None] * query.lengths  # (C, c, q, I)
            x = scores.div(lengths.clamp_(min=EPS)).relu_()
            return x.mul_(self.sharpness / _length(x).clamp_(min=EPS))
        x = F.leaky_relu(scores, LEAK) if norm.startswith("clipped") else scores.clone()
        if norm.endswith("l2norm"):
            return x.mul_(self.sharpness / _length(x).add_(EPS))
        if norm.endswith("l1norm"):
            return x.mul_(self.sharpness / x.abs().sum(2, keepdim=True).add_(EPS))
        return x.mul_(self.sharpness)


def _length(x: Tensor) -> Tensor:
    """Return the length of (C, c, q, I) scores over the query, (C, c, 1, I)."""
    return x.square().sum(2, keepdim=True).sqrt_()


def _focus(weights: Tensor, focal: Focal) -> Tensor:
    """Set to zero what BFAN drops; as `crossgaze.models.bfan.focus`, which explains it."""
    if focal == "equal":
        base = weights.sum(1, keepdim=True)  # (C, 1, q, I)
        trust = torch.full_like(base, weights.shape[1])
    else:
        roots = weights.sqrt()
        trust = roots.sum(1, keepdim=True)
        base = roots.mul_(weights).sum(1, keepdim=True)
    uniform = weights.amax(1, keepdim=True) * trust - base <= UNIFORM * base
    least = (base / trust).masked_fill_(uniform, -1.0)  # nothing is below it then
    return weights.mul_(weights > least)
