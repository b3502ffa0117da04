"""How right answers are, by the question set's own metric.

| set | metric |
| --- | --- |
| VQA | the public metric (`crossgaze.evaluation.vqa_metric`), by type and in all |
| DAQUAR | the share of questions whose answers are all right and no other, and WUPS |
| easy-vqa and others with one answer | the share of right answers |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from crossgaze.data.questions.questions import Question, QuestionSet
from crossgaze.evaluation.vqa_metric import vqa_accuracy
from crossgaze.evaluation.wups import answer_parts

Metric = Literal["vqa", "daquar", "exact"]
Values = npt.NDArray[np.float64]
TYPES = {"yes/no": "yes_no", "number": "number", "other": "other"}


def metric_of(questions: QuestionSet) -> Metric:
    """Return the metric of a question set: by its name, then by how many answers there are."""
    if questions.name == "daquar":
        return "daquar"
    several = any(len(question.answers) > 1 for question in questions.questions)
    return "vqa" if several else "exact"


@dataclass(frozen=True, eq=False)
class Judged:
    """How right each answer is.

    Args:
        values: (N,) 0 to 1.
        kinds: (N,) "yes/no", "number", "other" or "".
    """

    values: Values
    kinds: tuple[str, ...]

    def groups(self) -> dict[str, Values]:
        """Return the values by figure: "accuracy" of all, then of each type that there is."""
        found = {"accuracy": self.values}
        for kind, name in TYPES.items():
            mine = np.array([one == kind for one in self.kinds], bool)
            if mine.any():
                found[name] = self.values[mine]
        return found


def judge(questions: Sequence[Question], said: Sequence[str], metric: Metric) -> Judged:
    """Judge answers.

    Args:
        questions: with their human answers.
        said: the model's answer to each.
        metric: how.

    Example:
        >>> asked = [Question("1", "a.jpg", "how many?", ("2",) * 9 + ("3",), "2", "number")]
        >>> judge(asked, ["two"], "vqa").values.tolist()
        [1.0]
    """

    def right(question: Question, answer: str) -> float:
        if metric == "vqa":
            return vqa_accuracy(answer, question.answers)
        if metric == "daquar":
            return float(set(answer_parts(answer)) == set(question.answers))
        return float(answer == question.answer)

    pairs = zip(questions, said, strict=True)
    values = np.array([right(question, answer) for question, answer in pairs], np.float64)
    return Judged(values, tuple(question.answer_type for question in questions))
