"""The one interface of every model that answers a question about an image."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from torch import Tensor

from crossgaze.errors import InputError
from crossgaze.models.base import Model
from crossgaze.models.encoded import Attention


@dataclass(frozen=True, eq=False)
class Answered:
    """What a model says to B questions, each about its image.

    Args:
        logits: (B, C), a softmax over which gives the probability of each answer.
        attention: the regions and words that each step looked at.
    """

    logits: Tensor
    attention: Attention


class Answerer(Model):
    """A model that chooses one of C answers, given regions of an image and a question.

    Its configuration holds the answers (`config.answers`), the most frequent first.
    """

    @property
    def answers(self) -> tuple[str, ...]:
        """The C answers that the model can give."""
        found: tuple[str, ...] = self.config.answers
        return found

    def answer(
        self,
        regions: Tensor | npt.NDArray[Any],
        questions: Sequence[str],
        counts: Tensor | npt.NDArray[Any] | None = None,
    ) -> Answered:
        """Answer questions, the i-th about the i-th image.

        Args:
            regions: (B, k, d) region features.
            questions: B texts.
            counts: (B,) how many regions are real; all of them if not given.
        """
        return self.answer_tokens(regions, *self._read_texts("questions", questions), counts=counts)

    def answer_tokens(
        self,
        regions: Tensor | npt.NDArray[Any],
        ids: Tensor | npt.NDArray[Any],
        lengths: Tensor | npt.NDArray[Any] | Sequence[int],
        *,
        counts: Tensor | npt.NDArray[Any] | None = None,
    ) -> Answered:
        """Answer questions given as numbers of words, (B, n), of which `lengths` (B,) are real."""
        features, real = self._regions(regions, counts)
        tokens, known = self._tokens(ids, lengths)
        if len(features) != len(tokens):
            raise InputError(
                f"got {len(features)} images and {len(tokens)} questions, wanted pairs"
            )
        return self._answer(features, real, tokens, known)

    @abstractmethod
    def _answer(self, regions: Tensor, counts: Tensor, ids: Tensor, lengths: Tensor) -> Answered:
        """Answer (B, n) questions about (B, k, d) regions, of which some are real."""


def require_answers(answers: object) -> None:
    """Refuse answers that are not texts, or one that comes twice."""
    if not isinstance(answers, tuple) or not all(isinstance(one, str) and one for one in answers):
        raise InputError("answers: got something other than texts, wanted a list of answers")
    if len(set(answers)) < len(answers):
        twice = next(one for one in answers if answers.count(one) > 1)
        raise InputError(f"answers: {twice!r} comes twice, wanted each answer once")
