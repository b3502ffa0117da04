"""What a training step is shown: captions tokenised once, features gathered from a mapped store.

An epoch is one pass over all training captions in an order that seed and epoch decide; a batch is
some captions, each with its image. Batches of an epoch differ by one caption at most in size, so
that no small one is left over. Where processes train together each reads only its own part of a
batch, but knows which captions the others have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import InputError
from crossgaze.memory import require_room
from crossgaze.training.swaps import Swaps

Ints = npt.NDArray[np.int64]


class Sentences:
    """Captions as numbers of words, in one long row.

    Args:
        rows: the numbers of each caption's words.
    """

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self.lengths: Ints = np.array([len(row) for row in rows], dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self.lengths)])
        self._numbers = np.array([word for row in rows for word in row], dtype=np.int32)

    def __len__(self) -> int:
        return len(self.lengths)

    def rows(self) -> list[list[int]]:
        """Return the numbers of each caption's words."""
        return [part.tolist() for part in np.split(self._numbers, self._starts[1:-1])]

    def padded(self, captions: Ints, width: int) -> Tensor:
        """Return some captions, (N, width) int64, padded on the right with 0."""
        places = np.arange(width)
        real = places < self.lengths[captions, None]  # (N, width)
        out = np.zeros((len(captions), width), dtype=np.int64)
        flat = self._starts[captions, None] + places  # (N, width)
        out[real] = self._numbers[flat[real]]
        return torch.from_numpy(out)


class ImageRegions:
    """The regions of numbered images, from one or several stores.

    Args:
        stores: region stores of one width.
        images: the ids of the images of each store, which get numbers in this order.
        in_memory: read them all now, in the type they have on disk.
    """

    def __init__(
        self,
        stores: Sequence[RegionStore],
        images: Sequence[Sequence[str]],
        *,
        in_memory: bool = False,
    ) -> None:
        widths = {store.head.width for store in stores}
        if len(widths) != 1:
            found = " and ".join(f"{store.folder} of {store.head.width}" for store in stores)
            raise InputError(f"data.regions: got {found}, wanted region stores of one width")
        (self.width,) = widths
        self.most = max(store.head.regions for store in stores)
        self._parts: list[tuple[npt.NDArray[Any], npt.NDArray[np.int32]]] = []
        self._rows: list[Ints] = []
        for store, names in zip(stores, images, strict=True):
            rows = store.rows(names)
            features, counts = store.features, store.counts
            if in_memory:
                each = int(features[:1].nbytes)
                instead = "data.in_memory=false maps them instead"
                require_room("data.in_memory", len(rows), each, "images' features", instead)
                features, counts, rows = features[rows], counts[rows], np.arange(len(rows))
            self._parts.append((features, counts))
            self._rows.append(rows)
        self._starts = np.cumsum([0, *(len(rows) for rows in self._rows)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def gather(self, images: Ints) -> tuple[Tensor, Tensor]:
        """Return features (N, k, d), in the stores' type, and counts (N,) of some images."""
        if len(self._parts) == 1:
            features, counts = self._parts[0]
            rows = self._rows[0][images]
            return _tensor(features[rows]), torch.from_numpy(counts[rows].astype(np.int64))
        kind = np.result_type(*(features.dtype for features, _ in self._parts))
        out = np.zeros((len(images), self.most, self.width), dtype=kind)
        real = np.zeros(len(images), dtype=np.int64)
        owner = np.searchsorted(self._starts, images, side="right") - 1
        for number, (features, counts) in enumerate(self._parts):
            mine = np.flatnonzero(owner == number)
            rows = self._rows[number][images[mine] - self._starts[number]]
            out[mine, : features.shape[1]] = features[rows]
            real[mine] = counts[rows]
        return _tensor(out), torch.from_numpy(real)


def _tensor(array: npt.NDArray[Any]) -> Tensor:
    # Fancy indexing has copied, so the array is ours; only the byte order may be foreign.
    return torch.from_numpy(np.asarray(array, dtype=array.dtype.newbyteorder("=")))


@dataclass(frozen=True, eq=False)
class Batch:
    """This process's part of a batch, and what it must know of the whole.

    Args:
        captions: (n,) which captions.
        regions: (n, k, d) features of each caption's image.
        counts: (n,) how many regions are real.
        ids: (n, width) words as the model is shown them; `width` is the whole batch's longest.
        lengths: (n,) how many words are real.
        written: (n, other width) words as they were written, in the companion's numbers.
        written_lengths: (n,) how many of them are real.
        all_captions: (N,) which captions the whole batch has, rank 0's first.
        owners: (N,) the image number of each of them.
        all_lengths: (N,) how many words they have.
        sizes: n of every rank.
        swaps: the captions with a word swapped, where a constraint wants them.
        labels: (n,) the class of each question's answer, where questions are answered.
    """

    captions: Tensor
    regions: Tensor
    counts: Tensor
    ids: Tensor
    lengths: Tensor
    written: Tensor
    written_lengths: Tensor
    all_captions: Tensor
    owners: Tensor
    all_lengths: Tensor
    sizes: tuple[int, ...]
    swaps: Swaps | None = None
    labels: Tensor | None = None

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device; swaps are moved when they are encoded."""
        moved = {
            field.name: getattr(self, field.name).to(device, non_blocking=True)
            for field in fields(self)
            if isinstance(getattr(self, field.name), Tensor)
        }
        return replace(self, **moved)


@dataclass(frozen=True, eq=False)
class CaptionSet:
    """Captions with their images, ready to be batched.

    Args:
        sentences: the captions' words.
        owners: (M,) the image number of each caption.
        regions: the images' regions.
        texts: the captions as they were written.
        written: their words in the numbers of what learns along, where those are others.
    """

    sentences: Sentences
    owners: Ints
    regions: ImageRegions
    texts: tuple[str, ...]
    written: Sentences | None

    def steps(self, batch: int) -> int:
        """Return how many batches an epoch has."""
        return math.ceil(len(self.sentences) / batch)

    def order(self, seed: int, epoch: int, batch: int) -> list[Ints]:
        """Return the captions of each batch of an epoch."""
        shuffled = np.random.default_rng([seed, epoch]).permutation(len(self.sentences))
        return np.array_split(shuffled, self.steps(batch))

    def read(self, captions: Ints, rank: int = 0, ranks: int = 1) -> Batch:
        """Read this rank's part of a batch.

        Args:
            captions: (N,) of the whole batch.
            rank: of this process.
            ranks: how many processes.
        """
        parts = np.array_split(captions, ranks)
        mine = parts[rank]
        lengths = self.sentences.lengths[captions]
        features, counts = self.regions.gather(self.owners[mine])
        ids = self.sentences.padded(mine, int(lengths.max()))
        written = self.written or self.sentences
        longest = int(written.lengths[captions].max())
        return Batch(
            captions=torch.from_numpy(mine),
            regions=features,
            counts=counts,
            ids=ids,
            lengths=torch.from_numpy(self.sentences.lengths[mine]),
            written=written.padded(mine, longest),
            written_lengths=torch.from_numpy(written.lengths[mine]),
            all_captions=torch.from_numpy(captions),
            owners=torch.from_numpy(self.owners[captions]),
            all_lengths=torch.from_numpy(lengths),
            sizes=tuple(len(part) for part in parts),
        )

    def batches(
        self,
        order: Sequence[Ints],
        first: int = 0,
        rank: int = 0,
        ranks: int = 1,
        show: Callable[[int, Batch], Batch] = lambda number, batch: batch,
    ) -> Iterator[Batch]:
        """Yield an epoch's batches, the next being read meanwhile.

        Args:
            order: the captions of each batch.
            first: the number of the batch to begin with.
            rank: of this process.
            ranks: how many processes.
            show: makes of a batch, given its number, what the model is shown.
        """

        def read(number: int) -> Batch:
            return show(number, self.read(order[number], rank, ranks))

        with ThreadPoolExecutor(1, thread_name_prefix="batches") as reader:
            coming = reader.submit(read, first)
            for number in range(first, len(order)):
                ready = coming.result()
                if number + 1 < len(order):
                    coming = reader.submit(read, number + 1)
                yield ready
