"""What a run writes down while it goes: a line of JSON an interval, and TensorBoard if asked for.

`log.jsonl` has lines of two kinds: `"kind": "step"`, the means over the steps since the line
before, and `"kind": "epoch"`, the figures on the dev split. A run that goes on cuts off what was
written after its checkpoint, so that every step is in the log once.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crossgaze.errors import FileFormatError, MissingExtraError
from crossgaze.files import naming

LOG = "log.jsonl"


class RunLog:
    """Appends to a run's log.

    Args:
        folder: of the run.
        size: bytes of the log that are kept.
        step: the last step that is kept.
        tensorboard: whether to write for TensorBoard, too, into `folder/tensorboard`.
    """

    def __init__(
        self, folder: Path, *, size: int = 0, step: int = 0, tensorboard: bool = False
    ) -> None:
        self.path = folder / LOG
        self._board = _board(folder / "tensorboard", step) if tensorboard else None
        self._file = self.path.open("a", encoding="utf-8")
        os.truncate(self.path, size)

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line; its numbers go to TensorBoard under the line's kind."""
        with naming(self.path):
            self._file.write(json.dumps(_told(line), allow_nan=False) + "\n")
            self._file.flush()
        if self._board is not None:
            kind = str(line["kind"])
            for name, value in _numbers({k: v for k, v in line.items() if k != "step"}):
                self._board.add_scalar(f"{kind}/{name}", value, line["step"])

    def size(self) -> int:
        """Return how many bytes were written, on disk for good."""
        with naming(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the files."""
        with naming(self.path):  # what could not be written is tried once more
            self._file.close()
        if self._board is not None:
            self._board.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's log; a last line without its end is not counted."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    try:
        return [json.loads(line) for line in lines if line.endswith("\n")]
    except ValueError as error:
        raise FileFormatError(path, f"is not JSON: {error}") from None


def _told(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line as JSON can hold it: null for a gradient of half precision that overflowed."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in line.items()
    }


def _numbers(line: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, float]]:
    for name, value in line.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float):
            yield f"{prefix}{name}", float(value)


def _board(folder: Path, step: int) -> Any:  # noqa: ANN401 (the extra is not typed)
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("--tensorboard", "tensorboard", "train") from None
    make: Any = SummaryWriter
    # What a stopped run showed after its checkpoint is drawn anew.
    return make(str(folder), purge_step=step + 1)
