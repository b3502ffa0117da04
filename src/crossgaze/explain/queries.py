"""The queries of an evaluation with their best answers, read back from its file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crossgaze.data.textfiles import read_json_text
from crossgaze.errors import FileFormatError, InputError
from crossgaze.evaluation.report import FORMAT, UNREADABLE

Side = Literal["sentences", "images"]
Only = Literal["all", "hits", "misses"]


@dataclass(frozen=True)
class Answer:
    """One answer to a query: an image's name or a sentence, its score, and whether it is right."""

    what: str
    score: float
    right: bool


@dataclass(frozen=True)
class Query:
    """A query with its best answers.

    Args:
        what: a sentence, or an image's name.
        rank: at which the first right answer stands, 1 is first.
        answers: best first.
    """

    what: str
    rank: int
    answers: tuple[Answer, ...]


def read_queries(result: str | Path, side: Side = "sentences") -> list[Query]:
    """Read the queries of a file that `crossgaze evaluate --out` wrote, of its first protocol.

    Args:
        result: the file.
        side: "sentences" that ask for images, or "images" that ask for sentences.
    """
    if side not in ("sentences", "images"):
        raise InputError(f"of: got {side!r}, wanted sentences or images")
    file, text = Path(result), read_json_text(result, "a result of crossgaze evaluate --out")
    try:
        tree = json.loads(text)
        if tree["format"] != FORMAT:
            raise ValueError(f"it is {tree['format']!r}")
        queries = tree["protocols"][0]["queries"]
        texts, owners = _captions(queries["captions"])
        asked = queries["captions" if side == "sentences" else "images"]
        found = [_query(entry, side, texts, owners) for entry in asked]
    except UNREADABLE as error:
        raise FileFormatError(file, f"does not read as an evaluation: {error!r}") from None
    if not found or not any(query.answers for query in found):
        raise InputError(f"{file}: holds no best answers, wanted a result with --top of 1 or more")
    return found


def _captions(entries: Sequence[Mapping[str, Any]]) -> tuple[dict[int, str], dict[int, str]]:
    """Return the text and the image of each caption's number."""
    texts = {int(entry["caption"]): str(entry["text"]) for entry in entries}
    return texts, {int(entry["caption"]): str(entry["image"]) for entry in entries}


def _query(
    entry: Mapping[str, Any], side: Side, texts: Mapping[int, str], owners: Mapping[int, str]
) -> Query:
    own, top = str(entry["image"]), entry.get("top", [])
    if side == "sentences":
        answers = [(str(one["image"]), one["score"], str(one["image"]) == own) for one in top]
    else:
        numbers = [(int(one["caption"]), one["score"]) for one in top]
        answers = [(texts[number], score, owners[number] == own) for number, score in numbers]
    what = str(entry["text"]) if side == "sentences" else own
    found = tuple(Answer(text, float(score), right) for text, score, right in answers)
    return Query(what, int(entry["rank"]), found)


def choose(queries: Sequence[Query], count: int, only: Only = "all") -> list[Query]:
    """Return `count` queries, evenly from the first to the last.

    Args:
        queries: all of them.
        count: how many are wanted.
        only: "hits", whose first answer is right, "misses", whose first is wrong, or "all".
    """
    if only not in ("all", "hits", "misses"):
        raise InputError(f"only: got {only!r}, wanted all, hits or misses")
    if count < 1:
        raise InputError(f"rows: got {count}, wanted 1 or more")
    wanted = [
        query
        for query in queries
        if query.answers and (only == "all" or query.answers[0].right == (only == "hits"))
    ]
    if not wanted:
        raise InputError(f"only: there are no {only} among {len(queries)} queries")
    places = np.unique(np.linspace(0, len(wanted) - 1, min(count, len(wanted))).round().astype(int))
    return [wanted[place] for place in places.tolist()]
