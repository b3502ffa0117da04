"""What every backbone is: pixels in, a map of features out."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

B = TypeVar("B", bound="Backbone")


class Backbone(nn.Module, ABC):
    """A frozen convolutional network that turns pixels into a grid of features.

    Args:
        name: what a region store's head calls it.
        width: channels of the map, d.
        stride: pixels a cell of the map is wide.
        size: the input size it was made for, where one must be chosen.
        mean: subtracted from the pixels (0 to 255), for each channel.
        scale: divided by afterwards, for each channel.
        bgr: whether it was trained on blue, green, red.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        name: str,
        *,
        width: int,
        stride: int,
        size: int,
        mean: Sequence[float],
        scale: Sequence[float],
        bgr: bool = False,
    ) -> None:
        super().__init__()
        self.name, self.width, self.stride, self.size, self.bgr = name, width, stride, size, bgr
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("scale", torch.tensor(scale).view(1, 3, 1, 1), persistent=False)

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """Map normalised pixels (B, 3, H, W) to features (B, width, h, w)."""

    def forward(self, pixels: Tensor) -> Tensor:
        """Map RGB bytes to features.

        Args:
            pixels: (B, H, W, 3) uint8, as a photograph is read.

        Returns:
            (B, width, h, w) float.
        """
        x = pixels.permute(0, 3, 1, 2)  # (B, 3, H, W), already channels_last in memory
        if self.bgr:
            x = x.flip(1)
        return self.features((x.to(self.mean.dtype) - self.mean) / self.scale)

    def fingerprint(self) -> str:
        """Return a short hash of the weights: regions of other weights must not be mixed."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]


IMAGENET_MEAN = (0.485 * 255, 0.456 * 255, 0.406 * 255)
IMAGENET_SCALE = (0.229 * 255, 0.224 * 255, 0.225 * 255)


def freeze(model: B) -> B:
    """Return the model in evaluation mode, without gradients, laid out for fast convolutions."""
    model.eval().requires_grad_(False)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model
