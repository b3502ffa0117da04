"""From settings to the source of regions that they ask for."""

from __future__ import annotations

import torch

from crossgaze.errors import InputError
from crossgaze.vision.backbones import Backbone, load_backbone
from crossgaze.vision.objects.detector import load_detector
from crossgaze.vision.settings import ExtractConfig
from crossgaze.vision.sources.base import RegionSource
from crossgaze.vision.sources.geometry import WithGeometry
from crossgaze.vision.sources.given import GivenBoxes
from crossgaze.vision.sources.grid import GridSource
from crossgaze.vision.sources.objects import BoxSource, ObjectSource
from crossgaze.vision.sources.selective import SelectiveSearch


def make_source(
    config: ExtractConfig,
    device: torch.device,
    *,
    backbone: Backbone | None = None,
    given: GivenBoxes | None = None,
) -> RegionSource:
    """Load what makes the regions that a configuration asks for.

    Args:
        config: the configuration.
        device: where it computes.
        backbone: a loaded backbone for a grid, instead of loading what `config` names.
        given: the boxes of `config.boxes`.
    """
    source = _source(config, device, backbone, given)
    return WithGeometry(source) if config.geometry else source


def _source(
    config: ExtractConfig,
    device: torch.device,
    backbone: Backbone | None,
    given: GivenBoxes | None,
) -> RegionSource:
    batch, whole = config.batch or default_batch(device), config.with_whole
    if backbone is not None and config.regions != "grid":
        raise InputError(f"backbone: is a grid's, and regions = {config.regions!r}")
    if config.regions == "grid":
        model = (backbone or load_backbone(config.backbone, config.weights)).to(device).eval()
        return GridSource(model, config.grid, config.size, batch, whole=whole)
    if config.regions == "selective-search":
        search = SelectiveSearch()  # says what it needs before anything is loaded
        detector = load_detector(config.detector, device=device)
        made_by = {"regions": "selective-search"}
        return BoxSource(detector, search, search.regions, made_by, batch, whole=whole)
    detector = load_detector(config.detector, device=device)
    if given is not None:
        made_by = {"regions": "given boxes", "boxes": given.fingerprint}
        confidence = given.confidence if given.scored else None
        return BoxSource(
            detector, given, given.regions, made_by, batch, whole=whole, confidence=confidence
        )
    return ObjectSource(detector, batch, whole=whole)


def default_batch(device: torch.device) -> int:
    """Return how many photographs a forward pass takes best."""
    return 2 if device.type == "cpu" else 32
