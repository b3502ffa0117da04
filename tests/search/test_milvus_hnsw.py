"""Milvus's approximate index, with enough vectors for it to be one, in Lite and in a server."""

import numpy as np
import pytest

from crossgaze.search.entries import Entry
from crossgaze.search.filters import Where
from crossgaze.search.milvus import EFFORT, MilvusEngine
from engine_parts import WHERES, fill, make, ranked, vectors

COUNT, WIDTH, LATENT = 6000, 64, 12


def rows_of(count, seed):
    """Unit vectors near a plane of 12 dimensions, always the same plane."""
    plane = np.random.default_rng(7).standard_normal((LATENT, WIDTH))
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, LATENT)) @ plane + 0.1 * rng.standard_normal((count, WIDTH))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def nearest(there, query, count, admitted=lambda uid: True):
    uids = np.array([uid for uid in there if admitted(uid)])
    products = np.stack([there[uid] for uid in uids.tolist()]) @ query
    return uids[np.argsort(-products, kind="stable")[:count]].tolist()


def require_near(engine, there):
    """Nearly all of the nearest are found, and with a narrow filter every one that it admits."""
    found, few = [], []
    for query in rows_of(20, seed=9):
        uids, scores = engine.search(query, 100, None)
        assert len(uids) == 100
        products = [float(there[uid] @ query) for uid in uids.tolist()]
        assert scores.tolist() == pytest.approx(products, abs=1e-4)
        found.append(len(set(uids.tolist()) & set(nearest(there, query, 100))) / 100)
        narrow = nearest(there, query, 50, lambda uid: 3000 <= uid <= 3019)
        for where in (Where(since=3000, until=3020), Where(tags=("rare",))):
            assert engine.search(query, 50, where)[0].tolist() == narrow
        some = nearest(there, query, 50, lambda uid: 2000 <= uid < 3000)
        uids = engine.search(query, 50, Where(since=2000, until=3000))[0].tolist()
        assert len(uids) == 50
        few.append(len(set(uids) & set(some)) / 50)
    assert np.mean(found) >= 0.95
    assert np.mean(few) >= 0.95


def check_hnsw(engine):
    """Fill an empty engine, have it write out and index, change it, and look each time."""
    made = engine._client.describe_index(engine.name, engine._client.list_indexes(engine.name)[0])
    assert made["index_type"] == "HNSW"
    rows = rows_of(COUNT, seed=0)
    there = {n + 1: row for n, row in enumerate(rows)}
    entries = [
        Entry(uid, f"/p/{uid}.jpg", "/p", taken=uid, tags=("rare",) if 3000 <= uid < 3020 else ())
        for uid in there
    ]
    for start in range(0, COUNT, 2000):
        engine.add(entries[start : start + 2000], rows[start : start + 2000])
    engine.tidy()
    assert len(engine) == COUNT
    require_near(engine, there)
    # What is best for a query goes, another entry is written anew, one comes.
    query = rows_of(20, seed=9)[0]
    gone = nearest(there, query, 10)
    engine.delete(gone)
    for uid in gone:
        del there[uid]
    kept = next(uid for uid in there if uid not in range(3000, 3020))
    engine.update([Entry(kept, "/q/new.jpg", "/q", taken=kept)])
    engine.add([Entry(9000, "/p/9000.jpg", "/p", taken=9000)], query[None])
    there[9000] = query
    require_near(engine, there)
    engine.tidy()
    require_near(engine, there)
    assert engine.search(query, 1, None)[0].tolist() == [9000]
    assert not set(engine.search(query, 100, None)[0].tolist()) & set(gone)
    assert engine.get([kept])[0].key == "/q/new.jpg"


def test_where_hnsw_finds_too_few_it_walks_further_and_then_all_are_compared(tmp_path, monkeypatch):
    pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    engine = make("milvus", tmp_path)
    there = fill(engine)
    query = vectors(1, seed=9)[0]
    ask, efforts = MilvusEngine._ask, []

    def lose(engine, query, count, condition, effort):
        efforts.append(effort)
        return ask(engine, query, count, condition, effort)[:1]

    monkeypatch.setattr(MilvusEngine, "_ask", lose)
    for where in WHERES:
        if where is None or where.path == "*":  # they admit all
            continue
        uids, scores = engine.search(query, 7, where)
        wanted, products = ranked(there, query, 7, where)
        assert uids.tolist() == wanted
        assert scores.tolist() == pytest.approx(products, abs=1e-5)
    assert set(efforts) == {200, EFFORT}
    # All are never read for a search without a filter, which may be of millions.
    assert len(engine.search(query, 7, None)[0]) == 1
    engine.close()


@pytest.mark.slow
def test_the_index_of_milvus_lite(tmp_path):
    pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    pytest.importorskip("faiss", reason="Milvus Lite has HNSW where faiss is installed")
    engine = MilvusEngine(str(tmp_path / "milvus.db"), "photos", WIDTH, create=True)
    check_hnsw(engine)
    engine.close()
