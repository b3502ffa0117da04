"""What requests and answers hold, as OpenAPI shows them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Box = tuple[float, float, float, float]
MOST_ID = (1 << 62) - 1


class Schema(BaseModel):
    """Frozen, and nothing in a request that is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ErrorBody(Schema):
    """What went wrong, in words."""

    error: str = Field(examples=["query: has no word in it"])


class Photograph(Schema):
    """A photograph in a list."""

    id: int = Field(examples=[17], description="its number in the index")
    name: str = Field(examples=["2024/snow.jpg"], description="path inside the indexed folder")
    width: int = Field(examples=[1600], description="of the upright photograph")
    height: int = Field(examples=[1200])
    version: str = Field(examples=["0f3c"], description="of its content; for the cache")
    shows: tuple[str, ...] = Field(
        default=(), examples=[["brown dog", "snow"]], description="regions"
    )
    tags: tuple[str, ...] = Field(default=(), examples=[["holidays"]])


class Hit(Photograph):
    """A photograph that was found."""

    rank: int = Field(examples=[1])
    score: float = Field(examples=[0.613])


class Sentence(Schema):
    """A sentence of the index."""

    text: str = Field(examples=["Two dogs play in the snow ."])
    score: float = Field(examples=[0.41])


class SearchAnswer(Schema):
    """A page of what was found; in a stream, one line of it."""

    stage: Literal["candidates", "ranking", "ranked"] = Field(
        examples=["ranked"],
        description="by vectors so far, partly in the exact order, or all of this page in it",
    )
    hits: tuple[Hit, ...]
    offset: int = Field(examples=[0])
    next_offset: int | None = Field(
        examples=[40], description="where the next page begins; null at the end"
    )
    ranked: int = Field(
        examples=[200], description="photographs of this block that are in the exact order"
    )
    looked_at: int = Field(examples=[200], description="photographs of this block")
    total: int = Field(examples=[8090], description="photographs in the index")
    picture: str | None = Field(
        default=None, examples=["9f86d081"], description="asks for more pages of an upload"
    )
    sentences: tuple[Sentence, ...] = Field(default=(), description="of the index, for a picture")
    unknown: tuple[str, ...] = Field(
        default=(), examples=[["xyzzy"]], description="words that a model does not know"
    )
    milliseconds: float = Field(examples=[48.2])


class PhotographPage(Schema):
    """A page of all photographs, the newest first."""

    photographs: tuple[Photograph, ...]
    offset: int = Field(examples=[0])
    next_offset: int | None = Field(examples=[40])
    found: int = Field(examples=[312], description="photographs that pass the filter")
    total: int = Field(examples=[8090])


class Region(Schema):
    """A region of a photograph."""

    box: Box = Field(
        examples=[[0.1, 0.25, 0.5, 0.9]], description="x1, y1, x2, y2 as shares of width and height"
    )
    noun: str = Field(default="", examples=["dog"])
    attribute: str = Field(default="", examples=["brown"])
    confidence: float = Field(default=0.0, examples=[0.87])


class PhotographDetail(Photograph):
    """All that the index knows of a photograph."""

    path: str = Field(examples=["/home/me/photos/2024/snow.jpg"])
    taken: str = Field(examples=["2024-05-01T12:00:00Z"])
    bytes: int = Field(examples=[482113])
    regions: tuple[Region, ...]


class Word(Schema):
    """A word of a sentence and where it looked."""

    word: str = Field(examples=["dogs"])
    weights: tuple[float, ...] = Field(
        examples=[[0.71, 0.2, 0.09]], description="one for each region"
    )
    strongest: int | None = Field(
        examples=[0], description="the region with the largest weight; null where none has any"
    )


class Explanation(Schema):
    """Where each word of a sentence looked in a photograph."""

    id: int = Field(examples=[17])
    sentence: str = Field(examples=["two dogs in the snow"])
    score: float | None = Field(
        examples=[0.41],
        description="as in a search: the mean of both models'; null without a re-ranker",
    )
    whose: str | None = Field(
        default=None,
        examples=["scan, the first of 2 models"],
        description="whose attention it is, where the re-ranker is several models; else null",
    )
    words: tuple[Word, ...]
    unknown: tuple[str, ...] = Field(
        default=(), examples=[["xyzzy"]], description="words that a model does not know"
    )
    regions: tuple[Region, ...]


class Question(Schema):
    """A question about a photograph."""

    id: int = Field(ge=1, le=MOST_ID, examples=[17])
    question: str = Field(min_length=1, max_length=500, examples=["what is the dog doing?"])
    top: int = Field(default=5, ge=1, le=20, examples=[5], description="answers at most")


class Answer(Schema):
    """One of the likeliest answers."""

    answer: str = Field(examples=["running"])
    probability: float = Field(examples=[0.38])


class Step(Schema):
    """What one step of attention looked at."""

    regions: tuple[float, ...] = Field(
        examples=[[0.6, 0.3, 0.1]], description="one for each region"
    )
    words: tuple[float, ...] = Field(
        examples=[[0.1, 0.1, 0.6, 0.2]],
        description="one for each word; what is missing to 1 went to marks of beginning and end",
    )


class Reply(Schema):
    """Answers, and what the steps of attention looked at."""

    question: str = Field(examples=["what is the dog doing?"])
    answers: tuple[Answer, ...]
    words: tuple[str, ...] = Field(examples=[["what", "is", "the", "dog", "doing", "?"]])
    unknown: tuple[str, ...] = Field(examples=[[]])
    boxes: tuple[Box, ...] = Field(
        examples=[[[0.1, 0.25, 0.5, 0.9]]], description="as shares of width and height"
    )
    steps: tuple[Step, ...]


class Job(Schema):
    """The folder that is being added, or was last."""

    state: Literal["idle", "running", "done", "failed"] = Field(examples=["running"])
    folder: str = Field(default="", examples=["/home/me/photos"])
    done: int = Field(default=0, examples=[120])
    of: int = Field(
        default=0,
        examples=[300],
        description="photographs that are new or changed; 0 while looking",
    )
    seconds_left: float | None = Field(default=None, examples=[25.5])
    words: str = Field(default="", examples=["120 of 300 photographs"])


class IndexState(Schema):
    """What the index is and what may be done with it."""

    photographs: int = Field(examples=[8090])
    sentences: int = Field(examples=[0])
    embedder: str = Field(examples=["vse++"])
    reranker: str | None = Field(examples=["bfan"])
    answerer: str | None = Field(examples=["r-dan"])
    tags: tuple[str, ...] = Field(examples=[["holidays"]])
    folders: tuple[str, ...] = Field(
        examples=[["/home/me/photos"]], description="that may be added"
    )
    token: bool = Field(examples=[False], description="whether this server wants a token")
    upload_bytes: int = Field(examples=[20_000_000])
    job: Job


class AddFolder(Schema):
    """A folder to add, or to bring up to date."""

    folder: str = Field(min_length=1, max_length=4096, examples=["/home/me/photos"])
    tags: tuple[str, ...] = Field(default=(), max_length=50, examples=[["holidays"]])


class Token(Schema):
    """The token, from the page's login field."""

    token: str = Field(min_length=1, max_length=1000, examples=["a-long-random-token"])


class Health(Schema):
    """Whether the service answers."""

    status: Literal["ok"]
