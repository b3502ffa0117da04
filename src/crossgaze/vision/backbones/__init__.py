"""Frozen networks that turn pixels into a map of features, one family a file."""

from __future__ import annotations

from pathlib import Path

from crossgaze.errors import InputError, nearest
from crossgaze.vision.backbones.base import Backbone

BUILT_IN = ("efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2", "vgg19")

__all__ = ["BUILT_IN", "Backbone", "load_backbone"]


def load_backbone(source: str, weights: str | Path | None = None) -> Backbone:
    """Load a backbone by name, folder or Hub id.

    Args:
        source: one of `BUILT_IN`, a folder of a `transformers` backbone, or its Hub id
            ("microsoft/resnet-152").
        weights: the weights file, for "vgg19" only.
    """
    if source == "vgg19":
        from crossgaze.vision.backbones.vgg import Vgg19

        if weights is None:
            raise InputError("backbone vgg19: needs its weights file (weights=vgg19.pth)")
        return Vgg19(weights)
    if weights is not None:
        raise InputError(f"weights: only vgg19 takes a weights file, the backbone is {source!r}")
    if source in BUILT_IN:
        from crossgaze.vision.backbones.efficientnet_lite import EfficientNetLite

        return EfficientNetLite.pretrained(source)
    if Path(source).is_dir() or "/" in source:
        from crossgaze.vision.backbones.auto import AutoBackbone

        return AutoBackbone(source)
    raise InputError(
        f"backbone: unknown name {source!r}{nearest(source, BUILT_IN)}; wanted one of "
        f"{', '.join(BUILT_IN)}, a folder, or a Hub id such as microsoft/resnet-152"
    )
