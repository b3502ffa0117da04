"""Choices that limit a model's answers: the softmax is taken over those alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from crossgaze.errors import InputError, nearest
from crossgaze.evaluation.vqa_metric import normalize_answer


@lru_cache(maxsize=8)
def _places(answers: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Return the numbers of the answers that are one answer once made alike."""
    found: dict[str, tuple[int, ...]] = {}
    for number, answer in enumerate(answers):
        alike = normalize_answer(answer)
        found[alike] = (*found.get(alike, ()), number)
    return found


def choice_mask(answers: tuple[str, ...], choices: Sequence[str]) -> Tensor:
    """Return which answers are among the choices, (C,) bool, as VQA's metric compares them.

    Args:
        answers: the C answers of a model.
        choices: what may be answered; those that are no answer of the model have no place.

    Example:
        >>> choice_mask(("yes", "2"), ["two", "red"])
        tensor([False,  True])
    """
    mask = torch.zeros(len(answers), dtype=torch.bool)
    places = _places(answers)
    for choice in choices:
        mask[list(places.get(normalize_answer(choice), ()))] = True
    return mask


def require_choices(answers: tuple[str, ...], choices: Sequence[str]) -> Tensor:
    """Return the mask of choices all of which the model can answer, or name those it cannot."""
    places = _places(answers)
    unknown = [choice for choice in choices if normalize_answer(choice) not in places]
    if unknown or not choices:
        shown = ", ".join(map(repr, unknown[:3])) or "nothing"
        hint = nearest(unknown[0], answers) if unknown else ""
        raise InputError(
            f"choices: {shown}{hint} is none of the {len(answers):,} answers that the model knows"
        )
    return choice_mask(answers, choices)


def best_answers(
    answers: tuple[str, ...], logits: torch.Tensor, top: int, choices: Sequence[str] = ()
) -> tuple[tuple[str, float], ...]:
    """Return the likeliest answers and their probability, the softmax taken over the choices.

    Args:
        answers: the C answers of a model.
        logits: (C,).
        top: how many at most.
        choices: what may be answered; empty for anything. Of choices none of which the model
            knows, none is returned.
    """
    mask = choice_mask(answers, choices) if choices else torch.ones(len(answers), dtype=torch.bool)
    if not mask.any():
        return ()
    shares = logits.masked_fill(~mask, -torch.inf).softmax(0)
    found = shares.topk(min(top, int(mask.sum())))
    pairs = zip(found.indices.tolist(), found.values.tolist(), strict=True)
    return tuple((answers[number], share) for number, share in pairs)
