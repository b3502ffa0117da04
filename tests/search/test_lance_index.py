"""LanceDB's approximate index, over enough vectors for it to be made, against the definition."""

import subprocess
import sys
from pathlib import Path

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
    import lancedb

    from crossgaze.search import lance

    assert [lance.effort_of(parts, 400) for parts in (1, 2, 5, 24)] == [2000, 1000, 800, 800]
    monkeypatch.setattr(lance, "LEAST", 1)
    engine, _ = many(tmp_path)
    query = lancedb.query.LanceVectorQueryBuilder
    asked, ask = [], query.ef
    monkeypatch.setattr(query, "ef", lambda self, effort: asked.append(effort) or ask(self, effort))
    for partition in (1000, 200, 100):  # 600: one part, three, six
        monkeypatch.setattr(lance, "PARTITION", partition)
        engine.search(vectors(1)[0], 10, None)
    assert asked == [2000, 666, 333]


def add_more(engine, there, count):
    first = max(there) + 1
    more, rows = [entry(first + n) for n in range(count)], vectors(count, seed=first)
    engine.add(more, rows)
    there |= {one.uid: (one, row) for one, row in zip(more, rows, strict=True)}


def finds_nearly_all(engine, there):
    query = vectors(1, seed=9)[0]
    uids, _ = engine.search(query, 100, None)
    return len(set(uids.tolist()) & set(ranked(there, query, 100)[0])) >= 95


@pytest.fixture
def small(monkeypatch):
    """An engine that tidies after 50 rows, and makes its index anew beyond three segments."""
    from crossgaze.search import lance

    for name, value in {"PARTITION": 200, "UNINDEXED": 50, "FILES": 7, "SEGMENTS": 3}.items():
        monkeypatch.setattr(lance, name, value)


def test_what_was_added_is_taken_into_segments_and_of_many_one_is_made(tmp_path, small):
    """LanceDB makes a segment each time; a search goes through all of them."""
    engine, there = many(tmp_path)
    segments = []
    for _ in range(7):
        add_more(engine, there, 60)
        engine.tidy()
        segments.append(engine._vector_index().num_segments)
        assert engine._vector_index().num_unindexed_rows == 0
        assert finds_nearly_all(engine, there)
    assert max(segments) == 3
    assert segments.count(1) >= 1


def test_a_little_that_was_added_is_left_beside_the_index(tmp_path, small):
    """Else an index that is watched, a photograph at a time, would be nothing but segments."""
    engine, there = many(tmp_path)
    before = engine._vector_index()
    for _ in range(5):
        add_more(engine, there, 1)
        engine.tidy()
        assert engine._vector_index().num_segments == before.num_segments
    assert engine._vector_index().num_unindexed_rows == 5
    assert finds_nearly_all(engine, there)
    for _ in range(4):  # too many files now
        add_more(engine, there, 1)
        engine.tidy()
    assert engine._vector_index().num_unindexed_rows < 5
    assert finds_nearly_all(engine, there)
    engine.tidy("compact")
    assert engine._vector_index().num_segments == 1
    assert engine._vector_index().num_unindexed_rows == 0


def test_nothing_slow_is_done_in_mid_run_and_what_was_stopped_is_made_up_for(tmp_path, small):
    from crossgaze.search.lance import LanceEngine

    engine = LanceEngine(tmp_path / "db", "photos", WIDTH, create=True, exact=500)
    there = {0: None}
    add_more(engine, there, 600)
    del there[0]
    engine.tidy("during")
    assert engine._vector_index() is None
    engine.tidy("unchanged")  # by the next run, after one that was killed before it tidied
    assert engine._vector_index().num_segments == 1
    for _ in range(5):
        add_more(engine, there, 60)
        engine.tidy("during")
    assert engine._vector_index().num_segments > 3
    assert finds_nearly_all(engine, there)
    engine.tidy()
    assert engine._vector_index().num_segments <= 3
    assert finds_nearly_all(engine, there)


def test_the_parts_stay_when_a_little_is_added(tmp_path, monkeypatch):
    """LanceDB joins parts that are small for the size it was told, and told a number it takes its
    own, which is a million: then one photograph more had it join them for minutes.
    """
    from crossgaze.search import lance

    monkeypatch.setattr(lance, "PARTITION", 200)
    monkeypatch.setattr(lance, "UNINDEXED", 1)
    engine, there = many(tmp_path, 1000)
    assert lance.partitions_of(1000) == 5
    before = {path: path.read_bytes() for path in tmp_path.rglob("_indices/*/*.idx")}
    add_more(engine, there, 1)
    engine.tidy()
    assert engine._vector_index().num_segments == 2
    assert len(before) == 2
    # As many graphs as it was reckoned with: each says where a search enters it.
    graphs = [content.count(b"entry_point") for content in before.values()]
    assert sorted(graphs) == [0, lance.partitions_of(1000)]
    assert {path: path.read_bytes() for path in before} == before  # it was added to, not made anew


def test_rows_written_anew_are_taken_into_the_index_by_whatever_run_comes_next(tmp_path, small):
    """A tag for all photographs takes all of them out of the index; so does a stopped run's end."""
    engine, there = many(tmp_path)
    engine.update([one for one, _ in there.values()])
    assert engine._vector_index().num_unindexed_rows == 600
    engine.tidy("unchanged")
    assert engine._vector_index().num_unindexed_rows == 0
    add_more(engine, there, 300)  # and was killed before it tidied
    assert engine._vector_index().num_unindexed_rows == 300
    engine.tidy("unchanged")
    assert engine._vector_index().num_unindexed_rows == 0
    assert finds_nearly_all(engine, there)
    before = engine._table.version
    engine.tidy("unchanged")
    assert engine._table.version == before  # nothing to do is nothing done


def test_an_index_of_another_name_goes_when_it_is_made_anew(tmp_path, small):
    from lancedb.index import HnswSq

    engine, there = many(tmp_path)
    engine._table.create_index("vector", config=HnswSq(distance_type="dot"), name="vector_in_3")
    assert len(engine._table.list_indices()) == 3
    engine.make_index()
    names = sorted(one.name for one in engine._table.list_indices())
    assert names == ["uid_idx", "vector_idx"]
    assert finds_nearly_all(engine, there)


QUIET = """
import sys
from pathlib import Path
from crossgaze.search import lance
sys.path.insert(0, sys.argv[2])
from engine_parts import WIDTH, entry, vectors
lance.PARTITION, lance.UNINDEXED = 200, 1
engine = lance.LanceEngine(Path(sys.argv[1]), "photos", WIDTH, create=True, exact=500)
for first, count in ((1, 600), (601, 1)):
    engine.add([entry(first + n) for n in range(count)], vectors(count))
    engine.tidy()
print(engine._vector_index().num_segments)
"""


def test_nobody_is_told_of_the_empty_parts_of_a_segment(tmp_path):
    """LanceDB warns of them on stderr, where a user looks for what went wrong."""
    words = [sys.executable, "-c", QUIET, tmp_path / "db", Path(__file__).parents[1]]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_tags_and_removals_leave_the_index_in_use(tmp_path, monkeypatch):
    """Whatever a run changes, the approximate index holds the photographs when it has ended."""
    import search_parts
    from crossgaze.search import adding, lance

    for name, value in {"HELD": 0, "UNINDEXED": 5, "FILES": 3}.items():
        monkeypatch.setattr(lance, name, value)
    monkeypatch.setattr(adding, "UPDATED", 7)
    search_parts.save_models(tmp_path)
    for number in range(30):
        search_parts.make_photo(tmp_path / "photos" / f"{number:02}.png", number)
    with search_parts.create(tmp_path) as index:
        engine = index.tables.photos
        index.add(tmp_path / "photos")
        assert engine._vector_index().num_indexed_rows == 30
        report = index.add(tmp_path / "photos", tags=["mine"])
        assert report.touched == 30
        assert engine._vector_index().num_unindexed_rows < 5
        found = index.search("a red dog", k=30, where=Where(tags=("mine",)))
        assert len(found.hits) == 30
        engine.update([entry for part in engine.every() for entry in part])
        assert index.remove(Where(path="*1.png")) == 3
        assert engine._vector_index().num_unindexed_rows < 5
        assert len(index.search("a red dog", k=30).hits) == 27
