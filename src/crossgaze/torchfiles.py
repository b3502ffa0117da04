"""PyTorch's files from anybody: no code in them is run, and none unpacks to more than it is.

torch's unpickler for weights builds tensors, plain values and the classes that are named here; but
it inflates compressed members of the zip, which `torch.save` never writes and a bomb has.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from crossgaze.errors import FileFormatError


def load_torch(path: Path, device: str | torch.device = "cpu", classes: Sequence[type] = ()) -> Any:  # noqa: ANN401 (a pickle holds anything)
    """Return what a file of `torch.save` holds.

    Args:
        path: the file.
        device: where tensors go.
        classes: that may be built beside tensors and plain values.

    Raises:
        FileFormatError: if it unpacks to more than it is.
        Exception: of many kinds, of torch, zip and pickle, on a file that is none or is damaged.
    """
    require_no_bomb(path)
    with torch.serialization.safe_globals(list(classes)):
        return torch.load(path, map_location=device, weights_only=True)


def require_no_bomb(path: Path) -> None:
    """Refuse a zip whose members are together larger than the file, before any is unpacked."""
    if not zipfile.is_zipfile(path):
        return  # the format of old versions, in which nothing is packed
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    size = path.stat().st_size
    if unpacked > size:
        raise FileFormatError(
            path, f"has {size:,} bytes and unpacks to {unpacked:,}; torch.save packs nothing"
        )
