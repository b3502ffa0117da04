"""All pairs without gradient: images in blocks, sentences in tiles, within a memory budget.

Scores come a block of images at a time, each with every sentence, and go to sinks (a matrix, a
file, the best K, ranks; `crossgaze.scoring.sinks`): what nobody keeps is never held. On a CPU the
tiles of a block are shared out among threads that each compute alone; which thread did what changes
no number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.scoring.kernel import Kernel
from crossgaze.scoring.tiles import Tile, make_tiles
from crossgaze.threads import cores, single_threaded

GIGABYTE = 1 << 30
REGIONS, WORDS = 1800, 1536  # fragments of a tile of images and of sentences, if memory allows
BLOCK = 512  # images of a block, if memory allows
SMALL = 1 << 20  # scores of fragments below which threads do not pay


class Sink(Protocol):
    """Takes scores as they are made."""

    def take(self, start: int, scores: Tensor) -> None:
        """Take the (B, M) scores of images `start` and following with every sentence."""


class Scorer(Protocol):
    """A model, as far as scoring all pairs goes."""

    def kernel(self) -> Kernel:
        """Return the fast form of the model's similarity."""


@dataclass(frozen=True)
class _Prepared:
    """A tile, prepared by a kernel."""

    rows: Tensor
    fragments: int
    data: Any


def score_into(
    model: Scorer,
    images: Encoded | Iterable[Encoded],
    texts: Encoded | Iterable[Encoded],
    sinks: Sequence[Sink],
    *,
    budget: int = GIGABYTE,
    workers: int | None = None,
    dtype: torch.dtype | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> tuple[int, int]:
    """Score every image with every sentence and hand the scores to sinks.

    Args:
        model: whose similarity.
        images: encoded images, or parts of them in order, taken one by one.
        texts: encoded sentences, or parts of them in order; packed without padding and kept.
        sinks: what takes the scores, block by block in the images' order.
        budget: bytes of working memory, beside the sentences and what the sinks keep.
        workers: threads on a CPU; one a core if not given.
        dtype: compute products in this precision, such as torch.bfloat16 on a GPU; scores are
            float32 then.
        on_progress: called with the number of images done.

    Returns:
        How many images and how many sentences there were.

    Example:
        ```python
        best, ranks = BestTexts(10), TruthRanks(truth, guess)
        score_into(model, images, texts, [ScoreFile("scores.npy"), best, ranks])
        ```
    """
    workers = workers if workers is not None else cores()
    if workers < 1:
        raise InputError(f"workers: got {workers}, wanted 1 or more")
    kernel = model.kernel()
    plan = _Plan(kernel, budget, workers)
    with torch.no_grad():
        said = [
            _Prepared(tile.rows, len(tile.rows) * tile.count, kernel.texts(_cast(tile, dtype)))
            for tile in make_tiles(texts, plan.words)
        ]
        columns = sum(len(tile.rows) for tile in said)
        done = 0
        for block in _blocks(images, plan, columns):
            seen = [
                _Prepared(tile.rows, len(tile.rows) * tile.count, kernel.images(_cast(tile, dtype)))
                for tile in make_tiles(block, plan.regions)
            ]
            scores = _score_block(kernel, seen, said, (len(block), columns), plan, _part(block))
            for sink in sinks:
                sink.take(done, scores)
            done += len(block)
            if on_progress:
                on_progress(done)
    return done, columns


class _Plan:
    """How large tiles and blocks are, so that all of it stays within the budget.

    Half of the budget is for what threads hold while they score, a quarter each for a block's
    images and for its scores.
    """

    def __init__(self, kernel: Kernel, budget: int, workers: int) -> None:
        self.kernel, self.budget, self.workers = kernel, budget, workers
        self.regions, self.words = REGIONS, WORDS
        while self.regions > 1 and self.bytes(self.regions, self.words) > budget // 2:
            self.regions, self.words = self.regions // 2, max(self.words // 2, 1)

    def bytes(self, regions: int, words: int) -> int:
        """Return what scoring tiles of so many fragments holds, in float32, in every thread."""
        return 4 * self.workers * self.kernel.numbers(regions, words)

    def block(self, image: int, columns: int) -> int:
        """Return how many images of `image` bytes and `columns` sentences a block may have."""
        quarter = self.budget // 4
        return max(min(BLOCK, quarter // max(image, 1), quarter // max(4 * columns, 1)), 1)

    def require_fit(self, seen: Sequence[_Prepared], said: Sequence[_Prepared]) -> None:
        """Refuse a budget that the smallest possible tiles exceed."""
        regions, words = (max(tile.fragments for tile in side) for side in (seen, said))
        least = self.bytes(regions, words)
        if least > self.budget:
            raise InputError(
                f"budget: got {self.budget:,} bytes, wanted at least {least:,} for "
                f"{self.workers} workers and an image of {regions} regions with a text of {words}"
            )


def _blocks(images: Encoded | Iterable[Encoded], plan: _Plan, columns: int) -> Iterator[Encoded]:
    """Cut images into blocks that fit the budget."""
    for batch in [images] if isinstance(images, Encoded) else images:
        parts = (batch.vectors, batch.fragments)
        image = sum(part[:1].nbytes for part in parts if part is not None)
        size = plan.block(image, columns)
        for start in range(0, len(batch), size):
            yield batch[start : start + size]


def _score_block(
    kernel: Kernel,
    seen: Sequence[_Prepared],
    said: Sequence[_Prepared],
    shape: tuple[int, int],
    plan: _Plan,
    like: Tensor,
) -> Tensor:
    """Score the tiles of a block of images with all tiles of sentences, (B, M)."""
    # Double precision stays; all else gives single, also where products are made in half.
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    if not seen or not said:
        return torch.zeros(shape, dtype=dtype, device=like.device)
    plan.require_fit(seen, said)
    pairs = [(image, text) for text in said for image in seen]
    scores = torch.empty(shape, dtype=dtype, device=like.device)

    def work(pair: tuple[_Prepared, _Prepared]) -> None:
        image, text = pair
        with torch.no_grad():  # a thread has its own switch
            scores[image.rows[:, None], text.rows] = kernel.score(image.data, text.data).to(dtype)

    size = sum(image.fragments * text.fragments for image, text in pairs)
    threads = min(plan.workers, len(pairs))
    if size < SMALL or scores.device.type != "cpu":
        for pair in pairs:
            work(pair)
        return scores
    with (
        single_threaded() as initializer,
        ThreadPoolExecutor(threads, "score", initializer) as pool,
    ):
        for _ in pool.map(work, pairs):
            pass
    return scores


def _part(side: Encoded) -> Tensor:
    """Return what a side is made of."""
    part = side.fragments if side.fragments is not None else side.vectors
    if part is None:
        raise InputError("got a side without vectors and fragments, wanted a model's own")
    return part


def _cast(tile: Tile, dtype: torch.dtype | None) -> Encoded:
    """Return a tile's side in another precision."""
    side = tile.side
    if dtype is None:
        return side
    vectors = None if side.vectors is None else side.vectors.to(dtype)
    fragments = None if side.fragments is None else side.fragments.to(dtype)
    return replace(side, vectors=vectors, fragments=fragments)
