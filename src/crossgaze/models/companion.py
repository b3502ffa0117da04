"""What learns along with a model in training and is not needed to match.

A family says what it is by `Matcher.companion_type`, the configuration's class, and
`Matcher.make_companion`; the trainer knows no more of it than this. VSRN's caption generator is
one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from torch import Tensor, nn

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.models.encoded import Encoded


class Companion(nn.Module, ABC):
    """A module with losses of its own over what a model made of a batch.

    Args:
        vocabulary: in whose numbers it reads sentences; the model's own where that has one.
    """

    vocabulary: Vocabulary

    @abstractmethod
    def terms(self, images: Encoded, ids: Tensor, lengths: Tensor) -> dict[str, Tensor]:
        """Return its losses by name, each weighted and averaged over the pairs.

        Args:
            images: N images as the model encoded them.
            ids: (N, n) the words of each image's sentence, as they were written, in the numbers of
                its vocabulary.
            lengths: (N,) how many words are real.
        """

    @abstractmethod
    def save(self, folder: str | Path) -> None:
        """Write it to a folder, whole or not at all."""
