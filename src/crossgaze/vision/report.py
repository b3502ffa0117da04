"""What an extraction did."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from crossgaze import __version__
from crossgaze.data.left_out import LeftOut
from crossgaze.files import write_json


@dataclass(frozen=True)
class ExtractReport:
    """What an extraction did; the same is in the store's `report.json`.

    Args:
        photos: photographs found (in this shard).
        extracted: made into regions by this run.
        already: in the store before.
        unreadable: (name, reason) of those that could not be read.
        changed: in the store, but the file is another one now; their old regions are kept.
        gone: in the store, but no longer in the folder.
        left_out: files that are not photographs, links, hidden files; of given boxes those that
            could not be used.
        without_boxes: photographs for which the file of boxes has none: the whole image is their
            one region.
        seconds: time spent decoding, computing and writing.
        finished: whether the run came to its end.
        shard: "i/n", or "" for the whole.
    """

    photos: int
    extracted: int = 0
    already: int = 0
    unreadable: tuple[tuple[str, str], ...] = ()
    changed: tuple[str, ...] = ()
    gone: int = 0
    left_out: tuple[LeftOut, ...] = ()
    without_boxes: tuple[str, ...] = ()
    seconds: float = 0.0
    finished: bool = False
    shard: str = ""
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def images_per_second(self) -> float:
        """Photographs made into regions a second."""
        return self.extracted / self.seconds if self.seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON holds it."""
        rate = round(self.images_per_second, 2)
        return asdict(self) | {"images_per_second": rate, "crossgaze": __version__}

    def save(self, folder: Path) -> None:
        """Write `report.json`."""
        write_json(folder / "report.json", self.to_dict())
