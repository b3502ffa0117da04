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
from itertools import chain
from typing import Any, Protocol

import torch
from torch import Tensor

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.scoring.kernel import Kernel
from crossgaze.scoring.tiles import Tile, make_tiles
from crossgaze.threads import cores, plain_mode, single_threaded

GIGABYTE = 1 << 30
BLOCK = 512  # images of a block, if memory allows
SMALL = 1 << 20  # numbers that kernels hold, below which threads do not pay


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
            float32 then. Layers (MMCA's) keep the precision of their weights.
        on_progress: called with the number of images done.

    Returns:
        How many images and how many sentences there were.

    Example:
        ```python
        best, ranks = BestTexts(10), TruthRanks(truth, guess)
        with ScoreFile("scores.npy", images=len(images)) as file:
            score_into(model, images, texts, [file, best, ranks])
        ```
    """
    workers = workers if workers is not None else cores()
    if workers < 1:
        raise InputError(f"workers: got {workers}, wanted 1 or more")
    kernel = model.kernel()
    first, rest = _peek(images)
    regions = 1
    if first is not None and first.fragments is not None and len(first):
        regions = int(first.counts.max())
    single = first is None or _part(first).dtype != torch.float64
    plan = _Plan(kernel, budget, workers, regions, 4 if single else 8)
    with plain_mode(_device(first), inference=torch.is_inference_mode_enabled()):
        said = [
            _Prepared(tile.rows, len(tile.rows) * tile.count, kernel.texts(_cast(tile, dtype)))
            for tile in make_tiles(texts, plan.words, items_first=kernel.items_first[1])
        ]
        columns = sum(len(tile.rows) for tile in said)
        plan.longest = max((tile.fragments for tile in said), default=1)
        done = 0
        for block in _blocks(rest, plan, columns):
            tiles = make_tiles(block, plan.regions(), items_first=kernel.items_first[0])
            seen = [
                _Prepared(tile.rows, len(tile.rows) * tile.count, kernel.images(_cast(tile, dtype)))
                for tile in tiles
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

    Args:
        kernel: what scores.
        budget: bytes.
        workers: threads.
        most: regions of the image that has most of them, as far as is known.
        number: bytes of a number.
    """

    def __init__(self, kernel: Kernel, budget: int, workers: int, most: int, number: int) -> None:
        self.kernel, self.budget, self.workers, self.number = kernel, budget, workers, number
        self.words = kernel.tile[1]
        while self.words > 1 and self.bytes(most, self.words) > budget // 2:
            self.words //= 2
        self.longest = self.words  # words of the largest tile, once they are packed

    def bytes(self, regions: int, words: int) -> int:
        """Return what scoring tiles of so many fragments holds, in all threads."""
        return self.number * self.workers * self.kernel.numbers(regions, words)

    def regions(self) -> int:
        """Return how many regions a tile of images may have."""
        regions = self.kernel.tile[0]
        while regions > 1 and self.bytes(regions, self.longest) > self.budget // 2:
            regions //= 2
        return regions

    def block(self, image: int, columns: int) -> int:
        """Return how many images of `image` bytes and `columns` sentences a block may have."""
        quarter = self.budget // 4
        return max(
            min(BLOCK, quarter // max(image, 1), quarter // max(self.number * columns, 1)), 1
        )

    def require_fit(self, most: int) -> None:
        """Refuse a budget that the smallest possible tiles exceed."""
        least = self.bytes(most, self.longest)
        if least > self.budget:
            raise InputError(
                f"budget: got {self.budget:,} bytes, wanted at least {least:,} for "
                f"{self.workers} workers, {most} regions an image and {self.longest} words"
            )


def _peek(images: Encoded | Iterable[Encoded]) -> tuple[Encoded | None, Iterator[Encoded]]:
    """Return the first part of the images, and all of them."""
    batches = iter([images] if isinstance(images, Encoded) else images)
    first = next(batches, None)
    return first, batches if first is None else chain([first], batches)


def _blocks(batches: Iterable[Encoded], plan: _Plan, columns: int) -> Iterator[Encoded]:
    """Cut images into blocks that fit the budget."""
    for batch in batches:
        if columns and len(batch):
            plan.require_fit(1 if batch.fragments is None else int(batch.counts.max()))
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
    pairs = [(image, text) for text in said for image in seen]
    # The largest first, so that no thread is left with one while the others have nothing to do.
    pairs.sort(key=lambda pair: -pair[0].fragments * pair[1].fragments)
    scores = torch.empty(shape, dtype=dtype, device=like.device)
    inference = torch.is_inference_mode_enabled()

    def work(pair: tuple[_Prepared, _Prepared]) -> None:
        image, text = pair
        with plain_mode(scores.device, inference=inference):
            scores[image.rows[:, None], text.rows] = kernel.score(image.data, text.data).to(dtype)

    size = sum(kernel.numbers(image.fragments, text.fragments) for image, text in pairs)
    threads = min(plan.workers, len(pairs))
    if len(pairs) < 2 or size < SMALL or scores.device.type != "cpu":
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


def _device(side: Encoded | None) -> torch.device:
    return torch.device("cpu") if side is None else side.counts.device


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
