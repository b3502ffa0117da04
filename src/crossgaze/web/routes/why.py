"""`/explain` and `/ask`: where words looked, and what a question's answer is."""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query

from crossgaze.errors import InputError
from crossgaze.explain.explanation import is_word
from crossgaze.search.engine import together
from crossgaze.search.queries import LONGEST, require_words
from crossgaze.search.ranking import products_of, rerank_uids
from crossgaze.search.results import Hit
from crossgaze.web.problems import RequestError
from crossgaze.web.routes.images import shares
from crossgaze.web.routes.parameters import ERRORS
from crossgaze.web.schemas import MOST_ID, Explanation, Question, Reply, Word
from crossgaze.web.service import Service


def router(service: Service) -> APIRouter:
    """Return the routes."""
    made = APIRouter(tags=["why"], responses=ERRORS)

    @made.get("/explain")
    async def explain(
        image: Annotated[int, Query(alias="id", ge=1, le=MOST_ID, examples=[17])],
        q: Annotated[str, Query(max_length=LONGEST, examples=["two dogs in the snow"])],
    ) -> Explanation:
        """Return where each word of a sentence looked in a photograph."""
        return await service.models.run(_explain, service, image, q)

    @made.post("/ask")
    async def ask(question: Question) -> Reply:
        """Answer a question about a photograph, with what each step of attention looked at."""
        if service.asker is None:
            raise RequestError(
                409, "no model here answers questions; start crossgaze serve with --answerer MODEL"
            )
        entry = await service.entry(question.id)
        started = time.perf_counter()
        found = await service.models.run(service.asker, entry, question.question, question.top)
        service.metrics.step("ask", time.perf_counter() - started)
        return found

    return made


def _explain(service: Service, uid: int, sentence: str) -> Explanation:
    library = service.library
    entry, index = library.entry(uid), library.index
    unknown = require_words(index, sentence)
    started = time.perf_counter()
    if (index.kept.rows([uid]) < 0).any():
        index.reopen_kept()
    if (index.kept.rows([uid]) < 0).any():
        raise InputError(f"photograph {uid}: has no regions in the index; index its folder again")
    looks = index.look(sentence, Hit(0, 0.0, entry.key, uid))
    score = None
    if index.reranker is not None:
        uids, (vector,) = np.array([uid], np.int64), index.embedder.texts([sentence])
        products = products_of(index, vector, uids)
        score = round(float(together(products, rerank_uids(index, sentence, uids))[0]), 5)
    service.metrics.step("look", time.perf_counter() - started)
    return Explanation(
        id=uid,
        sentence=sentence,
        score=score,
        whose=None if index.reranker is None else index.reranker.looks_as,
        words=tuple(
            Word(
                word=look.word,
                weights=tuple(round(weight, 5) for weight in look.weights),
                strongest=look.strongest,
            )
            for look in looks
            if is_word(look.word)
        ),
        unknown=unknown,
        regions=shares(library.regions(uid), entry),
    )
