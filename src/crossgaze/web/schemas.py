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
        description="by vectors so far, partly in the exact order, or all of this page in it"
    )
    hits: tuple[Hit, ...]
    offset: int
    next_offset: int | None = Field(description="where the next page begins; null at the end")
    ranked: int = Field(description="photographs of this block that are in the exact order")
    looked_at: int = Field(description="photographs of this block")
    total: int = Field(description="photographs in the index")
    picture: str | None = Field(
        default=None, description="asks for more pages of an uploaded picture"
    )
    sentences: tuple[Sentence, ...] = Field(default=(), description="of the index, for a picture")
    unknown: tuple[str, ...] = Field(default=(), description="words that a model does not know")
    milliseconds: float


class PhotographPage(Schema):
    """A page of all photographs, the newest first."""

    photographs: tuple[Photograph, ...]
    offset: int
    next_offset: int | None
    found: int = Field(description="photographs that pass the filter")
    total: int


class Region(Schema):
    """A region of a photograph."""

    box: Box = Field(description="x1, y1, x2, y2 as shares of width and height")
    noun: str = ""
    attribute: str = ""
    confidence: float = 0.0


class PhotographDetail(Photograph):
    """All that the index knows of a photograph."""

    path: str
    taken: str = Field(examples=["2024-05-01T12:00:00Z"])
    bytes: int
    regions: tuple[Region, ...]


class Word(Schema):
    """A word of a sentence and where it looked."""

    word: str
    weights: tuple[float, ...] = Field(description="one for each region")
    strongest: int = Field(description="the region with the largest weight")


class Explanation(Schema):
    """Where each word of a sentence looked in a photograph."""

    id: int
    sentence: str
    score: float | None = Field(
        description="as in a search: the mean of both models'; null without a re-ranker"
    )
    words: tuple[Word, ...]
    regions: tuple[Region, ...]


class Question(Schema):
    """A question about a photograph."""

    id: int = Field(ge=1, le=MOST_ID, examples=[17])
    question: str = Field(min_length=1, max_length=500, examples=["what is the dog doing?"])
    top: int = Field(default=5, ge=1, le=20)


class Answer(Schema):
    """One of the likeliest answers."""

    answer: str
    probability: float


class Step(Schema):
    """What one step of attention looked at."""

    regions: tuple[float, ...]
    words: tuple[float, ...] = Field(
        description="one for each word; what is missing to 1 went to the marks of beginning and end"
    )


class Reply(Schema):
    """Answers, and what the steps of attention looked at."""

    question: str
    answers: tuple[Answer, ...]
    words: tuple[str, ...]
    unknown: tuple[str, ...]
    boxes: tuple[Box, ...] = Field(description="as shares of width and height")
    steps: tuple[Step, ...]


class Job(Schema):
    """The folder that is being added, or was last."""

    state: Literal["idle", "running", "done", "failed"]
    folder: str = ""
    done: int = 0
    of: int = Field(default=0, description="photographs that are new or changed; 0 while looking")
    seconds_left: float | None = None
    words: str = ""


class IndexState(Schema):
    """What the index is and what may be done with it."""

    photographs: int
    sentences: int
    embedder: str
    reranker: str | None
    answerer: str | None
    tags: tuple[str, ...]
    folders: tuple[str, ...] = Field(description="that may be added")
    token: bool = Field(description="whether this server wants a token")
    upload_bytes: int
    job: Job


class AddFolder(Schema):
    """A folder to add, or to bring up to date."""

    folder: str = Field(min_length=1, max_length=4096, examples=["/home/me/photos"])
    tags: tuple[str, ...] = Field(default=(), max_length=50, examples=[["holidays"]])


class Token(Schema):
    """The token, from the page's login field."""

    token: str = Field(min_length=1, max_length=1000)


class Health(Schema):
    """Whether the service answers."""

    status: Literal["ok"]
