"""Milvus through `pymilvus`: the same code for Milvus Lite's file and for a cluster's URL.

Only 32-bit vectors, whole numbers and texts are used, which every Milvus has. What was created is
read back and compared with what was asked, because a Milvus that does not know a kind of column may
drop it in silence. Patterns of paths and tags are beyond an old Milvus's expressions: their entries
are looked up here first, and the search is told their uids.
"""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from crossgaze.errors import InputError, MissingExtraError
from crossgaze.search.engine import Uids, Vectors, best, check_vectors
from crossgaze.search.entries import (
    COLUMNS,
    LONGEST_KEY,
    LONGEST_TAGS,
    NUMBERS,
    Entry,
    from_row,
    to_row,
)
from crossgaze.search.filters import Where

PART = 1000  # rows sent or read at a time
MOST = 16_384  # results that Milvus gives
AMONG = 10_000  # uids named in one expression
LENGTHS = {"key": LONGEST_KEY, "source": LONGEST_KEY, "digest": 128, "tags": LONGEST_TAGS}
TOKEN = "CROSSGAZE_MILVUS_TOKEN"  # the environment's variable: a secret is no part of an index


# How many engines of this process use a file: Milvus Lite serves one process at a time.
_open: Counter[str] = Counter()


class MilvusEngine:
    """A collection of Milvus.

    Args:
        uri: a file's path for Milvus Lite, or "http://host:19530".
        name: the collection's.
        width: numbers in a vector.
        create: make a new collection instead of opening one.
        note: kept in the collection's description, for `read_note`.
    """

    kind = "milvus"

    def __init__(
        self, uri: str, name: str, width: int, *, create: bool = False, note: str = ""
    ) -> None:
        self.uri, self.name, self.width = uri, name, width
        self._client: Any = connect(uri)
        with self._explained():
            if create:
                self._create(note)
            elif not self._client.has_collection(name):
                raise InputError(f"{uri}: has no collection {name!r}, wanted an index's")
            self._require_schema()
            self._client.load_collection(name)

    def _create(self, note: str) -> None:
        from pymilvus import DataType

        schema = self._client.create_schema(
            auto_id=False, enable_dynamic_field=False, description=note
        )
        for column in COLUMNS:
            if column in NUMBERS:
                schema.add_field(column, DataType.INT64, is_primary=column == "uid")
            else:
                schema.add_field(column, DataType.VARCHAR, max_length=LENGTHS[column])
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=self.width)
        index = self._client.prepare_index_params()
        how = {"M": 16, "efConstruction": 200}
        index.add_index("vector", index_type="HNSW", metric_type="IP", params=how)
        if self._client.has_collection(self.name):
            # Left by an index that was being made in the same folder when its process ended.
            left = _folder_of(self._client.describe_collection(self.name).get("description", ""))
            if left is None or left != _folder_of(note):
                raise InputError(
                    f"{self.uri}: the collection {self.name!r} is there already, take another name"
                )
            self._client.drop_collection(self.name)
        self._client.create_collection(
            self.name, schema=schema, index_params=index, consistency_level="Strong"
        )

    def _require_schema(self) -> None:
        """Refuse a collection that is not what was asked for."""
        found = {}
        for field in self._client.describe_collection(self.name)["fields"]:
            params = field.get("params", {})
            size = params.get("dim") or params.get("max_length")
            primary = bool(field.get("is_primary"))
            found[field["name"]] = (field["type"].name, int(size) if size else None, primary)
        wanted: dict[str, tuple[str, int | None, bool]] = {
            name: ("INT64", None, name == "uid")
            if name in NUMBERS
            else ("VARCHAR", LENGTHS[name], False)
            for name in COLUMNS
        }
        wanted["vector"] = ("FLOAT_VECTOR", self.width, False)
        for name in [*wanted, *found]:
            if found.get(name) != wanted.get(name):
                raise InputError(
                    f"{self.uri}: column {name!r} of collection {self.name!r} is "
                    f"{found.get(name)}, wanted {wanted.get(name)}"
                )

    def __len__(self) -> int:
        with self._explained():
            found = self._client.query(self.name, filter="", output_fields=["count(*)"])
        return int(found[0]["count(*)"])

    def add(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Add entries, some at a time; Milvus has no transactions."""
        rows = check_vectors(entries, vectors, self.width)
        self._send(entries, rows, new=True)

    def update(self, entries: Sequence[Entry]) -> None:
        """Put entries in the place of those with the same uids."""
        self._send(entries, self.vectors([entry.uid for entry in entries]), new=False)

    def _send(self, entries: Sequence[Entry], vectors: Vectors, *, new: bool) -> None:
        for start in range(0, len(entries), PART):
            part = zip(entries[start : start + PART], vectors[start : start + PART], strict=True)
            rows = [to_row(entry) | {"vector": row.tolist()} for entry, row in part]
            for row in rows:
                long = next((c for c, n in LENGTHS.items() if len(row[c].encode()) > n), None)
                if long is not None:
                    raise InputError(f"{row['key'][:60]!r}...: its {long} is too long for Milvus")
            with self._explained():
                (self._client.insert if new else self._client.upsert)(self.name, rows)

    def delete(self, uids: Sequence[int]) -> None:
        """Remove entries."""
        for part in _parts(uids):
            with self._explained():
                self._client.delete(self.name, filter=part)

    def search(self, vector: Vectors, count: int, where: Where | None) -> tuple[Uids, Vectors]:
        """Search, among looked-up uids where a filter is more than Milvus can be told."""
        conditions = [pushed(where) if where else ""]
        if where and not is_pushed_whole(where):
            conditions = _parts([entry.uid for part in self.every(where) for entry in part])
        count = min(count, MOST)
        query = np.asarray(vector, np.float32).reshape(self.width).tolist()
        how = {"metric_type": "IP", "params": {"ef": min(max(2 * count, 200), 32_768)}}
        uids: list[int] = []
        scores: list[float] = []
        for condition in conditions:
            with self._explained():
                (found,) = self._client.search(
                    self.name,
                    data=[query],
                    limit=count,
                    filter=condition,
                    output_fields=["uid"],
                    search_params=how,
                )
            uids += [int(hit["entity"]["uid"]) for hit in found]
            scores += [float(hit["distance"]) for hit in found]
        return best(np.array(scores, np.float32), np.array(uids, np.int64), count)

    def get(self, uids: Sequence[int]) -> list[Entry]:
        """Return entries by uid."""
        there = {int(row["uid"]): from_row(row) for row in self._by_uid(uids, list(COLUMNS))}
        return [there[uid] for uid in map(int, uids) if uid in there]

    def vectors(self, uids: Sequence[int]) -> Vectors:
        """Return vectors by uid."""
        there = {int(row["uid"]): row["vector"] for row in self._by_uid(uids, ["uid", "vector"])}
        rows = [there[int(uid)] for uid in uids]
        return np.array(rows, np.float32).reshape(-1, self.width)

    def _by_uid(self, uids: Sequence[int], columns: list[str]) -> Iterator[dict[str, Any]]:
        for part in _parts(uids, PART):
            with self._explained():
                found = self._client.query(
                    self.name, filter=part, output_fields=columns, limit=PART
                )
            yield from found

    def every(self, where: Where | None = None) -> Iterator[list[Entry]]:
        """Give all entries that a filter admits, looking here at what Milvus was not told."""
        condition = pushed(where) if where else ""
        with self._explained():
            pages = self._client.query_iterator(
                self.name,
                batch_size=PART,
                filter=condition or "uid >= 0",
                output_fields=list(COLUMNS),
            )
            try:
                while rows := pages.next():
                    entries = [from_row(row) for row in rows]
                    yield [entry for entry in entries if not where or where.admits(entry)]
            finally:
                pages.close()

    def tidy(self) -> None:
        """Have Milvus write out what it holds."""
        with self._explained():
            self._client.flush(self.name)

    def refresh(self) -> None:
        """Reads are consistent anyway."""

    def drop(self) -> None:
        """Remove the collection."""
        with self._explained():
            self._client.drop_collection(self.name)

    def close(self) -> None:
        """Close the connection, and Milvus Lite with the last one to its file."""
        if self._client is None:
            return
        self._client.close()
        self._client = None
        _release(self.uri)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        with explained(self.uri):
            yield


def connect(uri: str) -> Any:  # noqa: ANN401 (pymilvus's client, imported when first used)
    """Open a client for a file's path or a URL."""
    try:
        from pymilvus import MilvusClient
    except ImportError:
        raise MissingExtraError("an index in Milvus", "pymilvus", "search") from None
    # They would log every error with its trace, and what becomes of it here is one line.
    for name in ("pymilvus", "milvus_lite"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with explained(uri):
        if "://" in uri:
            return MilvusClient(uri, token=os.environ.get(TOKEN, ""), timeout=30)
        client = MilvusClient(uri)
        _open[uri] += 1
        return client


def _release(uri: str) -> None:
    """Let other processes have Milvus Lite's file once nothing here uses it."""
    if "://" in uri:
        return
    _open[uri] -= 1
    if _open[uri] <= 0:
        from milvus_lite.server_manager import server_manager_instance

        server_manager_instance.release_server(uri)


@contextmanager
def explained(uri: str) -> Iterator[None]:
    """Turn what pymilvus says into one line that names the server or file."""
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except ModuleNotFoundError:
        raise MissingExtraError("Milvus Lite's file", "milvus-lite", "milvus-lite") from None
    except MilvusException as error:
        if "milvus-lite" in str(error) and "required" in str(error):
            raise MissingExtraError("Milvus Lite's file", "milvus-lite", "milvus-lite") from None
        if "Open local milvus failed" in str(error):
            raise InputError(
                f"{uri}: cannot be opened; is another process using it? Milvus Lite serves one at "
                "a time: wait for it, or move the index to a server"
            ) from error
        said = " ".join(str(error.message or error).split())
        raise InputError(f"{uri}: Milvus says: {said[:300]}") from error


def read_note(uri: str, name: str) -> dict[str, Any]:
    """Return what an index wrote into the description of its collection."""
    client = connect(uri)
    try:
        with explained(uri):
            if not client.has_collection(name):
                known = ", ".join(sorted(client.list_collections())[:8]) or "none"
                raise InputError(f"{uri}: has no index there; its collections: {known}")
            text = client.describe_collection(name).get("description", "")
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError(text)
        return found
    except ValueError:
        raise InputError(f"{uri}: collection {name!r} was not made by crossgaze") from None
    finally:
        client.close()


def _folder_of(note: str) -> object:
    """Return the folder that a collection's description names."""
    try:
        found = json.loads(note)
    except ValueError:
        return None
    return found.get("folder") if isinstance(found, dict) else None


def pushed(where: Where) -> str:
    """Return what of a filter every Milvus understands, each text quoted.

    Example:
        >>> pushed(Where(path="/photos/*.jpg", most_bytes=5))
        'bytes <= 5 and key like "/photos/%"'
    """
    parts = [f"{column} {sign} {value}" for column, sign, value in where.ranges()]
    start = _plain_start(where)
    if start:
        parts.append(f'key like "{start}%"')
    return " and ".join(parts)


def is_pushed_whole(where: Where) -> bool:
    """Tell whether `pushed` says all of a filter."""
    return not where.tags and (where.pattern is None or where.pattern == f"{_plain_start(where)}*")


def _plain_start(where: Where) -> str:
    """Return the first signs of a pattern, as far as none means anything to Milvus."""
    start = ""
    for sign in where.pattern or "":
        if not (sign.isalnum() or sign in "/.- ") or not sign.isascii():
            break
        start += sign
    return start


def _parts(uids: Sequence[int], size: int = AMONG) -> list[str]:
    """Return expressions that name uids, so many at a time."""
    numbers = [str(int(uid)) for uid in uids]
    return [
        f"uid in [{', '.join(numbers[start : start + size])}]"
        for start in range(0, len(numbers), size)
    ]
