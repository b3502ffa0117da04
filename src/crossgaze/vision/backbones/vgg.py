"""VGG-19 up to pool5, from a weights file, as DAN (section 4.1) uses it.

K. Simonyan and A. Zisserman. Very Deep Convolutional Networks for Large-Scale Image Recognition.
ICLR 2015. At 448 x 448 pool5 is 14 x 14 x 512: DAN's 196 region vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from crossgaze.errors import FileFormatError, require_file
from crossgaze.vision.backbones.base import (
    IMAGENET_MEAN,
    IMAGENET_SCALE,
    Backbone,
    freeze,
    read_weights,
)

# Channels of the convolutions of each block; a 2x2 maximum ends each.
BLOCKS = ((64, 64), (128, 128), (256,) * 4, (512,) * 4, (512,) * 4)
CAFFE_MEAN_BGR = (103.939, 116.779, 123.68)


class Vgg19(Backbone):
    """VGG-19's convolutions: stride 32, 512 channels.

    Args:
        weights: a PyTorch or safetensors file, in one of two layouts: torchvision's
            (`features.0.weight`, RGB scaled by ImageNet's mean and deviation) or the original
            Caffe model's (`conv1_1.weight`, BGR less its mean), which DAN used.
    """

    def __init__(self, weights: str | Path) -> None:
        path = require_file(weights, "VGG-19's weights (.pth, .pt or .safetensors)")
        state = read_weights(path)
        caffe = "conv1_1.weight" in state
        mean, scale = (CAFFE_MEAN_BGR, (1.0,) * 3) if caffe else (IMAGENET_MEAN, IMAGENET_SCALE)
        super().__init__("vgg19", width=512, stride=32, mean=mean, scale=scale, bgr=caffe)
        layers: list[nn.Module] = []
        channels = 3
        for number, block in enumerate(BLOCKS, 1):
            for place, out in enumerate(block, 1):
                key = f"conv{number}_{place}" if caffe else f"features.{len(layers)}"
                layers += [_convolution(path, state, key, channels, out), nn.ReLU(inplace=True)]
                channels = out
            layers.append(nn.MaxPool2d(2))
        self.layers = nn.Sequential(*layers)
        freeze(self)

    def features(self, x: Tensor) -> Tensor:
        """Map normalised pixels (B, 3, H, W) to pool5, (B, 512, H // 32, W // 32)."""
        out: Tensor = self.layers(x)
        return out


def _convolution(
    path: Path, state: Mapping[str, Tensor], key: str, wide: int, out: int
) -> nn.Conv2d:
    layer = nn.Conv2d(wide, out, 3, padding=1)
    for part, own in (("weight", layer.weight), ("bias", layer.bias)):
        assert own is not None
        given = state.get(f"{key}.{part}")
        if given is None:
            raise FileFormatError(path, f"has no {key}.{part}: not VGG-19's weights")
        if given.shape != own.shape:
            raise FileFormatError(
                path, f"{key}.{part} has shape {tuple(given.shape)}, wanted {tuple(own.shape)}"
            )
        own.data.copy_(given)
    return layer
