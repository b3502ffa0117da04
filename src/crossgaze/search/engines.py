"""From an index's head to its two tables: photographs and sentences."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from crossgaze.errors import InputError, require_path
from crossgaze.search.engine import Engine
from crossgaze.search.head import FORMAT, Head
from crossgaze.search.lance import LanceEngine
from crossgaze.search.milvus import MilvusEngine
from crossgaze.search.milvus_client import read_note

TABLES = ("photos", "sentences")
SCHEMES = ("http", "https", "tcp", "milvus")


@dataclass(frozen=True)
class Tables:
    """An index's two tables."""

    photos: Engine
    sentences: Engine

    def close(self) -> None:
        """Close both."""
        self.photos.close()
        self.sentences.close()


def open_tables(
    folder: Path, head: Head, *, create: bool = False, exact: int | None = None
) -> Tables:
    """Open, or make, the tables of an index.

    Args:
        folder: the index.
        head: what it says of itself.
        create: whether to make them.
        exact: entries up to which LanceDB's engine looks at all of them, if not its own number.
    """
    if head.engine == "lance":
        database, width = folder / "database", head.vector_width
        return Tables(
            *(LanceEngine(database, t, width, create=create, exact=exact) for t in TABLES)
        )
    uri = str(folder / "milvus.db") if head.engine == "milvus" else head.engine
    note = json.dumps({"format": FORMAT, "index": head.id, "folder": str(folder.resolve())})
    if not create and head.engine != "milvus":
        found = read_note(uri, f"{head.name}_photos").get("index")
        if found != head.id:
            raise InputError(
                f"{uri}: the collections {head.name}_* belong to the index {found}, "
                f"{folder} is {head.id}"
            )
    return Tables(
        *(
            MilvusEngine(uri, f"{head.name}_{t}", head.vector_width, create=create, note=note)
            for t in TABLES
        )
    )


def parse_engine(text: str) -> tuple[str, str]:
    """Return an engine ("lance", "milvus" or a server's URL) and the collections' name.

    Example:
        >>> parse_engine("http://127.0.0.1:19530/holidays")
        ('http://127.0.0.1:19530', 'holidays')
    """
    if not isinstance(text, str):
        raise InputError(f"engine: got {text!r}, wanted lance, milvus or a server's URL")
    if text in ("lance", "milvus"):
        return text, "crossgaze"
    try:
        parts = urlsplit(text)
        whole = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half a bracket, a port that is no number
        whole = False
    if not whole:
        raise InputError(
            f"engine: got {text!r}, wanted lance, milvus or a server's http://host:19530/name"
        )
    name = parts.path.strip("/") or "crossgaze"
    if parts.username or parts.password:
        raise InputError("engine: got a URL with a password; set CROSSGAZE_MILVUS_TOKEN instead")
    if not (name.isascii() and name.isidentifier() and len(name) <= 200):
        raise InputError(f"engine: got the name {name!r}, wanted letters, digits and _")
    scheme = "http" if parts.scheme == "milvus" else parts.scheme
    return f"{scheme}://{parts.netloc}", name


def find_folder(path_or_url: str | Path) -> Path:
    """Return the folder of an index that is named by it, by its Milvus file or by a URL."""
    text = str(path_or_url)
    if "://" not in text:
        path = require_path("index", path_or_url)
        return path.parent if path.name == "milvus.db" else path
    uri, name = parse_engine(text)
    note = read_note(uri, f"{name}_photos")
    folder = Path(str(note.get("folder", "")))
    if note.get("format") != FORMAT or not folder.is_dir():
        raise InputError(
            f"{text}: its regions lie in {folder}, which is not here; mount it, or open its copy"
        )
    return folder
