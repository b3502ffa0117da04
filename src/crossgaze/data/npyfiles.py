"""Opening `.npy` files so that every problem names its file and nothing is loaded."""

from __future__ import annotations

import warnings
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from crossgaze.errors import FileFormatError, InputError, require_file

# What NumPy raises, by experiment, on a header that is cut off, garbled or absurd.
_NPY_ERRORS = (ValueError, TypeError, SyntaxError, TokenError, OverflowError, EOFError)


def map_npy(path: Path) -> np.memmap[Any, np.dtype[Any]]:
    """Return the array of a .npy file, mapped for reading: none of its numbers are read."""
    require_file(path, "a .npy file")
    try:
        with warnings.catch_warnings():
            # NumPy warns of headers that Python 2 wrote, as those of the public data may be.
            warnings.simplefilter("ignore", UserWarning)
            # And of a shape whose product is beyond its numbers, before it refuses it.
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.lib.format.open_memmap(path, mode="r")
    except _NPY_ERRORS as error:
        reason = " ".join(str(error).split())[:100]
        raise FileFormatError(path, f"is not a whole .npy file: {reason}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
