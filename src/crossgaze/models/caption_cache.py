"""What a frozen BERT gave for captions, kept: in main memory, and on disk for other runs."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from crossgaze.torchfiles import save_tensors


class CaptionCache:
    """The last used captions' features, at most `limit` of them; threads may share it.

    A copy of it (of the model, or in another process) starts empty.

    Args:
        limit: how many captions are kept; 0 keeps none.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._parts: OrderedDict[bytes, Tensor] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._parts)

    def __contains__(self, key: object) -> bool:
        return key in self._parts

    def __reduce__(self) -> tuple[object, ...]:
        return CaptionCache, (self.limit,)

    def get(self, key: bytes) -> Tensor | None:
        """Return what is kept of a caption, which is now the last used, or None."""
        with self._lock:
            if key not in self._parts:
                return None
            self._parts.move_to_end(key)
            return self._parts[key]

    def put(self, key: bytes, part: Tensor) -> None:
        """Keep a caption's features, (n, hidden), and drop what was not used for longest."""
        with self._lock:
            self._parts[key] = part
            self._parts.move_to_end(key)
            while len(self._parts) > self.limit:
                self._parts.popitem(last=False)

    def shrink(self, limit: int) -> None:
        """Keep at most `limit` captions from now on, or fewer where fewer were the limit."""
        with self._lock:
            self.limit = min(self.limit, limit)
            while len(self._parts) > self.limit:
                self._parts.popitem(last=False)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._parts.clear()


def cache_file(folder: Path, bert: nn.Module, rows: Sequence[Sequence[int]]) -> Path:
    """Return where these captions' features are kept: a name that differs with BERT and captions.

    Args:
        folder: of all such files.
        bert: whose weights count.
        rows: the numbers of each caption's word pieces.
    """
    digest = hashlib.sha256()
    for name, part in bert.state_dict().items():
        digest.update(f"{name} {part.dtype}".encode())
        digest.update(part.detach().cpu().contiguous().view(torch.uint8).numpy())
    for row in rows:
        digest.update(np.asarray([len(row), *row], np.int32).tobytes())
    return folder / f"words-{digest.hexdigest()[:20]}.safetensors"


def read_cache(path: Path, rows: Sequence[Sequence[int]], hidden: int) -> list[Tensor] | None:
    """Return each caption's features, (n, hidden), or None where they are not kept whole."""
    try:
        found = load_file(path).get("features") if path.is_file() else None
    except (SafetensorError, OSError):
        return None
    lengths = [len(row) for row in rows]
    if found is None or tuple(found.shape) != (sum(lengths), hidden):
        return None
    return list(torch.split(found, lengths))


def write_cache(path: Path, parts: Sequence[Tensor | None]) -> None:
    """Write captions' features, whole or not at all; nothing where the cache has dropped some."""
    there = [part for part in parts if part is not None]
    if len(there) < len(parts) or not there:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        save_tensors(fresh, {"features": torch.cat(there)})
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
