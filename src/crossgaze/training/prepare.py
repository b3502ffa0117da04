"""A recipe to a model and the data it learns from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.captions.reading import read_captions
from crossgaze.data.regions.precomp import is_precomp, open_precomp
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.base import Model
from crossgaze.models.companion import Companion
from crossgaze.models.families import family
from crossgaze.models.matcher import Matcher
from crossgaze.models.pretrained import load
from crossgaze.models.seen_words import words_of
from crossgaze.models.text import TextEncoder
from crossgaze.training.batches import CaptionSet, ImageRegions, Sentences
from crossgaze.training.config import TrainConfig
from crossgaze.training.data_config import DataConfig
from crossgaze.training.distributed import from_first, is_first
from crossgaze.training.drawn_swaps import DrawnSwaps
from crossgaze.training.seeds import seed_everything, seed_of
from crossgaze.training.swaps import SwapSampler, word_list

LOOKED_AT = 64  # images of a file of somebody else's by which it is known again


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a run needs, ready to start.

    Args:
        model: fresh, or what the recipe starts from.
        companion: what learns along, if anything.
        train: the captions that are learned from.
        dev: the captions that the best snapshot is chosen by.
        sampler: draws words to swap, where CCS wants them.
        fingerprint: of the data, by which another run's data are told apart.
        notes: what was left out, each in a sentence.
        origin: what the model must remember of its data: how the regions were made.
        chosen_by: what dev is, for people.
        drawn: the swaps that were drawn already, where the recipe wants that.
    """

    model: Model
    companion: Companion | None
    train: CaptionSet
    dev: CaptionSet
    sampler: SwapSampler | None
    fingerprint: str
    notes: tuple[str, ...]
    origin: Mapping[str, Any] = field(default_factory=dict)
    chosen_by: str = "dev"
    drawn: DrawnSwaps | None = None


@dataclass(frozen=True, eq=False)
class Sources:
    """The captions of a split and the stores of their images, one of each for every source."""

    sets: tuple[CaptionedImages, ...]
    stores: tuple[RegionStore, ...]

    @classmethod
    def of(cls, pairs: Sequence[tuple[CaptionedImages, RegionStore]]) -> Sources:
        """Put captions and stores that belong together in two rows."""
        return cls(tuple(captions for captions, _ in pairs), tuple(store for _, store in pairs))

    @property
    def captions(self) -> list[str]:
        """All captions."""
        return [caption for part in self.sets for caption in part.captions]

    @property
    def owners(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """(M,) the image number of each caption, counted through all sources."""
        starts = np.cumsum([0, *(len(part) for part in self.sets)])
        parts = [part.image_of + start for part, start in zip(self.sets, starts[:-1], strict=True)]
        return np.concatenate(parts).astype(np.int64)


def prepare(
    config: TrainConfig, *, remember: bool = True, device: torch.device | None = None
) -> Prepared:
    """Read the data and build the model, the same for the same recipe.

    Args:
        config: the recipe.
        remember: whether a frozen BERT reads all captions now, which takes minutes; training wants
            it, a look at the data does not.
        device: where the model is put, and BERT reads; by default the CPU.
    """
    if config.task == "answer":
        from crossgaze.training.questions import prepare_questions

        return prepare_questions(config, remember=remember, device=device)
    train, dev, notes = read_sources(config.data)
    width = train.stores[0].head.width
    seed_everything(config.seed)
    model = make_model(config, train.captions, width)
    if config.start is None or model.text.seen is not None:  # of a start without, none are known
        model.text.seen = _seen(model, train.captions)
    wanted = config.companion_config()
    companion = None
    if wanted is not None:
        words = model.text.vocabulary or build_vocabulary(config, train.captions)
        companion = model.make_companion(wanted, words)
    require_droppable(config, model)
    held = config.data.in_memory
    sets, rows = [], []
    for part in (train, dev):
        regions = ImageRegions(part.stores, [one.images for one in part.sets], in_memory=held)
        captions = part.captions
        read = [model.text.tokenize(caption) for caption in captions]
        kept = [number for number, row in enumerate(read) if row]
        if not kept:
            raise InputError("data.captions: no caption has a word in it")
        if left := len(read) - len(kept):
            notes += (f"{left:,} captions without a word are left out",)
        texts = tuple(captions[number] for number in kept)
        sentences = Sentences([read[number] for number in kept])
        written = None  # the model's own numbers
        if companion is not None and model.text.vocabulary is None:
            written = Sentences([companion.vocabulary.encode(text) for text in texts])
        sets.append(CaptionSet(sentences, part.owners[kept], regions, texts, written))
        rows += read
    if device is not None:
        model.to(device)
    if remember:
        read_once(model.text, [row for row in rows if row], config.data.kept_words)
    sampler, drawn = None, None
    if config.constraints.ccs:
        said, owners = sets[0].sentences, sets[0].owners
        sampler = SwapSampler(said.rows(), owners, word_list(model.text))
        if config.constraints.drawn:
            seed = seed_of(config.seed, 3)
            drawn = DrawnSwaps(sampler, said, owners, config.constraints.drawn, seed)
            if remember:
                read_once(model.text, drawn.rows(said), config.data.kept_words)
    return Prepared(
        model=model,
        companion=companion,
        train=sets[0],
        dev=sets[1],
        sampler=sampler,
        fingerprint=_fingerprint(train, dev),
        notes=notes,
        origin=_origin(train),
        chosen_by=config.data.chosen_by,
        drawn=drawn,
    )


def read_once(text: TextEncoder, rows: Sequence[Sequence[int]], folder: Path | None) -> None:
    """Let a text encoder do now what it can do once for all epochs.

    Of processes that train together all need what a frozen BERT gives. Where a folder keeps it, the
    first reads and writes, and the others wait and take it from there; without one, or on a machine
    that does not have the first one's folder, each reads by itself.

    Args:
        text: the encoder.
        rows: the numbers of each sentence's words.
        folder: where what it gives is kept, if anywhere.
    """
    waits = folder is not None and not is_first()
    if not waits:
        text.remember(rows, folder)
    if folder is not None:
        from_first(None)
    if waits:
        text.remember(rows, folder)


def _seen(model: Matcher, captions: Sequence[str]) -> frozenset[str] | None:
    """Return the words that a model of word pieces will have met; None where a vocabulary tells."""
    if model.vocabulary is not None:
        return None
    return words_of(captions) | (model.text.seen or frozenset())


def _origin(train: Sources) -> dict[str, Any]:
    """Return how the regions were made, where all were made alike and their stores say how."""
    made = [dict(store.head.made_by) for store in train.stores]
    return {"regions": made[0]} if made[0] and all(one == made[0] for one in made) else {}


def read_sources(config: DataConfig) -> tuple[Sources, Sources, tuple[str, ...]]:
    """Return what is learned from, what is chosen by, and what was left out.

    Training images that a store does not have are left out; of the dev images none may be missing,
    since figures of fewer images are higher.
    """
    train: list[tuple[CaptionedImages, RegionStore]] = []
    dev: list[tuple[CaptionedImages, RegionStore]] = []
    notes: list[str] = []
    for path, place in zip(config.sources, config.stores, strict=True):
        stores = open_stores(place, (*config.train, config.dev))
        every = read_captions(path)
        notes += [f"{path}: {entry}" for entry in every.left_out]
        # One store for all splits as a rule; a *_precomp folder has one for each.
        for store in dict.fromkeys(stores[split] for split in config.train):
            mine = every.split(*(split for split in config.train if stores[split] is store))
            there = [name for name in mine.images if name in store]
            if len(there) < len(mine):
                absent = len(mine) - len(there)
                notes.append(f"{path}: {absent:,} training images are not in {store.folder}")
                mine = mine.select(there)
            if there:
                train.append((mine, store))
        if not any(store in stores.values() for _, store in train):
            wanted = len(every.split(*config.train))
            raise InputError(f"{place}: has none of the {wanted:,} training images of {path}")
        chosen = every.split(config.dev)
        chosen = chosen.first(config.dev_images) if config.dev_images else chosen
        if not len(chosen):
            raise InputError(
                f"{path}: its split {config.dev!r} is empty, wanted images to choose by"
            )
        stores[config.dev].rows(chosen.images)
        dev.append((chosen, stores[config.dev]))
    return Sources.of(train), Sources.of(dev), tuple(notes)


def open_stores(place: Path, splits: Sequence[str]) -> dict[str, RegionStore]:
    """Return the region store of each split: one for all, or those of a `*_precomp` folder."""
    if is_precomp(place):
        return {split: open_precomp(place, split) for split in dict.fromkeys(splits)}
    return dict.fromkeys(splits, RegionStore(place))


def make_model(config: TrainConfig, captions: Sequence[str], region_width: int) -> Matcher:
    """Build the recipe's model, or load what it starts from.

    Args:
        config: the recipe.
        captions: the training captions, for the vocabulary.
        region_width: of the store.
    """
    wanted = config.model_config(region_width)
    require_width(wanted, region_width)
    if config.start is not None:
        found = load(config.start)
        if not isinstance(found, Matcher) or found.family != config.family:
            raise InputError(f"start: {config.start} is not a {config.family}")
        if found.config != wanted:
            raise InputError(f"start: {config.start} has another configuration than the recipe")
        return found
    model_type, _ = family(config.family)
    made = model_type(wanted, make_vocabulary(config, wanted, captions))  # type: ignore[call-arg]
    assert isinstance(made, Matcher)  # the recipe's task has seen to it
    return made


def make_vocabulary(
    config: TrainConfig,
    wanted: Any,  # noqa: ANN401 (each family has its own)
    texts: Sequence[str],
) -> Vocabulary | None:
    """Return the recipe's vocabulary file or the words of the training texts; None for a BERT."""
    return None if wanted.text.kind == "bert" else build_vocabulary(config, texts)


def build_vocabulary(config: TrainConfig, texts: Sequence[str]) -> Vocabulary:
    """Return the recipe's vocabulary file or the words of the training texts."""
    path = config.data.vocabulary
    return Vocabulary.load(path) if path else Vocabulary.build(texts, config.data.min_count)


def require_width(wanted: Any, region_width: int) -> None:  # noqa: ANN401
    """Refuse a model that takes other regions than the store has."""
    if wanted.region_width != region_width:
        raise InputError(
            f"model.region_width: got {wanted.region_width}, the region store has {region_width}; "
            "leave it out to take the store's"
        )


def require_droppable(config: TrainConfig, model: Model) -> None:
    """Refuse to drop words for a text encoder that has nothing to put in their place."""
    if config.augment.words and model.text.unknown is None:
        raise InputError(
            "augment.words: got words to drop, but this text encoder has no <unk>; wanted 0"
        )


def _fingerprint(*parts: Sources) -> str:
    """Return a checksum of captions, images and the stores' own checksums of their features."""
    digest = hashlib.sha256()
    for part in parts:
        for one in part.sets:
            digest.update("\0".join((*one.images, *one.captions)).encode())
            digest.update(one.image_of.tobytes())
        for store in part.stores:
            for known in store_marks(store):
                digest.update(known)
    return digest.hexdigest()


def store_marks(store: RegionStore) -> Iterator[bytes]:
    """Give what a store's regions are known again by: its own checksums of them."""
    for commit in store.commits:
        yield repr((commit.ids, sorted(commit.crc.items()))).encode()
    if store.head.external and len(store):  # no checksums there: look at some rows
        some = np.unique(np.linspace(0, len(store) - 1, LOOKED_AT).astype(np.int64))
        yield np.ascontiguousarray(store.features[some]).tobytes()


def parameters_of(module: torch.nn.Module) -> int:
    """Return how many numbers a module learns."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
