"""What every backbone is: pixels in, a map of features out."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from crossgaze.errors import FileFormatError, require_file
from crossgaze.torchfiles import load_torch, named_tensors

B = TypeVar("B", bound="Backbone")


class Backbone(nn.Module, ABC):
    """A frozen convolutional network that turns pixels into a grid of features.

    Args:
        name: what a region store's head calls it.
        width: channels of the map, d.
        stride: pixels a cell of the map is wide.
        mean: subtracted from the pixels (0 to 255), for each channel.
        scale: divided by afterwards, for each channel.
        bgr: whether it was trained on blue, green, red.
        settings: whatever else decides what the features are, as text.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        name: str,
        *,
        width: int,
        stride: int,
        mean: Sequence[float],
        scale: Sequence[float],
        bgr: bool = False,
        settings: str = "",
    ) -> None:
        super().__init__()
        self.name, self.width, self.stride, self.bgr = name, width, stride, bgr
        self.settings = settings
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
        """Return a short hash of weights and preprocessing: others must not share a store."""
        digest = hashlib.sha256(f"{self.name} {self.bgr} {self.settings}".encode())
        for buffer in (self.mean, self.scale):
            digest.update(buffer.detach().cpu().numpy().tobytes())
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


def read_weights(path: Path) -> Mapping[str, Tensor]:
    """Read named tensors from a PyTorch or safetensors file; a pickle in it is never run."""
    require_file(path, "weights (.pth, .pt or .safetensors)")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state = load_file(path)
        else:
            state = load_torch(path)
    except FileFormatError:
        raise
    except Exception as error:  # noqa: BLE001 (each format raises its own family)
        # torch's own words end in the advice to load it unsafely: only the kind is passed on.
        reason = type(error).__name__
        raise FileFormatError(path, f"does not read as a weights file ({reason})") from None
    return named_tensors(path, state, "what it holds is")
