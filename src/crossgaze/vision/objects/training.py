"""Train the region network: frozen maps from a cache, resumable, a line of JSON an interval.

The first stage learns first, the second afterwards from what the first then gives, so that neither
bends the pyramid to its own ends.

An epoch shows every training photograph once, whole in odd epochs, mirrored and slightly cut in
even ones. After each the state is saved; a run that was stopped goes on after its last whole epoch
and gives the same weights as one that was not.
"""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from crossgaze.config import to_dict
from crossgaze.data.captions.flickr8k import read_flickr8k
from crossgaze.data.entities.archive import Entities
from crossgaze.errors import InputError
from crossgaze.evaluation.coverage import Annotated, annotated
from crossgaze.vision.backbones.efficientnet_lite import EfficientNetLite
from crossgaze.vision.objects.detector import ObjectDetector
from crossgaze.vision.objects.losses import judge_loss, proposal_loss, qualities
from crossgaze.vision.objects.network import NetworkConfig, RegionNetwork
from crossgaze.vision.objects.samples import View, read_views, second_views
from crossgaze.vision.objects.selection import SelectionConfig, fit_blend, fit_shared
from crossgaze.vision.objects.taps import TapCache, Taps, cache_taps
from crossgaze.vision.objects.targets import Target, targets
from crossgaze.vision.objects.words import Words, collect_words


@dataclass(frozen=True)
class TrainConfig:
    """How a region network is trained.

    Args:
        flickr8k: folder with the photographs, captions and lists of Flickr8k.
        entities: the zip or folder of Flickr30k Entities.
        out: where cache, state, log and weights go.
        network: its sizes; the numbers of nouns and attributes come from the phrases.
        selection: how the trained model chooses; what is fitted comes from the dev photographs.
        epochs: passes over the training photographs in which the first stage learns.
        rounds: parts of equal length that these fall into, in each of which the rate falls to 0.
        again: what a round's rate is multiplied by for the next.
        second: passes after them in which only the second stage learns.
        batch: photographs a step.
        rate: Adam's step at its largest; with each round it rises over 200 steps and falls to 0.
        decay: of the weights.
        first: best anchors that enter suppression in training.
        proposals: most that enter the second stage in training.
        least: phrases in which a noun or an attribute must occur.
        seed: of order, cuts, weights and dropout.
        device: where to train.
    """

    flickr8k: Path = Path("../shared/data/flickr8k")
    entities: Path = Path("../shared/data/flickr30k_entities")
    out: Path = Path("runs/regions-objects")
    network: NetworkConfig = field(default_factory=NetworkConfig)
    selection: SelectionConfig = field(default_factory=lambda: SelectionConfig(mirror=True))
    epochs: int = 8
    rounds: int = 2
    again: float = 0.6
    second: int = 4
    batch: int = 8
    rate: float = 1e-3
    decay: float = 0.02
    first: int = 1000
    proposals: int = 128
    least: int = 20
    seed: int = 0
    device: str = "cpu"


SECOND = ("from_", "trunk", "refine", "quality", "nouns", "attributes")  # parts of stage 2
LOSS_WEIGHTS = {
    "objectness": 1.0,
    "proposal box": 8.0,
    "quality": 4.0,
    "box": 8.0,
    "noun": 1.0,
    "attribute": 0.5,
}


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
    run = _Run(config, model, words, taps, parts)
    run.resume()
    while run.epoch < config.epochs + config.second:
        run.one_epoch(on_progress)
    return model.eval()


def finish(config: TrainConfig, model: RegionNetwork) -> ObjectDetector:
    """Fit what the choice needs on the dev photographs and put the parts together.

    Args:
        config: of the training.
        model: what `train` gave.
    """
    _, words = read_split(config.flickr8k, config.entities, "train", config.least)
    split, _ = read_split(config.flickr8k, config.entities, "dev")
    detector = ObjectDetector(EfficientNetLite.pretrained(), model, words).to(config.device)
    views = [View(image) for image in split.images]
    pixels = read_views(views, config.flickr8k / "images", config.network.size)
    place, stamp = config.out / "taps", views_stamp(views, config.network.size)
    cache = cache_taps(detector.taps, pixels, len(views), place / "dev0", stamp=stamp)
    other = None
    if config.selection.mirror:
        turned = [View(image, mirror=True) for image in split.images]
        pixels = read_views(turned, config.flickr8k / "images", config.network.size)
        stamp = views_stamp(turned, config.network.size)
        other = cache_taps(detector.taps, pixels, len(views), place / "dev1", stamp=stamp)
    device = torch.device(config.device)
    wanted = targets(split.wanted, views, words)
    boxes, things, known, truth = [], [], [], []
    for row, target in enumerate(wanted):
        with torch.inference_mode():
            mirrored = None if other is None else other.batch([row], device)
            found = detector.candidates(cache.batch([row], device), mirrored)
            real = found.valid[0]
            boxes.append(found.boxes[0][real].cpu())
            things.append(target.boxes[: target.own])
            truth.append(qualities(boxes[-1], target))
            known.append(found.known[0][real].cpu())
    half, most = (fit_shared(boxes, things, t) for t in (0.5, 0.7))
    blend = fit_blend(torch.cat(known).clone(), torch.cat(truth).clone())
    chosen = replace(config.selection, shared_50=half, shared_70=most, blend=blend)
    detector.selection = chosen
    return detector


def standardise(model: RegionNetwork, maps: Sequence[Tensor]) -> None:
    """Set the means and deviations of the backbone's channels from some photographs' maps."""
    for number, level in enumerate(maps):
        model.get_buffer(f"mean{number}").copy_(level.mean((0, 2, 3)))
        model.get_buffer(f"scale{number}").copy_(level.std((0, 2, 3)) + 1e-3)


class _Run:
    """A training run's state between epochs."""

    def __init__(
        self,
        config: TrainConfig,
        model: RegionNetwork,
        words: Words,
        taps: Taps,
        parts: list[tuple[TapCache, list[Target]]],
    ) -> None:
        self.config, self.model, self.words, self.taps, self.parts = (
            config, model, words, taps, parts,
        )  # fmt: skip
        self.epoch = 0
        self.device = torch.device(config.device)
        self.per_epoch = math.ceil(len(parts[0][1]) / config.batch)
        self.log = config.out / "log.jsonl"
        if not config.rounds or config.epochs % config.rounds:
            raise InputError(
                f"rounds: got {config.rounds} for {config.epochs} epochs, wanted a number that "
                "divides them"
            )
        self._begin_round()

    @property
    def round(self) -> tuple[int, int]:
        """The number of the round and the epoch within it; the second stage is the last round."""
        config = self.config
        each = config.epochs // config.rounds
        if self.epoch >= config.epochs:
            return config.rounds, self.epoch - config.epochs
        return self.epoch // each, self.epoch % each

    def _begin_round(self) -> None:
        """Let the parameters of the stage whose turn it is learn, with rates from their start."""
        config, (number, _) = self.config, self.round
        second = number == config.rounds
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(name.startswith(SECOND) == second)
        learning = [p for p in self.model.parameters() if p.requires_grad]
        steps = self.per_epoch * (config.second if second else config.epochs // config.rounds)
        highest = config.rate * (1.0 if second else config.again**number)

        def rate(step: int) -> float:
            fall = 0.5 + 0.5 * math.cos(math.pi * min(step / max(steps, 1), 1))
            return min(1.0, (step + 1) / 200) * fall

        rates = torch.optim.lr_scheduler.LambdaLR
        self.optimizer = torch.optim.AdamW(learning, highest, weight_decay=config.decay)
        self.rates = rates(self.optimizer, rate)

    def resume(self) -> None:
        """Go on from the state in the run's folder, if there is one."""
        path = self.config.out / "state.pt"
        if not path.is_file():
            return
        state = torch.load(path, map_location=self.device, weights_only=True)
        wanted = json.dumps(to_dict(self.config), sort_keys=True)
        if state["config"] != wanted:
            raise InputError(f"{path}: is of a run with other settings; choose another out folder")
        self.model.load_state_dict(state["model"])
        self.epoch = state["epoch"]
        self._begin_round()
        if self.round[1]:  # else a round begins, with an optimiser of its own
            self.optimizer.load_state_dict(state["optimizer"])
            self.rates.load_state_dict(state["rates"])

    def save(self) -> None:
        """Write the state whole."""
        config = json.dumps(to_dict(self.config), sort_keys=True)
        state: dict[str, Any] = {"epoch": self.epoch, "config": config}
        for name in ("model", "optimizer", "rates"):
            state[name] = getattr(self, name).state_dict()
        fresh = self.config.out / "state.pt.new"
        torch.save(state, fresh)
        fresh.replace(self.config.out / "state.pt")

    def one_epoch(self, on_progress: Callable[[int, int], None]) -> None:
        """Show every photograph once."""
        config, began = self.config, time.perf_counter()
        cache, wanted = self.parts[self.epoch % len(self.parts)]
        number, place = self.round
        stage = 2 if number == config.rounds else 1  # a round repeats the orders of the first
        torch.manual_seed(config.seed * 1000 + stage * 100 + place)
        order = torch.randperm(len(wanted)).tolist()
        self.model.train()
        sums: dict[str, float] = {}
        count = 0
        total = (config.epochs + config.second) * len(order)
        for start in range(0, len(order), config.batch):
            rows = order[start : start + config.batch]
            losses = self.step(cache, rows, wanted)
            for name, loss in losses.items():
                sums[name] = sums.get(name, 0.0) + loss.item()
            count += 1
            on_progress(self.epoch * len(order) + start + len(rows), total)
            if count % 100 == 0 or start + config.batch >= len(order):
                means = {name: round(value / count, 4) for name, value in sums.items()}
                self._note({"epoch": self.epoch + 1, "step": start // config.batch + 1, **means,
                            "seconds": round(time.perf_counter() - began, 1)})  # fmt: skip
                sums, count = {}, 0
        self.epoch += 1
        self.save()
        if not self.round[1]:
            self._begin_round()

    def step(
        self, cache: TapCache, rows: Sequence[int], wanted: Sequence[Target]
    ) -> dict[str, Tensor]:
        """One step of the stage whose turn it is; return the losses, detached."""
        mine = [wanted[row].to(self.device) for row in rows]
        maps = cache.batch(rows, self.device)
        if self.epoch < self.config.epochs:
            score, box = proposal_loss(self.model.guess(maps), self.model.anchors, mine)
            losses = {"objectness": score, "proposal box": box}
        else:
            losses = self._second_losses(maps, mine)
        loss = torch.stack([LOSS_WEIGHTS[name] * value for name, value in losses.items()]).sum()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.optimizer.param_groups[0]["params"], 10.0)
        self.optimizer.step()
        self.rates.step()
        return {name: value.detach() for name, value in losses.items()}

    def _second_losses(self, maps: tuple[Tensor, ...], mine: list[Target]) -> dict[str, Tensor]:
        config = self.config
        with torch.no_grad():
            head = self.taps.head(maps[-1])
            found = self.model.propose(maps, first=config.first, proposals=config.proposals)
        whole = found.boxes.new_tensor([0.0, 0, 1, 1]).expand(len(mine), 1, 4)
        boxes = torch.cat([found.boxes, whole], 1)
        valid = torch.cat([found.valid, found.valid.new_ones(len(mine), 1)], 1)
        judged = self.model.judge(found.finest, head, boxes)
        return judge_loss(judged, boxes, valid, mine)

    def _note(self, line: dict[str, Any]) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
