"""Questions about photographs of the index, by a model that answers."""

from __future__ import annotations

from crossgaze.asking.ask import ask, require_askable, source_of
from crossgaze.explain.explanation import MARKS
from crossgaze.models.answerer import Answerer
from crossgaze.search.entries import Entry
from crossgaze.search.models import REMEMBERED
from crossgaze.vision.photos import PhotoError
from crossgaze.vision.sources.base import RegionSource
from crossgaze.web.problems import RequestError
from crossgaze.web.schemas import Answer, Reply, Step


class Asker:
    """A model that answers, and what makes the regions that it was trained with.

    Args:
        model: the model.
        source: makes the regions; by what the model remembers if not given, loaded with the first
            question.
        fit: of that source.
    """

    def __init__(
        self, model: Answerer, source: RegionSource | None = None, fit: str = "stretch"
    ) -> None:
        self.model, self._source, self._fit = model, source, fit
        model.text.keep_few(REMEMBERED)  # a service's questions are many

    def __call__(self, entry: Entry, question: str, top: int) -> Reply:
        """Ask about a photograph."""
        require_askable(self.model, question)
        if self._source is None:
            self._source, self._fit = source_of(self.model)
        try:
            found = ask(
                self.model,
                entry.key,
                question,
                top=top,
                source=self._source,
                fit=self._fit,
                full_size=False,
            )
        except PhotoError as error:
            raise RequestError(404, f"this photograph cannot be read: {error.reason}") from None
        regions = [] if found.region_weights is None else found.region_weights.tolist()
        # Marks of beginning and end are no words that anybody asked.
        kept = [place for place, word in enumerate(found.words) if word not in MARKS]
        words = [] if found.word_weights is None else found.word_weights[:, kept].tolist()
        return Reply(
            question=question,
            answers=tuple(
                Answer(answer=one, probability=round(share, 5)) for one, share in found.answers
            ),
            words=tuple(found.words[place] for place in kept),
            unknown=found.unknown,
            boxes=tuple(
                (_short(a), _short(b), _short(c), _short(d)) for a, b, c, d in found.boxes.tolist()
            ),
            steps=tuple(
                Step(
                    regions=tuple(map(_short, regions[step])) if regions else (),
                    words=tuple(map(_short, words[step])) if words else (),
                )
                for step in range(max(len(regions), len(words)))
            ),
        )


def _short(number: float) -> float:
    return round(number, 5)
