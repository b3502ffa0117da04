"""Any backbone of the transformers library, by folder or Hub id.

ResNet-152 at 448 x 448 gives DAN's 14 x 14 x 2048 grid (its res5c).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from crossgaze.errors import FileFormatError, InputError, MissingExtraError
from crossgaze.vision.backbones.base import IMAGENET_MEAN, IMAGENET_SCALE, Backbone, freeze

PROBE = 224  # pixels; to see the width and stride that a configuration does not state


class AutoBackbone(Backbone):
    """A `transformers` backbone's last feature map.

    Args:
        source: a folder with `config.json` and weights, or a Hub id.
    """

    def __init__(self, source: str) -> None:
        try:
            import transformers
        except ImportError:
            raise MissingExtraError(
                f"the backbone {source!r}", "transformers", "backbones"
            ) from None
        try:
            config = transformers.AutoConfig.from_pretrained(source)
            # transformers 5's AutoBackbone.from_pretrained asks the Hub even for a folder; its
            # class for this configuration does not.
            with torch.device("meta"):
                kind: Any = type(transformers.AutoBackbone.from_config(config))  # type: ignore[no-untyped-call]
            model = kind.from_pretrained(source, config=config)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            first = str(error).strip().splitlines()[0]
            raise InputError(f"backbone {source!r}: {first}") from None
        mean, scale = _preprocessing(source)
        with torch.inference_mode():
            probe = _last_map(model.eval(), torch.zeros(1, 3, PROBE, PROBE))
        super().__init__(
            f"transformers:{Path(source).name or source}",
            width=probe.shape[1],
            stride=PROBE // probe.shape[2],
            size=448,
            mean=mean,
            scale=scale,
        )
        self.model = model
        freeze(self)

    def features(self, x: Tensor) -> Tensor:
        """Map normalised pixels (B, 3, H, W) to the last map, (B, width, h, w)."""
        return _last_map(self.model, x)


def _last_map(model: Any, x: Tensor) -> Tensor:  # noqa: ANN401 (transformers' own type)
    maps: Sequence[Tensor] = model(x).feature_maps
    return maps[-1]


def _preprocessing(source: str) -> tuple[Sequence[float], Sequence[float]]:
    """Return the mean and scale (of pixels 0 to 255) that the model's own files state."""
    path = Path(source) / "preprocessor_config.json"
    if not Path(source).is_dir():
        from huggingface_hub import hf_hub_download

        try:
            path = Path(hf_hub_download(source, "preprocessor_config.json"))
        except (OSError, ValueError):
            return IMAGENET_MEAN, IMAGENET_SCALE
    if not path.is_file():
        return IMAGENET_MEAN, IMAGENET_SCALE
    try:
        raw = json.loads(path.read_text("utf-8"))
        factor = float(raw.get("rescale_factor", 1 / 255))
        mean = [float(value) / factor for value in raw["image_mean"]]
        scale = [float(value) / factor for value in raw["image_std"]]
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise FileFormatError(path, f"does not state image_mean and image_std: {error!r}") from None
    if len(mean) != 3 or len(scale) != 3:
        raise FileFormatError(path, f"states {len(mean)} means and {len(scale)} deviations, not 3")
    return mean, scale
