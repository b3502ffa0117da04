"""A run's folder: its settings, and a checkpoint from which it goes on after it was stopped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
import yaml

from crossgaze.config import load_recipe, to_dict
from crossgaze.errors import FileFormatError, InputError, require_file
from crossgaze.files import LOCK, naming, sync_folder, write_atomically
from crossgaze.torchfiles import load_torch, save_torch
from crossgaze.training.config import TrainConfig, differences

SETTINGS, CHECKPOINT = "config.yaml", "checkpoint.pt"


def open_run(folder: Path, config: TrainConfig) -> None:
    """Make a run's folder, or check that the one that exists is of the same settings.

    Args:
        folder: new, empty, or of this run.
        config: the run's settings.
    """
    if folder.is_file():
        raise InputError(f"{folder}: is a file, wanted a folder for the run")
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / SETTINGS
    if not settings.is_file():
        found = sorted(p.name for p in folder.iterdir() if p.name != LOCK and p.name[0] != ".")
        if found:
            raise InputError(f"{folder}: holds {found[0]!r}, wanted a new folder or a run's")
        text = yaml.safe_dump(to_dict(config), sort_keys=False, allow_unicode=True)
        write_atomically(settings, f"# The settings of this run, all of them.\n{text}")
        return
    require_same(folder, config)


def require_same(folder: Path, config: TrainConfig) -> None:
    """Refuse to go on with a run of other settings, naming them."""
    other = differences(load_recipe(TrainConfig, folder / SETTINGS), config)
    if other:
        more = f" (and {len(other) - 3} more)" if len(other) > 3 else ""
        raise InputError(
            f"{folder}: is a run with other settings: {'; '.join(other[:3])}{more}; "
            "give the same settings to go on with it, or another --out"
        )


def write_checkpoint(folder: Path, state: dict[str, Any]) -> None:
    """Write a run's state so that there is always a whole one, the last or the one before."""
    path = folder / CHECKPOINT
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with naming(path), partial.open("wb") as file:
            save_torch(file, state)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(folder)


def read_checkpoint(folder: Path, device: torch.device) -> dict[str, Any] | None:
    """Return a run's last state, or None where none was written yet."""
    for leftover in folder.glob(f".{CHECKPOINT}.*.partial"):  # of a process that was killed
        leftover.unlink(missing_ok=True)
    path = folder / CHECKPOINT
    if not os.path.lexists(path):
        return None
    require_file(path, "a run's checkpoint")
    try:
        state = load_torch(path, device)
    except FileFormatError:
        raise
    except Exception as error:  # noqa: BLE001 (torch raises many families on a damaged file)
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise FileFormatError(path, f"does not read as a checkpoint: {first}") from None
    if not isinstance(state, dict):
        raise FileFormatError(path, f"holds a {type(state).__name__}, wanted a checkpoint")
    return state
