"""A split of a `*_precomp` folder as a region store, mapped where it lies; nothing is written."""

from __future__ import annotations

from pathlib import Path

from crossgaze.data.captions.precomp import precomp_layout, read_precomp
from crossgaze.data.regions.import_npy import mapped_head
from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import InputError


def is_precomp(folder: Path) -> bool:
    """Whether a folder has features as `*_ims.npy`, and is no region store."""
    return not (folder / "head.json").exists() and any(folder.glob("*_ims.npy"))


def open_precomp(folder: str | Path, split: str) -> RegionStore:
    r"""Return the features of one split, under the ids that `read_precomp` gives.

    Args:
        folder: a folder such as f30k_precomp.
        split: "train", "dev", "test" or "testall".

    Example:
        >>> import numpy as np
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> _ = (folder / "dev_caps.txt").write_text("a cat\n" * 10)
        >>> np.save(folder / "dev_ims.npy", np.ones((2, 36, 8), np.float32))
        >>> open_precomp(folder, "dev").read(["dev/1"]).features.shape
        (1, 36, 8)
    """
    layout = precomp_layout(folder, split)
    if layout.features is None:
        raise InputError(f"{folder}: has no {split}_ims.npy, only captions")
    head = mapped_head(layout.features, layout.row_step)
    if head is None:
        raise InputError(
            f"{layout.features}: holds {layout.dtype}, or not row by row, and cannot be mapped; "
            "wanted float16 or float32 (crossgaze store import makes a copy)"
        )
    return RegionStore.of(Path(folder), head, read_precomp(folder, splits=split).images)
