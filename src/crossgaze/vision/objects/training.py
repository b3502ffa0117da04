"""Train the region network: frozen maps from a cache, resumable, a line of JSON an interval.

The first stage learns first, the second afterwards from what the first then gives, so that neither
bends the pyramid to its own ends.

An epoch shows every training photograph once, whole in odd epochs, mirrored and slightly cut in
even ones. After each the state is saved; a run that was stopped goes on after its last whole epoch
and gives the same weights as one that was not.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from crossgaze.data.captions.flickr8k import read_flickr8k
from crossgaze.data.entities.archive import Entities
from crossgaze.errors import InputError
from crossgaze.evaluation.coverage import Annotated, annotated
from crossgaze.vision.backbones.efficientnet_lite import EfficientNetLite
from crossgaze.vision.objects.network import RegionNetwork
from crossgaze.vision.objects.run import Run
from crossgaze.vision.objects.samples import View, read_views, second_views
from crossgaze.vision.objects.taps import TapCache, Taps, cache_taps
from crossgaze.vision.objects.targets import targets
from crossgaze.vision.objects.train_config import TrainConfig
from crossgaze.vision.objects.words import Words, collect_words


@dataclass(frozen=True, eq=False)
class Split:
    """The annotated photographs of one of Flickr8k's splits."""

    images: tuple[str, ...]
    wanted: tuple[Annotated, ...]


def read_split(flickr8k: Path, entities: Path, name: str, least: int = 20) -> tuple[Split, Words]:
    """Return a split's annotated photographs, and the words that `least` of its phrases use."""
    known = Entities.open(entities)
    names = read_flickr8k(flickr8k).split(name).images
    images = [image for image in names if image.partition("_")[0] in known]
    if not images:
        raise InputError(f"{entities}: annotates none of the {len(names):,} {name} images")
    found = [known[image.partition("_")[0]] for image in images]
    wanted = tuple(annotated(image) for image in found)
    return Split(tuple(images), wanted), collect_words(found, least)


def caches(config: TrainConfig, images: Sequence[str], taps: Taps) -> list[tuple[list[View], Path]]:
    """Compute what is missing of the two caches of training maps; return views and folders."""
    folder = config.flickr8k / "images"
    out = []
    for number, views in enumerate(
        ([View(image) for image in images], second_views(images, config.seed))
    ):
        place = config.out / "taps" / f"train{number}"
        size = config.network.size
        stamp = views_stamp(views, size)
        cache_taps(taps, read_views(views, folder, size), len(views), place, stamp=stamp)
        out.append((views, place))
    return out


def views_stamp(views: Sequence[View], size: int) -> str:
    """Return a short text that differs where views or their size do."""
    return f"{zlib.crc32(repr((size, list(views))).encode()):08x}"


def train(
    config: TrainConfig, *, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> RegionNetwork:
    """Train, or go on with a run that was stopped; its state goes to `out/state.pt`.

    Args:
        config: everything.
        on_progress: called with (done, total) photographs.
    """
    split, words = read_split(config.flickr8k, config.entities, "train", config.least)
    device = torch.device(config.device)
    taps = Taps(EfficientNetLite.pretrained()).to(device)
    shown = caches(config, split.images, taps)
    parts = [
        (TapCache.open(folder), targets(split.wanted, views, words)) for views, folder in shown
    ]
    torch.manual_seed(config.seed)
    nouns, attributes = len(words.nouns), len(words.attributes)
    model = RegionNetwork(replace(config.network, nouns=nouns, attributes=attributes))
    standardise(model, parts[0][0].batch(range(0, len(parts[0][0]), 24), torch.device("cpu")))
    model.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    run = Run(config, model, taps, parts)
    run.resume()
    while run.epoch < config.epochs + config.second:
        run.one_epoch(on_progress)
    return model.eval()


def standardise(model: RegionNetwork, maps: Sequence[Tensor]) -> None:
    """Set the means and deviations of the backbone's channels from some photographs' maps."""
    for number, level in enumerate(maps):
        model.get_buffer(f"mean{number}").copy_(level.mean((0, 2, 3)))
        model.get_buffer(f"scale{number}").copy_(level.std((0, 2, 3)) + 1e-3)
