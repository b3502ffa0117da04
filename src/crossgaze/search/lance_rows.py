"""Entries as LanceDB keeps them: its columns, a batch of rows, conditions in its SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crossgaze.search.engine import Vectors
from crossgaze.search.entries import COLUMNS, NUMBERS, Entry
from crossgaze.search.filters import Where


def sql(where: Where) -> str:
    """Return a filter as a condition of LanceDB, every text quoted.

    Example:
        >>> sql(Where(path="it's/*", least_bytes=10))
        "bytes >= 10 AND key LIKE '%/it''s/%'"
    """
    parts = [f"{column} {sign} {value}" for column, sign, value in where.ranges()]
    if where.pattern is not None:
        signs = {"*": "%", "?": "_", "%": r"\%", "_": r"\_", "\\": r"\\"}
        parts.append(f"key LIKE {_quoted(''.join(signs.get(s, s) for s in where.pattern))}")
    parts += [f"array_has(tags, {_quoted(tag)})" for tag in where.tags]
    return " AND ".join(parts)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def among(uids: Sequence[int]) -> str:
    """Return the condition that an entry is one of these."""
    return f"uid IN ({', '.join(str(int(uid)) for uid in uids)})" if len(uids) else "false"


def schema_of(width: int) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Return the columns of a table whose vectors have so many numbers."""
    import pyarrow as pa

    kinds = {"tags": pa.list_(pa.string())} | {name: pa.int64() for name in NUMBERS}
    fields = [(name, kinds.get(name, pa.string())) for name in COLUMNS]
    fields += [("vector", pa.list_(pa.float32(), width))]
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields])


def batch_of(entries: Sequence[Entry], vectors: Vectors) -> Any:  # noqa: ANN401
    """Return entries and their (N, D) vectors as a table of pyarrow."""
    import pyarrow as pa

    schema = schema_of(vectors.shape[1])
    columns = [
        pa.array([getattr(entry, name) for entry in entries], schema.field(name).type)
        for name in COLUMNS
    ]
    flat = pa.array(vectors.reshape(-1), pa.float32())
    columns.append(pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]))
    return pa.Table.from_arrays(columns, schema=schema)
