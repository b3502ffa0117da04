"""LanceDB's approximate index, over enough vectors for it to be made, against the definition."""

import numpy as np
import pytest

from crossgaze.search.filters import Where
from engine_parts import WIDTH, entry, fill, ranked, vectors

pytest.importorskip("lancedb", reason="needs crossgaze[search]")


@pytest.mark.parametrize("partition", [100, 100_000])
def test_the_approximate_index_finds_what_is_nearest(tmp_path, monkeypatch, partition):
    from crossgaze.search.lance import LanceEngine

    monkeypatch.setattr("crossgaze.search.lance.PARTITION", partition)
    rows = vectors(600)
    engine = LanceEngine(tmp_path / "db", "photos", WIDTH, create=True, exact=500)
    engine.add([entry(n + 1) for n in range(600)], rows)
    engine.tidy()
    assert engine._table.list_indices()
    engine.add([entry(601)], 10 * rows[:1])  # not in the index, and found all the same
    hits = 0
    for query in vectors(10, seed=3):
        uids, scores = engine.search(query, 10, None)
        products = np.concatenate([rows, 10 * rows[:1]]) @ query
        exact = set((np.argsort(-products)[:10] + 1).tolist())
        hits += len(exact & set(uids.tolist()))
        assert scores.tolist() == pytest.approx(products[uids - 1].tolist(), abs=1e-4)
    assert hits >= 95
    assert engine.search(rows[0], 1, None)[0].tolist() == [601]


def test_memory_is_what_bounds_the_entries_that_are_held(tmp_path, monkeypatch):
    from crossgaze.search import lance

    for width in (64, 512, 1024):
        held = lance.entries_held(width)
        assert held * 4 * width < 600e6
        assert held * (4 * width + 600) == pytest.approx(660e6, rel=0.01)
    monkeypatch.setattr(lance, "HELD", 50 * (4 * WIDTH + 600))
    engine = lance.LanceEngine(tmp_path / "db", "photos", WIDTH, create=True)
    there = fill(engine, 50)
    assert engine._held() is not None
    engine.add([entry(51)], vectors(1, seed=5))
    there[51] = (entry(51), vectors(1, seed=5)[0])
    assert engine._held() is None
    query = vectors(1, seed=9)[0]
    assert engine.search(query, 7, None)[0].tolist() == ranked(there, query, 7)[0]


def many(tmp_path, count=600):
    """An engine with an approximate index, and what is in it."""
    from crossgaze.search.lance import LanceEngine

    engine = LanceEngine(tmp_path / "db", "photos", WIDTH, create=True, exact=500)
    rows = vectors(count)
    entries = [entry(n + 1, tags=("rare",) if n % 60 == 0 else ()) for n in range(count)]
    engine.add(entries, rows)
    engine.tidy()
    return engine, {one.uid: (one, row) for one, row in zip(entries, rows, strict=True)}


@pytest.mark.parametrize("most", [5000, 200])
def test_the_approximate_index_gives_as_many_as_are_asked_for(tmp_path, monkeypatch, most):
    """A search asks for hundreds of candidates; HNSW refuses an effort below what it must find."""
    monkeypatch.setattr("crossgaze.search.lance.MOST", most)
    monkeypatch.setattr("crossgaze.search.lance.PARTITION", 100)
    engine, there = many(tmp_path)
    query = vectors(1, seed=9)[0]
    for count in (1, 100, 250, 500, 600, 1000):
        uids, _ = engine.search(query, count, None)
        wanted, _ = ranked(there, query, count)
        assert len(uids) == len(wanted)
        assert len(set(uids.tolist()) & set(wanted)) >= 0.95 * len(wanted)


def test_a_narrow_filter_finds_all_it_admits_in_whatever_partition(tmp_path, monkeypatch):
    monkeypatch.setattr("crossgaze.search.lance.PROBES", 1)
    monkeypatch.setattr("crossgaze.search.lance.PARTITION", 100)
    engine, there = many(tmp_path)
    query = vectors(1, seed=9)[0]
    for where in (Where(tags=("rare",)), Where(since=590), Where(path="/p/it's 1*")):
        wanted, products = ranked(there, query, 100, where)
        uids, scores = engine.search(query, 100, where)
        assert uids.tolist() == wanted[: len(uids)]
        assert len(uids) == len(wanted)
        assert scores.tolist() == pytest.approx(products, abs=1e-4)


def test_the_approximate_index_follows_changes_and_a_second_tidy(tmp_path):
    engine, there = many(tmp_path)
    query = vectors(1, seed=9)[0]

    def look():
        for count, where in ((10, None), (100, None), (100, Where(tags=("rare",)))):
            uids, scores = engine.search(query, count, where)
            wanted, products = ranked(there, query, count, where)
            assert len(uids) == len(wanted)
            assert len(set(uids.tolist()) & set(wanted)) >= 0.95 * len(wanted)
            assert scores[:1].tolist() == pytest.approx(products[:1], abs=1e-4)
        assert len(engine) == len(there)

    best_ten = ranked(there, query, 10)[0]
    engine.delete(best_ten[:5])
    for uid in best_ten[:5]:
        del there[uid]
    moved = [entry(uid, path=f"/q/{uid}.jpg", tags=("rare",)) for uid in best_ten[5:]]
    engine.update(moved)  # its vectors stay; the rows are written anew, outside of the index
    there |= {one.uid: (one, there[one.uid][1]) for one in moved}
    more = [entry(700 + n) for n in range(50)]
    rows = vectors(50, seed=4)
    engine.add(more, rows)
    there |= {one.uid: (one, row) for one, row in zip(more, rows, strict=True)}
    look()
    engine.tidy()
    look()
    engine.delete([more[0].uid])
    del there[more[0].uid]
    engine.tidy()
    look()
    assert engine.get([best_ten[0], best_ten[9]]) == [there[best_ten[9]][0]]


def test_a_search_does_not_count_the_rows_again(tmp_path, monkeypatch):
    engine, _ = many(tmp_path)
    query = vectors(1)[0]
    engine.search(query, 3, None)
    asked = []
    count = type(engine._table).count_rows
    monkeypatch.setattr(
        type(engine._table), "count_rows", lambda table, *a: asked.append(a) or count(table, *a)
    )
    uids, _ = engine.search(query, 3, None)
    assert len(engine.get(uids.tolist())) == 3
    assert asked == []
    engine.delete([1])
    assert len(engine) == 599
    assert len(asked) == 1


def test_few_partitions_are_looked_into_the_harder(tmp_path, monkeypatch):
    """As deep into one graph of all as into all of several together."""
    from crossgaze.search import lance

    monkeypatch.setattr(lance, "PARTITION", 100)
    engine, _ = many(tmp_path)  # 600: six parts
    asked = []
    make = lance.effort_of
    monkeypatch.setattr(lance, "effort_of", lambda *how: asked.append(how) or make(*how))
    engine.search(vectors(1)[0], 10, None)
    assert asked == [(6, 40)]
    assert [lance.effort_of(parts, 400) for parts in (1, 2, 5, 24)] == [2000, 1000, 800, 800]


def test_an_index_that_has_doubled_is_divided_anew(tmp_path, monkeypatch):
    from crossgaze.search import lance

    monkeypatch.setattr(lance, "PARTITION", 200)
    engine, there = many(tmp_path)
    reader = lance.LanceEngine(tmp_path / "db", "photos", WIDTH, exact=500)
    assert (engine._partitions(), reader._partitions()) == (3, 3)
    for count, parts in ((100, 3), (600, 6)):  # 700: three and a half; 1300: twice as many
        first = max(there) + 1
        more, rows = [entry(first + n) for n in range(count)], vectors(count, seed=first)
        engine.add(more, rows)
        there |= {one.uid: (one, row) for one, row in zip(more, rows, strict=True)}
        engine.tidy()
        assert engine._partitions() == parts
        assert engine._vector_indices() == [f"vector_in_{parts}"]
    reader.refresh()
    assert reader._partitions() == 6
    query = vectors(1, seed=9)[0]
    for one in (engine, reader):
        uids, _ = one.search(query, 100, None)
        assert len(set(uids.tolist()) & set(ranked(there, query, 100)[0])) >= 95


def test_an_index_that_a_stopped_division_left_goes_with_the_next_tidy(tmp_path, monkeypatch):
    from crossgaze.search import lance

    monkeypatch.setattr(lance, "PARTITION", 200)
    engine, there = many(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(lance, "PARTITION", 100)  # the next is made of six, the old one stays
        engine.make_index()
    assert sorted(engine._vector_indices()) == ["vector_in_3", "vector_in_6"]
    query = vectors(1, seed=9)[0]
    wanted = set(ranked(there, query, 100)[0])
    assert len(set(engine.search(query, 100, None)[0].tolist()) & wanted) >= 95
    engine.tidy()
    assert engine._vector_indices() == ["vector_in_6"]
    assert len(set(engine.search(query, 100, None)[0].tolist()) & wanted) >= 95
