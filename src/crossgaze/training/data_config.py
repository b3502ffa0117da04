"""What a training run learns from: a recipe's `data` keys, as a frozen dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crossgaze.errors import InputError
from crossgaze.models.checks import require_share, require_switch, require_whole


@dataclass(frozen=True)
class DataConfig:
    """What is learned from.

    Args:
        captions: a folder or file that `crossgaze data` reads, or several of them; for a family
            that matches.
        regions: the region store of the images, or the `*_precomp` folder that has their features;
            or one for each of `captions`.
        questions: a question set that `crossgaze data` reads, for a family that answers.
        train: the splits that are learned from.
        dev: the split that the best snapshot is chosen by.
        dev_images: how many of its images, from the first on; 0 for all.
        min_count: how often a training word must occur to be known.
        vocabulary: a vocabulary file instead.
        in_memory: hold the features in main memory instead of mapping the store.
        answers: C, how many of the most frequent answers can be given (questions).
        single: only questions with a single answer (DAQUAR's).
        dev_share: share of the training images that are held out as dev, for a question set that
            has no dev split; 0 takes the split `dev`.
    """

    regions: Path | tuple[Path, ...]
    captions: Path | tuple[Path, ...] = ()
    questions: Path | None = None
    train: tuple[str, ...] = ("train",)
    dev: str = "dev"
    dev_images: int = 0
    min_count: int = 4
    vocabulary: Path | None = None
    in_memory: bool = False
    answers: int = 2000
    single: bool = False
    dev_share: float = 0.0

    def __post_init__(self) -> None:
        if bool(self.sources) == (self.questions is not None):
            got = "both" if self.sources else "neither"
            raise InputError(f"data: got {got} of captions and questions, wanted one of them")
        if self.questions is not None and len(self.stores) != 1:
            raise InputError("data.regions: got several stores, wanted one for the questions")
        if self.sources and len(self.sources) != len(self.stores):
            raise InputError(
                f"data: got {len(self.sources)} captions and {len(self.stores)} regions, "
                "wanted a region store for each set of captions"
            )
        if not self.train:
            raise InputError("data.train: got no split, wanted one or more")
        require_whole("data.dev_images", self.dev_images, least=0)
        require_whole("data.min_count", self.min_count)
        require_switch("data.in_memory", self.in_memory)
        require_whole("data.answers", self.answers)
        require_switch("data.single", self.single)
        require_share("data.dev_share", self.dev_share)
        self._require_used()

    def _require_used(self) -> None:
        """Refuse settings of questions where captions are learned from."""
        if self.questions is None and (self.single or self.dev_share):
            raise InputError("data.single, data.dev_share: are settings of questions")

    @property
    def sources(self) -> tuple[Path, ...]:
        """The captions, one or more; none where questions are learned from."""
        return self.captions if isinstance(self.captions, tuple) else (self.captions,)

    @property
    def named(self) -> tuple[Path, ...]:
        """The captions or the questions."""
        return self.sources if self.questions is None else (self.questions,)

    @property
    def chosen_by(self) -> str:
        """What the best snapshot is chosen by, for people."""
        held = f"{100 * self.dev_share:g} % of the images of {', '.join(self.train)}"
        return held if self.dev_share else self.dev

    @property
    def stores(self) -> tuple[Path, ...]:
        """The region stores, one or more."""
        return self.regions if isinstance(self.regions, tuple) else (self.regions,)
