"""The frozen backbone at three levels: EfficientNet-Lite2 after its blocks 6, 14 and 20.

At 320 pixels the maps have strides 8, 16 and 32 and 48, 120 and 352 channels. Nothing in the
backbone is ever trained, so the maps of a training photograph are computed once and kept on disk
(`cache_taps`), 16-bit and channels last; a step of training then costs the small heads only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from crossgaze.errors import FileFormatError
from crossgaze.vision.backbones.efficientnet_lite import EfficientNetLite

BLOCKS = (6, 14, 20)
CHANNELS = (48, 120, 352)
STRIDES = (8, 16, 32)


class Taps(nn.Module):
    """EfficientNet-Lite2 up to its last block, giving the maps after `BLOCKS`."""

    def __init__(self, backbone: EfficientNetLite) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, pixels: Tensor) -> tuple[Tensor, ...]:
        """Map RGB bytes (B, H, W, 3) to maps (B, C_l, H / s_l, W / s_l), finest first."""
        net = self.backbone
        x = pixels.permute(0, 3, 1, 2).to(net.mean.dtype)  # (B, 3, H, W)
        x = F.relu6(net.stem((x - net.mean) / net.scale), inplace=True)
        maps = []
        for number, block in enumerate(net.blocks):
            x = block(x)
            if number in BLOCKS:
                maps.append(x)
        return tuple(maps)

    def head(self, last: Tensor) -> Tensor:
        """Map the last level (B, 352, h, w) to ImageNet's feature map (B, 1280, h, w)."""
        return F.relu6(self.backbone.head(last))


@dataclass(frozen=True, eq=False)
class TapCache:
    """Maps of n views on disk: one array a level, (n, h_l, w_l, C_l) float16, memory-mapped."""

    levels: tuple[npt.NDArray[np.float16], ...]

    def __len__(self) -> int:
        return len(self.levels[0])

    @classmethod
    def open(cls, folder: Path) -> TapCache:
        """Open a folder that `cache_taps` has filled to its end."""
        if not (folder / "done").is_file():
            raise FileFormatError(folder, "holds no finished cache of feature maps")
        return cls(tuple(np.load(folder / f"level{n}.npy", mmap_mode="r") for n in range(3)))

    def batch(self, rows: Sequence[int], device: torch.device) -> tuple[Tensor, ...]:
        """Return the maps of some views, (B, C_l, h_l, w_l) float32 in channels_last."""
        found = [torch.from_numpy(level[list(rows)]).to(device) for level in self.levels]
        return tuple(level.float().permute(0, 3, 1, 2) for level in found)


@torch.inference_mode()
def cache_taps(
    taps: Taps,
    views: Iterable[npt.NDArray[np.uint8]],
    count: int,
    folder: Path,
    *,
    batch: int = 2,
    stamp: str = "",
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> TapCache:
    """Write the maps of `count` views (each (S, S, 3) uint8) to a folder; a finished one is kept.

    Args:
        taps: the frozen network.
        views: photographs as they enter the network, all of one size.
        count: how many.
        folder: made if needed.
        batch: views at once.
        stamp: of what the views are; a cache with another one is made anew.
        on_progress: called with (done, total).
    """
    folder.mkdir(parents=True, exist_ok=True)
    done_with, mark = folder / "done", f"{count} {stamp}".strip() + "\n"
    if done_with.is_file() and done_with.read_text("utf-8") == mark:
        return TapCache.open(folder)
    done_with.unlink(missing_ok=True)
    files: list[np.memmap[Any, np.dtype[np.float16]]] = []
    waiting: list[npt.NDArray[np.uint8]] = []
    done = 0

    def flush() -> None:
        nonlocal done
        pixels = torch.from_numpy(np.stack(waiting)).to(taps.backbone.mean.device)
        maps = [m.permute(0, 2, 3, 1).half().cpu().numpy() for m in taps(pixels)]  # (B, h, w, C)
        if not files:
            for number, level in enumerate(maps):
                shape = (count, *level.shape[1:])
                path = folder / f"level{number}.npy"
                files.append(np.lib.format.open_memmap(path, "w+", np.float16, shape))
        for file, level in zip(files, maps, strict=True):
            file[done : done + len(level)] = level
        done += len(waiting)
        waiting.clear()
        on_progress(done, count)

    for view in views:
        waiting.append(view)
        if len(waiting) == batch:
            flush()
    if waiting:
        flush()
    for file in files:
        file.flush()
    done_with.write_text(mark, "utf-8")
    return TapCache.open(folder)
