"""One training step: a batch to its loss, on one device or on several together.

Where processes train together, each encodes its part of the batch and compares its own images with
the sentences of all; the rows of scores are gathered, so that every process has the whole matrix
and the loss of the whole batch, hardest negatives included. No pair is computed twice.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from crossgaze.collectives import gather_rows, rank, ranks, sum_over_ranks
from crossgaze.models.companion import Companion
from crossgaze.models.encoded import Encoded
from crossgaze.models.matcher import Matcher
from crossgaze.training.augment import augment
from crossgaze.training.batches import Batch
from crossgaze.training.config import TrainConfig
from crossgaze.training.constraints import constraint_terms, encode_swaps, weigh
from crossgaze.training.losses import RankingLoss
from crossgaze.training.seeds import seed_everything


class Step(nn.Module):
    """A model and what learns along with it, as one module that gives the loss.

    Args:
        config: of the run.
        model: the matcher.
        companion: what learns along, if anything.
    """

    def __init__(
        self, config: TrainConfig, model: Matcher, companion: Companion | None = None
    ) -> None:
        super().__init__()
        self.config, self.model, self.companion = config, model, companion

    def forward(
        self, batch: Batch, loss: RankingLoss, step: int = 0
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return what to differentiate, and the whole batch's losses by name for people to read.

        The first is multiplied by the number of processes, since their gradients are averaged.

        Args:
            batch: this process's part, on the model's device.
            loss: of this step.
            step: its number, which decides what is drawn in it.
        """
        seed_everything(self.config.seed, step, rank())
        images, texts = self._encode(batch)
        scores = self.model.similarity(images, self._every(texts, batch))  # (n, N)
        scores = gather_rows(scores, batch.sizes, replicated=True)  # (N, N)
        # Every process must draw the same negatives.
        seed_everything(self.config.seed, step, -1)
        ranking = loss(scores, batch.owners, batch.owners)
        seed_everything(self.config.seed, step, rank() + ranks())
        mine = self._constrain(batch, images, texts) | self._along(batch, images)
        total = ranking + sum(mine.values())
        told = {"ranking": ranking.detach()}
        told |= {name: sum_over_ranks(term.detach()) for name, term in mine.items()}
        told = {"loss": torch.stack(list(told.values())).sum(), **told}
        return total * ranks(), told

    def _encode(self, batch: Batch) -> tuple[Encoded, Encoded]:
        """Encode both sides of the batch, augmented."""
        regions, counts = augment(self.config.augment, batch.regions, batch.counts)
        with autocast(self.config.precision, batch.ids.device):
            images = self.model.encode_images(regions, counts)
            texts = self.model.encode_tokens(batch.ids, batch.lengths)
        return _single(images), _single(texts)

    def _constrain(self, batch: Batch, images: Encoded, texts: Encoded) -> dict[str, Tensor]:
        """Return this process's part of the constraints by name, times their lambdas."""
        wanted = self.config.constraints
        if not wanted.active:
            return {}
        swapped = None
        if batch.swaps is not None:
            with autocast(self.config.precision, batch.ids.device):
                swapped = encode_swaps(self.model, batch.swaps)
            swapped = replace(swapped, texts=_single(swapped.texts))
        terms = constraint_terms(self.model, images, texts, swapped, wanted)
        share = share_of(batch) if wanted.mean else 1.0
        return {name: share * term for name, term in weigh(terms, wanted).items()}

    def _along(self, batch: Batch, images: Encoded) -> dict[str, Tensor]:
        """Return this process's part of what the companion's losses are."""
        if self.companion is None:
            return {}
        with autocast(self.config.precision, batch.ids.device):
            terms = self.companion.terms(images, batch.written, batch.lengths)
        return {name: share_of(batch) * term for name, term in terms.items()}

    def _every(self, texts: Encoded, batch: Batch) -> Encoded:
        """Return the sentences of the whole batch."""
        if len(batch.sizes) == 1:
            return texts
        parts = {
            name: None if part is None else gather_rows(part, batch.sizes, replicated=False)
            for name, part in (("vectors", texts.vectors), ("fragments", texts.fragments))
        }
        return Encoded(parts["vectors"], parts["fragments"], batch.all_lengths)


def autocast(precision: str, device: torch.device) -> torch.autocast:
    """Return the context in which encoders compute in a precision."""
    half = precision != "float32"
    return torch.autocast(
        device.type, dtype=getattr(torch, precision) if half else None, enabled=half
    )


def share_of(batch: Batch) -> float:
    """Return which part of the batch this process has: means are of parts, sums are not."""
    return len(batch.lengths) / len(batch.owners)


def _single(side: Encoded) -> Encoded:
    """Return a side in single precision: where sides meet, half of it is not enough."""

    def widen(part: Tensor | None) -> Tensor | None:
        half = part is not None and part.dtype in (torch.float16, torch.bfloat16)
        return part.float() if half and part is not None else part

    return replace(
        side,
        vectors=widen(side.vectors),
        fragments=widen(side.fragments),
        features=widen(side.features),
    )
