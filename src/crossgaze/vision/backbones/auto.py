"""Any backbone of the transformers library, by folder or Hub id.

ResNet-152 at 448 x 448 gives DAN's 14 x 14 x 2048 grid (its res5c).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from reprlib import repr as shown
from typing import Any

import torch
from torch import Tensor

from crossgaze.data.textfiles import parse_head
from crossgaze.errors import FileFormatError, InputError, MissingExtraError
from crossgaze.vision.backbones.base import IMAGENET_MEAN, IMAGENET_SCALE, Backbone, freeze

PROBE = 224  # pixels; to see the width and stride that a configuration does not state
LARGEST = 1e6  # of a mean or deviation of pixels; far more would be infinite in half the digits
# What Python raises on JSON that states something else.
WRONG = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)


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
        model = _load(transformers, source)
        mean, scale = read_preprocessing(source)
        try:
            with torch.inference_mode():
                probe = _last_map(model, torch.zeros(1, 3, PROBE, PROBE))
        except (RuntimeError, ValueError, TypeError) as error:
            first = str(error).strip().splitlines()[0]
            raise InputError(f"backbone {source!r}: takes no RGB photograph: {first}") from None
        super().__init__(
            f"transformers:{Path(source).name or source}",
            width=probe.shape[1],
            stride=PROBE // probe.shape[2],
            mean=mean,
            scale=scale,
            settings=model.config.to_json_string(),
        )
        self.model = model
        freeze(self)

    def features(self, x: Tensor) -> Tensor:
        """Map normalised pixels (B, 3, H, W) to the last map, (B, width, h, w)."""
        return _last_map(self.model, x)


def _load(transformers: Any, source: str) -> Any:  # noqa: ANN401 (an optional package's own types)
    """Load the backbone and all of its weights; code that a folder brings along is never run."""
    if not Path(source).is_dir() and source.startswith((".", "/", "~")):
        raise InputError(f"backbone {source!r}: no such folder")
    bars = transformers.utils.logging.is_progress_bar_enabled()
    level = transformers.utils.logging.get_verbosity()
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    try:
        config = transformers.AutoConfig.from_pretrained(source, trust_remote_code=False)
        # transformers 5's AutoBackbone.from_pretrained asks the Hub even for a folder; its class
        # for this configuration does not.
        with torch.device("meta"):
            made = transformers.AutoBackbone.from_config(config, trust_remote_code=False)
        model, info = type(made).from_pretrained(source, config=config, output_loading_info=True)
    except Exception as error:  # noqa: BLE001 (configuration, weights and Hub each raise their own)
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"backbone {source!r}: {first}") from None
    finally:
        transformers.utils.logging.set_verbosity(level)
        if bars:
            transformers.utils.logging.enable_progress_bar()
    # Norms of the stages that are given out are new in some backbones, and start as ones and zeros.
    missing = [key for key in info["missing_keys"] if not key.startswith("hidden_states_norms")]
    if missing:
        raise InputError(
            f"backbone {source!r}: its weights lack {len(missing)} tensors, the first is "
            f"{sorted(missing)[0]!r}"
        )
    return model.float().eval()


def _last_map(model: Any, x: Tensor) -> Tensor:  # noqa: ANN401 (transformers' own type)
    maps: Sequence[Tensor] = model(x).feature_maps
    return maps[-1]


def read_preprocessing(source: str) -> tuple[Sequence[float], Sequence[float]]:
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
        raw = parse_head(path, "the preprocessing of a backbone")
        factor = float(raw.get("rescale_factor", 1 / 255)) if raw.get("do_rescale", True) else 1.0
        plain = not raw.get("do_normalize", True)
        mean = [float(value) / factor for value in ([0] * 3 if plain else raw["image_mean"])]
        scale = [float(value) / factor for value in ([1] * 3 if plain else raw["image_std"])]
    except WRONG as error:
        raise FileFormatError(path, f"does not state image_mean and image_std: {error!r}") from None
    usable = all(abs(value) < LARGEST for value in mean)
    usable &= all(1 / LARGEST < value < LARGEST for value in scale)
    if len(mean) != 3 or len(scale) != 3 or not usable:
        raise FileFormatError(
            path,
            f"states the means {shown(mean)} and deviations {shown(scale)}, wanted 3 each",
        )
    return mean, scale
