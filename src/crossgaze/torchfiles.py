"""Tensors in files: read from anybody, and written so that a full disk is called a full disk.

torch's unpickler for weights builds tensors, plain values and the classes that are named here, and
runs nothing; but it inflates compressed members of the zip, which `torch.save` never writes and a
bomb has, and it does not look at the checksums that `torch.save` wrote. What is a zip is told here
as torch tells it, by the first bytes: `zipfile` looks for the end of one, and a file on which the
two disagree would be checked as none and read as one. What is in it is read from the list of
members that both take (`zips.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor

from crossgaze.errors import FileFormatError
from crossgaze.files import write_atomically
from crossgaze.zips import PLAIN, open_zip

# What the numbers of weights are; an optimiser's steps and a normalisation's count are whole.
NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64)
ZIP = b"PK\x03\x04"  # how a file begins that torch reads as a zip


def load_torch(path: Path, device: str | torch.device = "cpu", classes: Sequence[type] = ()) -> Any:  # noqa: ANN401 (a pickle holds anything)
    """Return what a file of `torch.save` holds.

    Args:
        path: the file.
        device: where tensors go.
        classes: that may be built beside tensors and plain values.

    Raises:
        FileFormatError: if it unpacks to more than it is, or a part is not what its checksum says.
        Exception: of many kinds, of torch, zip and pickle, on a file that is none or is damaged.
    """
    require_sound(path)
    with torch.serialization.safe_globals(list(classes)):
        return torch.load(path, map_location=device, weights_only=True)


def require_sound(path: Path) -> None:
    """Refuse a zip that is packed, unpacks to more than it is, or of which some bit has flipped."""
    with path.open("rb") as file:
        if file.read(len(ZIP)) != ZIP:
            return  # the format of old versions, in which nothing is packed; it has no checksums
    with open_zip(path, PLAIN) as archive:
        # Members that are not packed may still lie over each other.
        unpacked, size = sum(member.file_size for member in archive.infolist()), path.stat().st_size
        if unpacked > size:
            raise FileFormatError(
                path, f"has {size:,} bytes and unpacks to {unpacked:,}; torch.save packs nothing"
            )
        bad = archive.testzip()
    if bad is not None:
        raise FileFormatError(path, f"is damaged: {bad} is not what its checksum says")


def named_tensors(path: Path, state: Any, what: str) -> dict[str, Tensor]:  # noqa: ANN401
    """Return a file's named tensors by their names as text; anything else is refused.

    Args:
        path: the file, for errors.
        state: what was found in it.
        what: it is, for errors.
    """
    if not isinstance(state, Mapping) or not all(isinstance(v, Tensor) for v in state.values()):
        raise FileFormatError(path, f"{what} not named tensors")
    for name, tensor in state.items():
        if not _is_plain(tensor):
            raise FileFormatError(path, f"its {name} is not a plain, whole tensor of numbers")
    return {str(name): tensor for name, tensor in state.items()}


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has all its numbers in memory, each as a number that is computed with."""
    if tensor.is_nested or tensor.layout != torch.strided or tensor.device.type != "cpu":
        return False
    # A tensor of a few bytes can claim any shape by repeating them.
    whole = tensor.untyped_storage().nbytes() >= tensor.numel() * tensor.element_size()
    return whole and tensor.dtype in NUMBERS


def save_tensors(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write named tensors as safetensors, whole or not at all.

    (safetensors' own `save_file` makes a file that nobody but its owner may read, and has an error
    of its own for what the system said.)
    """
    write_atomically(path, to_bytes(dict(weights), metadata={"format": "pt"}))


def save_torch(file: IO[bytes], value: object) -> None:
    """Write what `load_torch` reads.

    Raises:
        OSError: what the system said; torch would call it a failure of its own.
    """
    keeping = _Keeping(file)
    try:
        torch.save(value, keeping)  # type: ignore[arg-type]
    except RuntimeError:
        if keeping.said is not None:
            raise keeping.said from None
        raise


class _Keeping:
    """A file that keeps what the system said when it could not be written."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.said: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            return self.file.write(data)
        except OSError as error:
            self.said = error
            raise

    def flush(self) -> None:
        self.file.flush()
