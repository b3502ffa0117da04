"""How a region network is trained: a recipe's keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from crossgaze.vision.objects.network import NetworkConfig
from crossgaze.vision.objects.selection import SelectionConfig


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
