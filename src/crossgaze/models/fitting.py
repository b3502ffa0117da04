"""Weights into a model, once every key and shape is known to fit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import FileFormatError
from crossgaze.models.base import Model
from crossgaze.models.sparse_rows import whole_shapes

MOST = 30  # problems that are named
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def build_fitting(
    model_type: type[Model],
    config: Any,  # noqa: ANN401 (each family has its own)
    vocabulary: Vocabulary | int | None,
    shapes: Mapping[str, tuple[int, ...]],
    path: Path,
) -> Model:
    """Build a model that weights of these shapes fit, refusing before any memory is taken.

    A file of a few bytes can ask for a model of any size; its weights cannot be larger than it is.
    (Rows that `sparse_rows` left out of it are counted by that module.)
    """
    with torch.device("meta"):
        skeleton = model_type(config, vocabulary)  # type: ignore[call-arg]
    wanted = {key: tuple(value.shape) for key, value in skeleton.state_dict().items()}
    require_fit(wanted, whole_shapes(shapes, wanted, path), path)
    return model_type(config, vocabulary)  # type: ignore[call-arg]


def require_fit(
    wanted: Mapping[str, tuple[int, ...]], found: Mapping[str, tuple[int, ...]], path: Path
) -> None:
    """Name every key that is missing, too many, or of another shape."""
    problems = [f"missing {key}" for key in wanted if key not in found]
    problems += [f"unexpected {key}" for key in found if key not in wanted]
    problems += [
        f"{key} has shape {found[key]}, wanted {wanted[key]}"
        for key in wanted
        if key in found and found[key] != wanted[key]
    ]
    if problems:
        more = f" and {len(problems) - MOST} more" if len(problems) > MOST else ""
        raise FileFormatError(path, f"does not fit the model: {'; '.join(problems[:MOST])}{more}")


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Copy weights into a model; they may be kept in half precision on disk."""
    wanted = model.state_dict()
    shapes = {key: tuple(value.shape) for key, value in wanted.items()}
    require_fit(shapes, {key: tuple(value.shape) for key, value in weights.items()}, path)
    for key, value in weights.items():
        if wanted[key].is_floating_point() and value.dtype not in FLOATS:
            raise FileFormatError(path, f"{key} holds {value.dtype}, wanted floating point")
        if value.is_complex() or value.is_quantized:
            raise FileFormatError(path, f"{key} holds {value.dtype}, wanted numbers")
        if not bool(torch.isfinite(value).all()):
            raise FileFormatError(path, f"{key} holds values that are not finite")
    model.load_state_dict({key: weights[key].to(wanted[key].dtype) for key in wanted})
