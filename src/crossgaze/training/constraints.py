"""CCR and CCS: constraints that teach a model where to look, from right pairs alone.

Chen, Yuan, Zhao, Luo, Davis, Metaxas: More Than Just Attention: Learning Cross-Modal Attentions
with Contrastive Constraints, 2021, section 3. They need no new code for a new model:
whatever `attention` gives in (P, maps, words, regions) is constrained, each map by itself.

| paper | code | shape |
| --- | --- | --- |
| q_i, i in Q; k_j, j in K | `_Map.query`, `.keys` | (P, q, D), (P, c, D) |
| w_ij, exp(e_ij) up to a factor of each i | `_Map.weights`, `.dense` | (P, q, c) |
| H(w_ij) = 1: G_att; 0: G_ign | `_Map.attended()` | (P, q, c) bool |
| l_i, s_i by their cosine with q_i | `_group(...)` | (P, q) |
| q-bar_p, place i of the sentence | `Swapped.texts`, `.places` | (P, n, D), (P,) |
| a_i | `attended` | (P, D) |
| Sim, AGG | the cosine, `Matcher.aggregate` | |
| gamma_2, gamma_3, lambda_CCR, lambda_CCS | `ConstraintConfig` | |

A map called "i-t" has regions for queries and words for keys; in any other words are the queries.

Where the paper is silent (its supplement is not public):

* H: a weight is large if it is above the mean of its query's weights, 1/k, or, where the model
  itself sets weights to zero (BFAN), above 0: the thresholds T_Att of section 4.1. It is a
  decision, no gradient flows through it. An ignored group has its weights from before dropping.
* A query that has only one of the two groups (uniform attention, a single key) is left out of both
  sides of eq. 6; a pair without any other query adds nothing.
* Several maps (BFAN's two directions) are constrained each by itself, and summed.
* Losses are summed over pairs, as the ranking loss is; `mean` divides both.
* CCS with regions as queries swaps "text fragments instead of image fragments" (section 4.1). So
  the text fragment is replaced in what is attended to: with the region i that looks most at word p,
  and the weights kept, a-bar_i = a_i + w_ip (k-bar_p - k_p), and the loss is
  [Sim(q_i, a-bar_i) - Sim(q_i, a_i) + gamma_3]_+. Where no region looks at the word it is 0.
* The values of lambdas and margins: ours are in `ConstraintConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from crossgaze.errors import InputError
from crossgaze.models.checks import require_positive, require_switch, require_whole
from crossgaze.models.cross_attention import UNIFORM, clean_fragments, relevance
from crossgaze.models.encoded import Encoded
from crossgaze.models.matcher import Matcher, require_pairs
from crossgaze.models.norms import cosine
from crossgaze.training.swaps import Swaps


@dataclass(frozen=True)
class ConstraintConfig:
    """How much attention is constrained.

    Args:
        ccr: lambda_CCR; 0 turns CCR off.
        ccs: lambda_CCS; 0 turns CCS off.
        ccr_margin: gamma_2, how much more relevant what is attended to must be than what is not.
        ccs_margin: gamma_3, how much more relevant a word must be than its replacement.
        mean: whether to divide by the number of pairs, as the ranking loss's `mean`.
        drawn: how many swapped sentences each caption has, drawn before training, so that a frozen
            BERT reads them once; 0 draws them anew in every step.
    """

    ccr: float = 0.0
    ccs: float = 0.0
    ccr_margin: float = 0.2
    ccs_margin: float = 0.2
    mean: bool = False
    drawn: int = 0

    def __post_init__(self) -> None:
        for name in ("ccr", "ccs"):
            if getattr(self, name) != 0 or isinstance(getattr(self, name), bool):
                require_positive(f"constraints.{name}", getattr(self, name))
        require_positive("constraints.ccr_margin", self.ccr_margin)
        require_positive("constraints.ccs_margin", self.ccs_margin)
        require_switch("constraints.mean", self.mean)
        require_whole("constraints.drawn", self.drawn, least=0)

    @property
    def active(self) -> bool:
        """Whether there is any constraint."""
        return bool(self.ccr or self.ccs)


@dataclass(frozen=True)
class Swapped:
    """The sentences of P pairs with one word swapped, encoded.

    Args:
        texts: P sentences, as long as the right ones.
        places: (P,) int64, where the swapped word stands.
        found: (P,) bool, whether there is one.
    """

    texts: Encoded
    places: Tensor
    found: Tensor


def encode_swaps(model: Matcher, swaps: Swaps) -> Swapped:
    """Encode swapped sentences, with gradient where torch records one."""
    texts = model.encode_tokens(swaps.ids, swaps.lengths)
    return Swapped(texts, swaps.places.to(model.device), swaps.found.to(model.device))


def constraint_terms(
    model: Matcher,
    images: Encoded,
    texts: Encoded,
    swapped: Swapped | None,
    config: ConstraintConfig,
) -> dict[str, Tensor]:
    """Return l_CCR and l_CCS of P right pairs, image i with sentence i, without their lambdas.

    Args:
        model: any that relates words and regions by an attention with a gradient.
        images: P images.
        texts: P sentences.
        swapped: the sentences with a word swapped; may be None without CCS.
        config: which, and with what margins.

    Returns:
        "ccr" and "ccs", each (), those whose lambda is not 0.
    """
    if not config.active:
        return {}
    if config.ccs and swapped is None:
        raise InputError("swapped: got none, wanted swapped sentences: lambda_CCS is not 0")
    if swapped is not None and len(swapped.places) != len(texts):
        raise InputError(f"swapped: got {len(swapped.places)} sentences, wanted {len(texts)}")
    maps = _maps(model, images, texts)
    terms: dict[str, Tensor] = {}
    if config.ccr:
        losses = [_ccr(model, one, config.ccr_margin) for one in maps]
        terms["ccr"] = torch.stack(losses).sum(0)  # (maps, P) -> (P,)
    if config.ccs and swapped is not None:
        losses = [_ccs(one, swapped, config.ccs_margin) for one in maps]
        terms["ccs"] = torch.stack(losses).sum(0)
    return {name: term.mean() if config.mean else term.sum() for name, term in terms.items()}


def weigh(terms: Mapping[str, Tensor], config: ConstraintConfig) -> dict[str, Tensor]:
    """Return what is added to the ranking loss, by name.

    Eq. 9: l = l_rank + lambda_CCR l_CCR + lambda_CCS l_CCS.
    """
    return {name: getattr(config, name) * term for name, term in terms.items()}


@dataclass(frozen=True)
class _Map:
    """One attention map of P pairs; rows are the side that looks."""

    turned: bool  # whether regions look at words
    query: Tensor  # (P, q, D)
    keys: Tensor  # (P, c, D)
    query_mask: Tensor  # (P, q)
    key_mask: Tensor  # (P, c)
    weights: Tensor  # (P, q, c), eq. 1, 0 at padding
    dense: Tensor | None  # (P, q, c), before some were dropped

    def attended(self) -> Tensor:
        """Return H(w_ij), (P, q, c) bool."""
        weights = self.weights.detach()
        if self.dense is not None:
            return weights > 0
        mean = weights.sum(2) / self.key_mask.sum(1)[:, None]  # (P, q), 1/k where they sum to 1
        # By more than rounding: uniform attention has no large weight.
        return (weights > (1 + UNIFORM) * mean[..., None]) & self.key_mask[:, None]


def _maps(model: Matcher, images: Encoded, texts: Encoded) -> list[_Map]:
    """Eq. 1: the weights of each map, with who looks at what."""
    require_pairs(images, texts)
    attention = model.attention(images, texts)
    weights, dense = attention.weights, attention.dense
    if weights is None:
        raise InputError(f"{model.family}: relates no words to regions, wanted a model that does")
    (regions, k_mask), (words, n_mask) = map(clean_fragments, (images, texts))
    recorded = torch.is_grad_enabled() and (regions.requires_grad or words.requires_grad)
    if recorded and not weights.requires_grad:
        raise InputError(f"{model.family}: its attention has no gradient, nothing to constrain")
    found = []
    for number, name in enumerate(attention.names):
        one = weights[:, number]  # (P, n, k)
        full = None if dense is None else dense[:, number]
        if name == "i-t":
            full = None if full is None else full.transpose(1, 2)  # (P, k, n)
            found.append(_Map(True, regions, words, k_mask, n_mask, one.transpose(1, 2), full))
        else:
            found.append(_Map(False, words, regions, n_mask, k_mask, one, full))
    return found


def _ccr(model: Matcher, one: _Map, margin: float) -> Tensor:
    """Eq. 6: [AGG Sim(q_i, s_i) - AGG Sim(q_i, l_i) + gamma_2]_+ of each pair, (P,)."""
    attended = one.attended()
    looked, has_attended = _group(one, attended)
    ignored, has_ignored = _group(one, ~attended)  # padding among them, which weighs 0
    counts = has_attended & has_ignored & one.query_mask  # (P, q)
    any_counts = counts.any(1)
    # A pair without a query that counts adds nothing; AGG still wants one to work on.
    mask = torch.where(any_counts[:, None], counts, one.query_mask)
    gap = model.aggregate(ignored, mask) - model.aggregate(looked, mask)
    return F.relu(gap + margin).masked_fill(~any_counts, 0.0)


def _group(one: _Map, group: Tensor) -> tuple[Tensor, Tensor]:
    """Return Sim(q_i, l_i) for the (P, q, c) keys of a group, (P, q), and whether it has any.

    Eq. 5: softmax of e over the group alone, which is w divided by its sum over the group.
    """
    weights = one.weights if one.dense is None else one.dense
    weights = weights.masked_fill(~group, 0.0)  # (P, q, c)
    total = weights.sum(2, keepdim=True)
    some = total > 0
    weights = weights / torch.where(some, total, 1.0)
    return relevance(one.keys, one.query, weights), some.squeeze(2)


def _ccs(one: _Map, swapped: Swapped, margin: float) -> Tensor:
    """Eq. 8: [Sim(q-bar_p, a_i) - Sim(q_i, a_i) + gamma_3]_+ of each pair, (P,).

    Eq. 7 sums this over all words and all replacements; eq. 8 draws one of each.
    """
    pairs = torch.arange(len(swapped.places), device=swapped.places.device)
    places, found = swapped.places, swapped.found
    other = _fragments(swapped.texts)[pairs, places]  # (P, D), the replacement in its sentence
    if not one.turned:
        word = one.query[pairs, places]  # (P, D), q_i
        weights = one.weights[pairs, places]  # (P, c)
        # Eq. 2: a_i is the weighted sum of the keys.
        attended = (weights[:, None] @ one.keys)[:, 0]  # (P, 1, c) @ (P, c, D) -> (P, D)
        gap = cosine(other, attended) - cosine(word, attended)
    else:
        looks = one.weights[pairs, :, places].detach()  # (P, k), how much each region looks there
        region = looks.argmax(1)  # (P,)
        found = found & (looks.amax(1) > 0)
        weights = one.weights[pairs, region]  # (P, n)
        attended = (weights[:, None] @ one.keys)[:, 0]  # (P, D)
        change = weights[pairs, places][:, None] * (other - one.keys[pairs, places])  # (P, D)
        query = one.query[pairs, region]  # (P, D)
        gap = cosine(query, attended + change) - cosine(query, attended)
    return F.relu(gap + margin).masked_fill(~found, 0.0)


def _fragments(side: Encoded) -> Tensor:
    fragments, _ = clean_fragments(side)
    return fragments
