"""Milvus Lite, killed after it wrote out what it holds and before it cleared its log."""

from pathlib import Path

import pytest

from crossgaze.search.repair import newest_entries
from engine_parts import WIDTH, entry, ranked, vectors

pytest.importorskip("pymilvus", reason="needs crossgaze[search]")
pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")


def killed_in_between(engine):
    """Bring a Milvus Lite into the state in which such a kill leaves it."""
    log = Path(engine.uri) / "collections" / engine.name / "wal"
    kept = {path: path.read_bytes() for path in log.iterdir()}
    assert kept
    engine.tidy()
    engine.close()
    assert not list(log.iterdir())
    for path, content in kept.items():
        path.write_bytes(content)


def test_every_entry_is_there_once(tmp_path):
    """The next writer removes the older of two entries: of one that is listed twice, both."""
    from crossgaze.search.milvus import MilvusEngine

    uri, rows, query = str(tmp_path / "milvus.db"), vectors(21), vectors(1, seed=9)[0]
    engine = MilvusEngine(uri, "photos", WIDTH, create=True)
    engine.add([entry(n + 1) for n in range(20)], rows[:20])
    engine.tidy()
    engine.update([entry(3, tags=("mine",))])
    engine.delete([5])
    engine.add([entry(21)], rows[20:])
    killed_in_between(engine)
    there = {n + 1: (entry(n + 1), rows[n]) for n in range(21) if n + 1 != 5}
    for _ in range(2):  # the second finds nothing to mend
        engine = MilvusEngine(uri, "photos", WIDTH)
        assert sorted(one.uid for part in engine.every() for one in part) == sorted(there)
        assert len(engine) == 20
        assert newest_entries(engine)[1] == []
        assert [one.tags for one in engine.get([3])] == [("mine",)]
        wanted, products = ranked(there, query, 20)
        uids, scores = engine.search(query, 20, None)
        assert uids.tolist() == wanted
        assert scores.tolist() == pytest.approx(products, abs=1e-4)
        engine.close()
