"""What a search gives back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Region:
    """A region of a photograph.

    Args:
        box: x1, y1, x2, y2 in pixels of the upright photograph.
        noun: what the region model calls it, "" where it says nothing.
        attribute: how it calls it, likewise.
        confidence: how sure it is that there is something.
    """

    box: tuple[float, float, float, float]
    noun: str = ""
    attribute: str = ""
    confidence: float = 0.0


@dataclass(frozen=True)
class Hit:
    """A photograph that was found.

    Args:
        rank: from 1.
        score: its similarity, by what `Found.ranked_by` says; for a picture, the cosine of vectors.
        path: the photograph's.
        uid: its number in the index.
        tags: the user's words.
        width: of the upright photograph.
        height: likewise.
        regions: where the re-ranker looked, see `Index.look`.
    """

    rank: int
    score: float
    path: str
    uid: int
    tags: tuple[str, ...] = ()
    width: int = 0
    height: int = 0
    regions: tuple[Region, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class SentenceHit:
    """A sentence that was found for a picture."""

    rank: int
    score: float
    text: str
    uid: int
    source: str = ""


@dataclass(frozen=True)
class Found:
    """The answer to a query.

    Args:
        query: the sentence, or the picture's name.
        picture: whether it was a picture.
        hits: photographs, best first.
        sentences: for a picture, the best sentences of the index.
        stages: "two stages", "exhaustive" or "vectors only".
        ranked_by: whose similarity gave the order: "both models" (their mean), "the re-ranker" or
            "vectors".
        looked_at: photographs that the last stage compared.
        total: photographs in the index.
        unknown: words of the query that a model does not know.
        notes: what the user should be told, a line each.
        milliseconds: by step.
    """

    query: str
    picture: bool = False
    hits: tuple[Hit, ...] = ()
    sentences: tuple[SentenceHit, ...] = ()
    stages: str = "two stages"
    ranked_by: str = "vectors"
    looked_at: int = 0
    total: int = 0
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    milliseconds: dict[str, float] = field(default_factory=dict)

    @property
    def how(self) -> str:
        """How it was found, in words."""
        return self.stages if self.ranked_by == "vectors" else f"{self.stages} by {self.ranked_by}"

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON holds it."""
        return asdict(self)


@dataclass(frozen=True)
class Look:
    """Where one word of the query looked in a photograph.

    Args:
        word: as the model reads it.
        weights: one for each of the photograph's regions.
        strongest: number of the region with the largest weight; None where none has any.
    """

    word: str
    weights: tuple[float, ...]
    strongest: int | None
