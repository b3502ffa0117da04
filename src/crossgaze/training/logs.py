"""What a run writes down while it goes: a line of JSON an interval, and TensorBoard if asked for.

`log.jsonl` has lines of two kinds: `"kind": "step"`, the means over the steps since the line
before, and `"kind": "epoch"`, the figures on the dev split. A run that goes on cuts off what was
written after its checkpoint, so that every step is in the log once.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crossgaze.data.textfiles import decode, parse_object, read_bytes
from crossgaze.errors import FileFormatError, MissingExtraError, require_file
from crossgaze.files import naming

LOG = "log.jsonl"
WHAT = "the log of a training run"
WAY_OUT = "put it back from a copy, or start anew with another --out"


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
        if os.path.lexists(self.path):
            require_file(self.path, WHAT)
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
    return _lines(read_bytes(path, WHAT), path)


def require_log(path: Path, size: int, history: Sequence[Mapping[str, float]]) -> None:
    """Refuse a log that is not what the run's checkpoint knows, before the run goes on.

    Summary and curves are made of it: after the last epoch it would be too late to say so.

    Args:
        path: the log.
        size: its bytes when the checkpoint was written; what comes after them will be cut off.
        history: the figures on dev after each epoch until then.
    """
    if not size:
        return
    content = read_bytes(path, WHAT)
    if len(content) < size:
        raise FileFormatError(
            path, f"has {len(content):,} bytes, and had {size:,} at the checkpoint; {WAY_OUT}"
        )
    if content[size - 1 : size] != b"\n":
        raise FileFormatError(path, f"has no line that ends at byte {size:,}; {WAY_OUT}")
    lines = _lines(content[:size], path)
    for number, line in enumerate(lines, start=1):
        if not _is_whole(line):
            raise FileFormatError(path, f"is no line of a training run; {WAY_OUT}", line=number)
    found = [line["dev"].keys() for line in lines if line["kind"] == "epoch"]
    if found != [figures.keys() for figures in history]:
        raise FileFormatError(path, f"its epochs are not those of the checkpoint; {WAY_OUT}")


def _lines(content: bytes, path: Path) -> list[dict[str, Any]]:
    whole = decode(content[: content.rfind(b"\n") + 1], path).split("\n")[:-1]
    return [parse_object(line, path, number) for number, line in enumerate(whole, start=1)]


def _is_whole(line: Mapping[str, Any]) -> bool:
    """Whether a line has all that the summary and the curves read of it."""
    if line.get("kind") == "epoch":
        dev = line.get("dev")
        numbers = [line.get("epoch"), *(dev.values() if isinstance(dev, dict) else [None])]
    else:  # the loss of half precision may have been infinite, which JSON does not hold
        numbers = [line.get("at"), 0 if line.get("loss", "") is None else line.get("loss")]
    kinds = {type(value) for value in (line.get("step"), *numbers)}
    return line.get("kind") in ("step", "epoch") and kinds <= {int, float}


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
