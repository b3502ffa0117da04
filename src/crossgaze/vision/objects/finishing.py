"""Put a trained region network together: what its choice needs is fitted on photographs apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from crossgaze.evaluation.coverage import Annotated
from crossgaze.vision.backbones.efficientnet_lite import EfficientNetLite
from crossgaze.vision.objects.detector import ObjectDetector
from crossgaze.vision.objects.losses import qualities
from crossgaze.vision.objects.network import RegionNetwork
from crossgaze.vision.objects.samples import View, read_views
from crossgaze.vision.objects.selection import SelectionConfig, fit_blend, fit_shared
from crossgaze.vision.objects.taps import TapCache, cache_taps
from crossgaze.vision.objects.targets import targets
from crossgaze.vision.objects.train_config import TrainConfig
from crossgaze.vision.objects.training import read_split, views_stamp


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of a photograph's candidates, and what is true of them.

    Args:
        wanted: the photograph's annotations.
        boxes: (n, 4) of the candidates.
        known: (n, 11), their `evidence`.
        truth: (n, 3), what their qualities should be.
        things: (m, 4) annotated boxes.
    """

    wanted: Annotated
    boxes: Tensor
    known: Tensor
    truth: Tensor
    things: Tensor


def finish(config: TrainConfig, model: RegionNetwork) -> ObjectDetector:
    """Fit what the choice needs on the dev photographs and put the parts together.

    Args:
        config: of the training.
        model: what `train` gave.
    """
    detector = unfitted(config, model)
    detector.selection = fit(know_dev(config, detector), config.selection)
    return detector


def unfitted(config: TrainConfig, model: RegionNetwork) -> ObjectDetector:
    """Return backbone, network and words together, with nothing fitted."""
    _, words = read_split(config.flickr8k, config.entities, "train", config.least)
    return ObjectDetector(EfficientNetLite.pretrained(), model, words).to(config.device)


def know_dev(config: TrainConfig, detector: ObjectDetector) -> list[Known]:
    """Return the candidates of every annotated dev photograph; their maps are kept in the run."""
    split, _ = read_split(config.flickr8k, config.entities, "dev")
    views = [View(image) for image in split.images]
    plain = _maps(config, detector, views, "dev0")
    other = None
    if config.selection.mirror:
        other = _maps(config, detector, [View(name, mirror=True) for name in split.images], "dev1")
    device = torch.device(config.device)
    wanted = targets(split.wanted, views, detector.words)
    out = []
    for row, (target, asked) in enumerate(zip(wanted, split.wanted, strict=True)):
        with torch.inference_mode():
            mirrored = None if other is None else other.batch([row], device)
            found = detector.candidates(plain.batch([row], device), mirrored)
            real = found.valid[0]
            boxes, known = found.boxes[0][real].cpu(), found.known[0][real].cpu()
            truth, things = qualities(boxes, target), target.boxes[: target.own]
        out.append(Known(asked, boxes, known, truth, things))
    return out


def _maps(
    config: TrainConfig, detector: ObjectDetector, views: Sequence[View], name: str
) -> TapCache:
    size = config.network.size
    pixels = read_views(views, config.flickr8k / "images", size)
    place, stamp = config.out / "taps" / name, views_stamp(views, size)
    return cache_taps(detector.taps, pixels, len(views), place, stamp=stamp)


def fit(dev: Iterable[Known], selection: SelectionConfig) -> SelectionConfig:
    """Return a choice with the curves and the blend that fit these photographs."""
    dev = list(dev)
    boxes, things = [one.boxes for one in dev], [one.things for one in dev]
    half, most = (fit_shared(boxes, things, t) for t in (0.5, 0.7))
    known, truth = (torch.cat([getattr(one, part) for one in dev]) for part in ("known", "truth"))
    blend = fit_blend(known.clone(), truth.clone())
    return replace(selection, shared_50=half, shared_70=most, blend=blend)
