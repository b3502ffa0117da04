"""Milvus through `pymilvus`: the same code for Milvus Lite's file and for a cluster's URL.

Only 32-bit vectors, whole numbers and texts are used, which every Milvus has. What was created is
read back and compared with what was asked, because a Milvus that does not know a kind of column may
drop it in silence. Patterns of paths and tags are beyond an old Milvus's expressions: their entries
are looked up here first, and the search is told their uids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from crossgaze.errors import InputError
from crossgaze.search.engine import Tidying, Uids, Vectors, all_of, best, check_vectors
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
from crossgaze.search.milvus_client import connect, explained, left_in_log, parse_note, release
from crossgaze.search.milvus_filters import is_pushed_whole, pushed, uid_parts

PART = 1000  # rows sent or read at a time
MOST = 16_384  # results that Milvus gives
EFFORT = 32_768  # the largest ef of HNSW that Milvus takes
LENGTHS = {"key": LONGEST_KEY, "source": LONGEST_KEY, "digest": 128, "tags": LONGEST_TAGS}


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
    most: int | None = MOST

    def __init__(
        self, uri: str, name: str, width: int, *, create: bool = False, note: str = ""
    ) -> None:
        self.uri, self.name, self.width = uri, name, width
        self._count: int | None = None  # of the entries, as long as nothing has changed here
        self._doubled = not create and left_in_log(uri, name)
        self._client: Any = connect(uri)
        with self._explained():
            if create:
                self._create(note)
            elif not self._client.has_collection(name):
                raise InputError(f"{uri}: has no collection {name!r}, wanted an index's")
            self._require_schema()
            self._load()

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
        if self._client.has_collection(self.name):
            # Left by an index whose making was stopped, if it has the new one's id: that comes from
            # the folder's marker. Another machine may have the same path, never the same id.
            left = parse_note(self._client.describe_collection(self.name).get("description", ""))
            if not left.get("index") or left["index"] != parse_note(note).get("index"):
                of = f", of the index in {left['folder']}" if left.get("folder") else ""
                raise InputError(
                    f"{self.uri}: the collection {self.name!r} is there already{of}; "
                    "take another name"
                )
            self._client.drop_collection(self.name)
        self._client.create_collection(
            self.name, schema=schema, index_params=self._index(), consistency_level="Strong"
        )

    def _index(self) -> Any:  # noqa: ANN401 (pymilvus's)
        """Return what index of the vectors is wanted."""
        index = self._client.prepare_index_params()
        how = {"M": 16, "efConstruction": 200}
        index.add_index("vector", index_type="HNSW", metric_type="IP", params=how)
        return index

    def _load(self) -> None:
        """Load the collection; of a Milvus Lite's that was killed, with its index made anew.

        It writes files of its index in place: a half-written one does not read, and is never
        missed, as it holds nothing that the vectors' own files do not.
        """
        try:
            self._client.load_collection(self.name)
        except Exception as error:  # pymilvus's, which is not imported before it is needed
            if "://" in self.uri or "faiss" not in str(error):
                raise
            self._client.drop_index(self.name, "vector")
            self._client.create_index(self.name, self._index())
            self._client.load_collection(self.name)

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
        made = [
            self._client.describe_index(self.name, index)
            for index in self._client.list_indexes(self.name)
        ]
        if not made and "://" not in self.uri:  # stopped while it was made anew, see `_load`
            self._client.create_index(self.name, self._index())
            return
        measures = [one.get("metric_type") for one in made if one.get("field_name") == "vector"]
        if measures != ["IP"]:
            raise InputError(
                f"{self.uri}: vectors of collection {self.name!r} are compared by {measures}, "
                "wanted one index by IP, the inner product"
            )

    def __len__(self) -> int:
        if self._doubled:
            return sum(len(rows) for rows in self._pages("", ["uid"]))
        if not self._count:  # a search asks for it, and Milvus counts by looking at every segment
            with self._explained():
                found = self._client.query(self.name, filter="", output_fields=["count(*)"])
            self._count = int(found[0]["count(*)"])
        return self._count

    def add(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Add entries, some at a time; Milvus has no transactions."""
        rows = check_vectors(entries, vectors, self.width)
        self._send(entries, rows, new=True)

    def update(self, entries: Sequence[Entry]) -> None:
        """Put entries in the place of those with the same uids."""
        self._send(entries, self.vectors([entry.uid for entry in entries]), new=False)

    def _send(self, entries: Sequence[Entry], vectors: Vectors, *, new: bool) -> None:
        self._count = None
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
        self._count = None
        for part in uid_parts(uids):
            with self._explained():
                self._client.delete(self.name, filter=part)

    def search(self, vector: Vectors, count: int, where: Where | None) -> tuple[Uids, Vectors]:
        """Search, among looked-up uids where a filter is more than Milvus can be told."""
        conditions = [pushed(where) if where else ""]
        if where and not is_pushed_whole(where):
            conditions = uid_parts([entry.uid for part in self.every(where) for entry in part])
        count = count if self.most is None else min(count, self.most)
        query = np.asarray(vector, np.float32).reshape(self.width)
        found = [self._nearest(query, count, condition) for condition in conditions]
        uids = np.array([uid for part in found for uid, _ in part], np.int64)
        return best(np.array([p for part in found for _, p in part], np.float32), uids, count)

    def _nearest(self, query: Vectors, count: int, condition: str) -> list[tuple[int, float]]:
        """Return uids and products of the best for which a condition holds.

        HNSW walks from near to nearer, and of what it meets keeps what the condition admits: with
        Milvus Lite that may be a few of many. Then it walks further, and at last all that are
        admitted are compared here.
        """
        found = self._ask(query, count, condition, min(max(2 * count, 200), EFFORT))
        if len(found) == count:
            return found
        wanted = min(count, self._admitted(condition))
        if len(found) < wanted:
            found = self._ask(query, count, condition, EFFORT)
        if len(found) < wanted and condition:
            found = [
                (int(row["uid"]), float(np.asarray(row["vector"], np.float32) @ query))
                for rows in self._pages(condition, ["uid", "vector"])
                for row in rows
            ]
        return found

    def _ask(
        self, query: Vectors, count: int, condition: str, effort: int
    ) -> list[tuple[int, float]]:
        with self._explained():
            (found,) = self._client.search(
                self.name,
                data=[query.tolist()],
                limit=min(2 * count, MOST) if self._doubled else count,
                filter=condition,
                output_fields=["uid"],
                search_params={"metric_type": "IP", "params": {"ef": effort}},
            )
        products = {int(hit["entity"]["uid"]): float(hit["distance"]) for hit in found}
        return list(products.items())[:count]

    def _admitted(self, condition: str) -> int:
        """Return for how many entries a condition holds; nothing is one that holds for all."""
        if not condition:
            return len(self)
        with self._explained():
            found = self._client.query(self.name, filter=condition, output_fields=["count(*)"])
        return int(found[0]["count(*)"])

    def get(self, uids: Sequence[int]) -> list[Entry]:
        """Return entries by uid."""
        there = {int(row["uid"]): from_row(row) for row in self._by_uid(uids, list(COLUMNS))}
        return [there[uid] for uid in map(int, uids) if uid in there]

    def vectors(self, uids: Sequence[int]) -> Vectors:
        """Return vectors by uid."""
        there = {int(row["uid"]): row["vector"] for row in self._by_uid(uids, ["uid", "vector"])}
        rows = all_of(there, uids, self.uri)
        return np.array(rows, np.float32).reshape(-1, self.width)

    def _by_uid(self, uids: Sequence[int], columns: list[str]) -> Iterator[dict[str, Any]]:
        for part in uid_parts(uids, PART):
            with self._explained():
                found = self._client.query(
                    self.name, filter=part, output_fields=columns, limit=2 * PART
                )
            yield from found

    def every(self, where: Where | None = None) -> Iterator[list[Entry]]:
        """Give all entries that a filter admits, looking here at what Milvus was not told."""
        for rows in self._pages(pushed(where) if where else "", list(COLUMNS)):
            entries = [from_row(row) for row in rows]
            yield [entry for entry in entries if not where or where.admits(entry)]

    def _pages(self, condition: str, columns: list[str]) -> Iterator[list[dict[str, Any]]]:
        """Give the rows for which a condition holds, some at a time, each once, by rising uid."""
        last = -1
        with self._explained():
            pages = self._client.query_iterator(
                self.name,
                batch_size=PART,
                filter=condition or "uid >= 0",
                output_fields=columns,
            )
            try:
                while rows := pages.next():
                    once = {int(row["uid"]): row for row in rows}
                    once.pop(last, None)
                    last = max(once, default=last)
                    yield list(once.values())
            finally:
                pages.close()

    def tidy(self, when: Tidying = "after") -> None:
        """Have Milvus write out what it holds."""
        if when == "unchanged":
            return
        try:
            with self._explained():
                self._client.flush(self.name)
        except InputError as error:
            # Milvus Lite has nothing new to write out since it was killed.
            if not self._doubled or "current_seq is monotonic" not in str(error):
                raise
        else:
            self._doubled = False

    def refresh(self) -> None:
        """Count anew; all else is read from Milvus each time anyway."""
        self._count = None

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
        release(self.uri)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        with explained(self.uri):
            yield
