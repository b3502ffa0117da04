"""Which device computes, or why it cannot."""

from __future__ import annotations

import warnings

import torch

from crossgaze.errors import InputError

SAID = 200  # signs of what torch says; it may list hundreds of kernels


def find_device(name: str) -> torch.device:
    """Return a device by name, "auto" for a GPU where there is one; refuse what is not here.

    Example:
        >>> find_device("cpu")
        device(type='cpu')
    """
    if name == "auto":
        gpus = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        name = next((gpu for gpu, there in gpus.items() if there), "cpu")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of kinds that are out of use, which fail below
            torch.zeros(1, device=name).cpu()
        return torch.device(name)
    except Exception as error:  # noqa: BLE001 (each kind of device fails in its own way)
        first = (str(error) or type(error).__name__).splitlines()[0]
        first = first if len(first) <= SAID else f"{first[:SAID]}..."
        raise InputError(
            f"device: {name!r} cannot be used here, wanted auto, cpu, cuda or cuda:1: {first}"
        ) from None
