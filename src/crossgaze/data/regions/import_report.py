"""What an import took and what it did not, kept in the store as `report.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crossgaze.data.textfiles import read_json
from crossgaze.errors import FileFormatError
from crossgaze.files import write_json

REPORT = "report.json"


@dataclass(frozen=True)
class ImportReport:
    """What an import that came to its end took and did not take.

    Args:
        source: the kind of files it read.
        files: how many.
        images: how many images the store holds.
        regions_cut: regions left out, over all images, because the store keeps fewer an image.
        images_cut: images that lost regions so.
        ignored: names of the arrays or columns that were not read.

    Example:
        >>> ImportReport("npz", 2, 2, 14, 1, ("info",)).to_dict()["regions_cut"]
        14
    """

    source: str
    files: int
    images: int
    regions_cut: int = 0
    images_cut: int = 0
    ignored: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON holds it."""
        return {
            "from": self.source,
            "files": self.files,
            "images": self.images,
            "regions_cut": self.regions_cut,
            "images_cut": self.images_cut,
            "ignored": list(self.ignored),
            "finished": True,
            "shard": "",  # as in an extraction's report: this is the whole
        }

    def save(self, folder: Path) -> None:
        """Write `report.json` into the store."""
        write_json(folder / REPORT, self.to_dict())


def read_import_report(folder: str | Path) -> ImportReport:
    """Return what the import that made a store reported at its end.

    An import that was stopped, and one that maps its file, has no report.
    """
    path = Path(folder) / REPORT
    raw = read_json(path, "the report of an import")
    match raw:
        case {
            "from": str(source),
            "files": int(files),
            "images": int(images),
            "regions_cut": int(regions_cut),
            "images_cut": int(images_cut),
            "ignored": list(ignored),
        }:
            names = tuple(str(name) for name in ignored)
            return ImportReport(source, files, images, regions_cut, images_cut, names)
        case _:
            raise FileFormatError(path, "does not read as the report of an import")
