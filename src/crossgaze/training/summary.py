"""What is left of a run when it has ended: one JSON file and a picture."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

from crossgaze import __version__
from crossgaze.config import to_dict
from crossgaze.data.textfiles import read_json
from crossgaze.errors import FileFormatError, MissingExtraError
from crossgaze.files import write_json
from crossgaze.models.base import Model
from crossgaze.training.curves import draw_curves
from crossgaze.training.logs import read_log
from crossgaze.training.prepare import Prepared, parameters_of

SUMMARY, CURVES = "summary.json", "curves.png"


def write_summary(
    folder: Path, model: Model, data: Prepared, facts: dict[str, Any], log: Path, unit: str
) -> dict[str, Any]:
    """Write `summary.json` and the learning curves, and return the first.

    Args:
        folder: of the run.
        model: as it is at the end.
        data: what was learned from.
        facts: what the trainer knows: config, command, steps, history ...
        log: the run's log.
        unit: what was learned from, "captions" or "questions".
    """
    best = facts["history"][facts["best_epoch"] - 1] if facts["best_epoch"] else {}
    notes = [*data.notes, *_collapse(log)]
    try:
        draw_curves([(folder.name, log)], folder / CURVES)
    except MissingExtraError as error:
        notes.append(f"no {CURVES}: {error}")
    summary = {
        "family": model.family,
        "model": to_dict(model.config),
        "seed": facts["config"]["seed"],
        "metrics": {name: round(value, 3) for name, value in best.items()},
        "metrics_of": data.chosen_by,
        **facts,
        "parameters": parameters_of(model),
        "data": {
            f"train_{unit}": len(data.train.sentences),
            "train_images": len(data.train.regions),
            f"dev_{unit}": len(data.dev.sentences),
            "dev_images": len(data.dev.regions),
            "fingerprint": data.fingerprint,
        },
        "notes": notes,
        "versions": versions(),
    }
    write_json(folder / SUMMARY, summary)
    return summary


def _collapse(log: Path) -> list[str]:
    """Return a note where the log has lines in which all similarities were equal."""
    fallen = [line["step"] for line in read_log(log) if line.get("collapsed")]
    if not fallen:
        return []
    return [
        f"collapsed: all similarities were nearly equal at {len(fallen):,} looks from step "
        f"{fallen[0]:,} to {fallen[-1]:,}; loss.warm_steps (more) or optimiser.rate (less) may help"
    ]


def read_summary(folder: Path) -> dict[str, Any] | None:
    """Return the summary of a run that has ended, or None."""
    path = folder / SUMMARY
    if not path.is_file():
        return None
    found = read_json(path, "the summary of a run")
    if not isinstance(found, dict):
        raise FileFormatError(path, "does not read as the summary of a run")
    return found


def versions() -> dict[str, Any]:
    """Return what the run was made with."""
    return {
        "crossgaze": __version__,
        "git": git_version(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu": cpu_name(),
        "threads": torch.get_num_threads(),
    }


def cpu_name(info: Path = Path("/proc/cpuinfo")) -> str | None:
    """Return what the processor calls itself; None where the system does not say.

    Args:
        info: Linux's list of processors; elsewhere there is none.
    """
    try:
        lines = info.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(filter(None, names), None)


def git_version() -> str | None:
    """Return the commit of this source, with '+' where files were changed since; None without."""
    here = Path(__file__).resolve().parent
    try:
        # An installed copy may lie inside somebody else's repository.
        _git(here, "ls-files", "--error-unmatch", Path(__file__).name)
        commit = _git(here, "rev-parse", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+" if changed else "")


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()
