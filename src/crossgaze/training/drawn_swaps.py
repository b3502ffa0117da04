"""Swapped sentences that are drawn once, before training, instead of anew in every step.

A frozen BERT keeps what it gave for the captions, but a sentence that it never saw must be read,
and reading is dearer than all the rest of a step. With a few swaps for each caption, drawn
beforehand, it reads them once; a step then draws among them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from crossgaze.training.batches import Sentences
from crossgaze.training.swaps import Numbers, Swaps, SwapSampler

BLOCK = 1024  # captions drawn for at once


class DrawnSwaps:
    """A few swaps for each training caption.

    Args:
        sampler: draws them.
        sentences: the training captions.
        owners: (M,) the image number of each.
        each: E, how many swaps a caption has.
        seed: of the draws.
    """

    def __init__(
        self, sampler: SwapSampler, sentences: Sentences, owners: Numbers, each: int, seed: int
    ) -> None:
        generator = np.random.default_rng(seed)
        size = len(sentences)
        self._places = torch.zeros(each, size, dtype=torch.long)
        self._words = torch.zeros(each, size, dtype=torch.long)
        self._found = torch.zeros(each, size, dtype=torch.bool)
        for turn in range(each):
            for start in range(0, size, BLOCK):
                rows = np.arange(start, min(start + BLOCK, size))
                lengths = torch.from_numpy(sentences.lengths[rows])
                ids = sentences.padded(rows, int(lengths.max()))
                drawn = sampler.sample(ids, lengths, owners[rows], generator)
                self._places[turn, rows] = drawn.places
                self._words[turn, rows] = drawn.ids[torch.arange(len(rows)), drawn.places]
                self._found[turn, rows] = drawn.found

    def rows(self, sentences: Sentences) -> list[list[int]]:
        """Return the words of every sentence that can be drawn, for `TextEncoder.remember`."""
        found = []
        known = sentences.rows()
        for places, words, there in zip(
            self._places.tolist(), self._words.tolist(), self._found.tolist(), strict=True
        ):
            for row, place, word, some in zip(known, places, words, there, strict=True):
                if some:
                    found.append([*row[:place], word, *row[place + 1 :]])
        return found

    def sample(
        self,
        ids: Tensor,
        lengths: Tensor,
        captions: Sequence[int] | Numbers,
        generator: np.random.Generator,
    ) -> Swaps:
        """Return one of the swaps of each of some captions.

        Args:
            ids: (P, n) numbers of their words, on the CPU.
            lengths: (P,) how many are real.
            captions: (P,) which captions they are.
            generator: of the draws.
        """
        which = torch.from_numpy(np.asarray(captions, dtype=np.int64))
        turns = torch.from_numpy(generator.integers(len(self._places), size=len(ids)))
        places, found = self._places[turns, which], self._found[turns, which]
        swapped = ids.clone()
        swapped[found, places[found]] = self._words[turns, which][found]
        return Swaps(swapped, lengths, places, found)
