"""What the tests of engines share: small engines, entries, vectors, the definition of a search."""

import numpy as np
import pytest

from crossgaze.search.entries import Entry
from crossgaze.search.filters import Where
from crossgaze.search.memory import MemoryEngine

WIDTH = 4
MORE = 60  # entries that come at a time to an approximate index such as this:
SMALL = {"PARTITION": 200, "UNINDEXED": 50, "FILES": 7, "SEGMENTS": 2}  # of search/lance.py


def make(kind, folder):
    if kind == "memory":
        return MemoryEngine(WIDTH)
    if kind == "milvus":
        pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
        from crossgaze.search.milvus import MilvusEngine

        return MilvusEngine(str(folder / "milvus.db"), "photos", WIDTH, create=True)
    from crossgaze.search.lance import LanceEngine

    exact = 0 if kind == "lance files" else 1000
    return LanceEngine(folder / "db", "photos", WIDTH, create=True, exact=exact)


KINDS = ["memory", "lance", "lance files", "milvus"]


def entry(uid, path=None, **more):
    return Entry(uid, path or f"/p/it's {uid}%_\\.jpg", "/p", bytes=uid * 10, taken=uid, **more)


def vectors(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, WIDTH)).astype(np.float32)


def ranked(rows, query, count, where=None):
    """The definition: every entry that is admitted, by falling product, then by rising uid."""
    found = []
    for one, vector in rows.values():
        if where is None or where.admits(one):
            product = sum(float(a) * float(b) for a, b in zip(vector, query, strict=True))
            found.append((-product, one.uid))
    found.sort()
    return [uid for _, uid in found[:count]], [-score for score, _ in found[:count]]


def fill(engine, count=60):
    rows = vectors(count)
    entries = [entry(n + 1, tags=("odd",) if n % 2 else ()) for n in range(count)]
    engine.add(entries[:40], rows[:40])
    engine.add(entries[40:], rows[40:])
    return {one.uid: (one, row) for one, row in zip(entries, rows, strict=True)}


WHERES = [
    None,
    Where(path="*"),
    Where(path="/p/*"),
    Where(path="it's 1*"),
    Where(path="it's ?2%_*"),
    Where(path="*\\.jpg"),
    Where(path="*jpeg"),
    Where(tags=("odd",)),
    Where(tags=("odd", "none")),
    Where(since=10, until=20),
    Where(least_bytes=100, most_bytes=150, tags=("odd",), path="/p/*"),
]
