"""Milvus Lite, killed while it writes out what it holds, or before it has cleared its log."""

from pathlib import Path

import pytest

from crossgaze.search.repair import newest_entries
from engine_parts import WIDTH, entry, ranked, vectors

pytest.importorskip("pymilvus", reason="needs crossgaze[search]")
pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")


def killed_in_between(engine, kept):
    """Bring a Milvus Lite into the state in which such a kill leaves it, with these logs."""
    log = Path(engine.uri) / "collections" / engine.name / "wal"
    kept = {path: path.read_bytes() for path in log.glob(kept)}
    assert kept
    engine.tidy()
    engine.close()
    assert not list(log.iterdir())
    for path, content in kept.items():
        path.write_bytes(content)


@pytest.mark.parametrize("kept", ["*", "wal_data_*"])
def test_every_entry_is_there_once(tmp_path, monkeypatch, kept):
    """The next writer removes the older of two entries: of one that is listed twice, both.

    Of two logs it may have cleared one: it then refuses to write out what is nothing new.
    """
    monkeypatch.setattr("crossgaze.search.milvus.PART", 10)
    from crossgaze.search.milvus import MilvusEngine

    uri, rows, query = str(tmp_path / "milvus.db"), vectors(21), vectors(1, seed=9)[0]
    engine = MilvusEngine(uri, "photos", WIDTH, create=True)
    engine.add([entry(n + 1) for n in range(20)], rows[:20])
    engine.tidy()
    engine.update([entry(3, tags=("mine",))])
    engine.delete([5])
    engine.add([entry(21)], rows[20:])
    killed_in_between(engine, kept)
    there = {n + 1: (entry(n + 1), rows[n]) for n in range(21) if n + 1 != 5}
    for more in (0, 0, 1):
        engine = MilvusEngine(uri, "photos", WIDTH)
        if more:
            engine.add([entry(22)], 0 * rows[:1])
            there[22] = entry(22), 0 * rows[0]
            engine.tidy()
        assert sorted(one.uid for part in engine.every() for one in part) == sorted(there)
        assert len(engine) == 20 + more
        assert newest_entries(engine)[1] == []
        assert [one.tags for one in engine.get([3])] == [("mine",)]
        assert len(engine.vectors(sorted(there))) == 20 + more
        for count in (5, 20, 30):
            wanted, products = ranked(there, query, count)
            uids, scores = engine.search(query, count, None)
            assert uids.tolist() == wanted
            assert scores.tolist() == pytest.approx(products, abs=1e-4)
        engine.tidy("compact")
        engine.close()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_half_written_index_is_made_anew(tmp_path, stopped):
    from crossgaze.search.milvus import MilvusEngine

    uri, rows, query = str(tmp_path / "milvus.db"), vectors(20), vectors(1, seed=9)[0]
    engine = MilvusEngine(uri, "photos", WIDTH, create=True)
    engine.add([entry(n + 1) for n in range(20)], rows)
    engine.tidy()
    if stopped:  # and in mid-mending
        engine._client.release_collection("photos")
        engine._client.drop_index("photos", "vector")
    engine.close()
    files = list(tmp_path.rglob("*.idx"))
    assert len(files) == (0 if stopped else 1)
    for path in files:
        path.write_bytes(path.read_bytes()[:50])
    there = {n + 1: (entry(n + 1), rows[n]) for n in range(20)}
    for _ in range(2):
        engine = MilvusEngine(uri, "photos", WIDTH)
        assert engine.search(query, 5, None)[0].tolist() == ranked(there, query, 5)[0]
        engine.close()
