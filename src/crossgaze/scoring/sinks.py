"""What becomes of scores: a matrix, a file, the best K, the rank of the right answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crossgaze.errors import InputError
from crossgaze.files import is_special, sync_folder


class ScoreMatrix:
    """Keeps all scores in a matrix that is there already: a tensor, an array, a mapped file.

    Args:
        out: (N, M), preallocated.
    """

    def __init__(self, out: Tensor | npt.NDArray[Any]) -> None:
        self.out = out

    def take(self, start: int, scores: Tensor) -> None:
        """Write some rows."""
        stop = start + len(scores)
        if stop > self.out.shape[0] or scores.shape[1] != self.out.shape[1]:
            raise InputError(
                f"out: got shape {tuple(self.out.shape)}, wanted (images, {scores.shape[1]}) with "
                f"at least {stop} images"
            )
        if isinstance(self.out, Tensor):
            self.out[start:stop] = scores
        else:
            self.out[start:stop] = scores.numpy(force=True)


class ScoreFile:
    """Writes all scores to a `.npy` file, row after row, and maps none of it into memory.

    The file appears under its name when the last row is there.

    Args:
        path: the file.
        images: N, how many rows there will be.

    Example:
        ```python
        with ScoreFile("scores.npy", images=5000) as file:
            score_into(model, images, texts, [file])
        scores = np.load("scores.npy", mmap_mode="r")
        ```
    """

    def __init__(self, path: str | Path, images: int) -> None:
        if images < 1:
            raise InputError(f"images: got {images}, wanted 1 or more rows for {path}")
        self.path, self.images = Path(path), images
        if is_special(self.path):
            raise InputError(f"{path}: is a pipe, socket or device, wanted a file to write")
        self._part = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        self._rows = 0
        with self._refusing():
            self._file = self._part.open("wb")

    def take(self, start: int, scores: Tensor) -> None:
        """Append some rows."""
        if start != self._rows:
            raise InputError(f"{self.path}: got row {start} next, wanted row {self._rows}")
        rows = np.ascontiguousarray(scores.numpy(force=True))
        with self._refusing():
            if not self._rows:
                head = {"descr": rows.dtype.str, "fortran_order": False}
                shape = (self.images, rows.shape[1])
                np.lib.format.write_array_header_1_0(self._file, head | {"shape": shape})
            self._file.write(rows.data)
        self._rows += len(rows)

    def __enter__(self) -> ScoreFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._finish()
        finally:
            with suppress(OSError):  # what could not be written is given up
                self._file.close()
            self._part.unlink(missing_ok=True)

    def _finish(self) -> None:
        if self._rows != self.images:
            raise InputError(
                f"{self.path}: got {self._rows} rows, wanted {self.images}; nothing is written"
            )
        with self._refusing():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._part.replace(self.path)
            sync_folder(self.path.parent)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Say in a line that the file cannot be written."""
        try:
            yield
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror}") from None


class BestTexts:
    """Keeps the K best sentences of every image.

    Equal scores come in the order of the sentences.

    Args:
        k: how many; fewer where there are fewer sentences.
    """

    def __init__(self, k: int) -> None:
        self._k = _require_k(k)
        self._parts: list[tuple[Tensor, Tensor]] = []

    def take(self, start: int, scores: Tensor) -> None:
        """Find the best of each row."""
        best, order = scores.sort(dim=1, descending=True, stable=True)
        self._parts.append((best[:, : self._k].clone(), order[:, : self._k].clone()))

    @property
    def scores(self) -> Tensor:
        """(N, K), best first."""
        return torch.cat([scores for scores, _ in self._found()])

    @property
    def rows(self) -> Tensor:
        """(N, K) int64, which sentences."""
        return torch.cat([rows for _, rows in self._found()])

    def _found(self) -> list[tuple[Tensor, Tensor]]:
        if not self._parts:
            raise InputError("there were no images, so there are no best sentences")
        return self._parts


class BestImages:
    """Keeps the K best images of every sentence.

    Equal scores come in the order of the images.

    Args:
        k: how many; fewer where there are fewer images.
    """

    def __init__(self, k: int) -> None:
        self._k = _require_k(k)
        self._best: tuple[Tensor, Tensor] | None = None  # (K, M) scores and images

    def take(self, start: int, scores: Tensor) -> None:
        """Merge the best of a block with those before."""
        numbers = torch.arange(start, start + len(scores), device=scores.device)
        rows = numbers[:, None].expand_as(scores)
        if self._best is not None:
            scores = torch.cat([self._best[0], scores])
            rows = torch.cat([self._best[1], rows])
        best, order = scores.sort(dim=0, descending=True, stable=True)
        self._best = best[: self._k].clone(), rows.gather(0, order[: self._k])

    @property
    def scores(self) -> Tensor:
        """(M, K), best first."""
        return self._found()[0].T

    @property
    def rows(self) -> Tensor:
        """(M, K) int64, which images."""
        return self._found()[1].T

    def _found(self) -> tuple[Tensor, Tensor]:
        if self._best is None:
            raise InputError("there were no images, so there are no best ones")
        return self._best


class TruthRanks:
    """Counts at which rank the right answer stands, without keeping the scores.

    Rank 1 is first; what scores the same as the right answer counts as before it, and so does a
    NaN. An image's rank is that of the best of its sentences among all that are not its own.

    An image's scores arrive together, but a sentence's right image may come after others that must
    be compared with it. So its score is guessed first (`crossgaze.scoring.pairs` computes it by
    itself, with other rounding). What lies further than `slack` from the guess is counted at once,
    the few within are kept until the right image's own score is there.

    Args:
        truth: (M,) int64, the image of each sentence.
        guess: (M,) the score of each sentence with its image, within `slack`.
        slack: how far from the guess a score must be to be counted at once.
    """

    def __init__(self, truth: Tensor, guess: Tensor, slack: float = 1e-3) -> None:
        if truth.shape != guess.shape or truth.ndim != 1:
            raise InputError(
                f"truth: got shapes {tuple(truth.shape)} and {tuple(guess.shape)}, wanted one "
                "image and one guess a sentence"
            )
        self._truth, self._slack = truth, slack
        self._guess = guess.double()
        self._before = torch.zeros_like(truth)
        self._exact = torch.full_like(self._guess, torch.nan)  # a float32 is the same in double
        self._close: list[tuple[Tensor, Tensor]] = []  # sentences and scores near their guess
        self._images: list[Tensor] = []

    def take(self, start: int, scores: Tensor) -> None:
        """Count a block."""
        numbers = torch.arange(start, start + len(scores), device=scores.device)
        own = numbers[:, None] == self._truth  # (B, M)
        has = own.any(1)
        # An image without a sentence has no rank.
        best = torch.where(own, scores, -torch.inf).max(1).values if own.shape[1] else has.float()
        # "Not below" and not "at least": a NaN is neither, and must not help the query.
        ranks = 1 + (~(scores < best[:, None]) & ~own).sum(1)
        self._images.append(torch.where(has, ranks, 0))

        columns = own.any(0).nonzero().flatten()
        self._exact[columns] = scores[self._truth[columns] - start, columns].double()
        # One comparison decides, so that rounding counts nothing twice.
        ahead = (scores - self._guess).masked_fill(own, -torch.inf)  # (B, M)
        self._before += (~(ahead <= self._slack)).sum(0)
        close = ahead.abs() <= self._slack
        self._close.append((close.nonzero()[:, 1], scores[close].double()))

    @property
    def images(self) -> Tensor:
        """(N,) int64, rank of each image's best sentence; 0 where it has none."""
        return torch.cat([self._truth.new_zeros(0), *self._images])

    @property
    def texts(self) -> Tensor:
        """(M,) int64, rank of each sentence's image."""
        off = (self._exact - self._guess).abs()
        if not bool((off <= self._slack).all()):
            worst = int(off.nan_to_num(nan=torch.inf).argmax())
            raise InputError(
                f"truth: sentence {worst} scores {float(self._exact[worst])} with its image "
                f"{int(self._truth[worst])}, guessed {float(self._guess[worst])}"
            )
        before = self._before.clone()
        for columns, scores in self._close:
            ahead = scores >= self._exact[columns]
            before.index_add_(0, columns[ahead], torch.ones_like(columns[ahead]))
        return 1 + before


def _require_k(k: int) -> int:
    if k < 1:
        raise InputError(f"k: got {k}, wanted 1 or more")
    return k
