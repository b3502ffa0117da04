"""Every engine against a dictionary and loops: the same calls, the same answers."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossgaze.errors import FileFormatError, InputError
from crossgaze.search.engine import OutOfDateError, best
from crossgaze.search.entries import from_row, to_row
from crossgaze.search.filters import Where
from crossgaze.search.memory import MemoryEngine
from engine_parts import KINDS, WHERES, WIDTH, entry, fill, make, ranked, vectors

lancedb = pytest.importorskip("lancedb", reason="needs crossgaze[search]")


@pytest.fixture(params=KINDS)
def engine(request, tmp_path):
    made = make(request.param, tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("where", WHERES, ids=str)
def test_search_is_the_definition(engine, where):
    there = fill(engine)
    query = vectors(1, seed=9)[0]
    for count in (1, 7, 100):
        uids, scores = engine.search(query, count, where)
        wanted, products = ranked(there, query, count, where)
        assert uids.tolist() == wanted
        assert scores.tolist() == pytest.approx(products, abs=1e-5)
    admitted = {uid for uid, (one, _) in there.items() if where is None or where.admits(one)}
    assert {one.uid for part in engine.every(where) for one in part} == admitted


def test_add_update_delete_and_get(engine):
    there = fill(engine)
    assert len(engine) == 60
    engine.delete([3, 5, 999])
    assert len(engine) == 58
    new = entry(7, path="/q/new é \U0001f600.jpg", tags=("a", 'b"c'), digest="d", width=3)
    engine.update([new])
    assert engine.get([9, 3, 7, 1]) == [there[9][0], new, there[1][0]]
    assert engine.vectors([9, 7]).tolist() == [there[9][1].tolist(), there[7][1].tolist()]
    assert [one.uid for part in engine.every(Where(tags=('b"c',))) for one in part] == [7]
    uids, _ = engine.search(there[7][1], 1, Where(path="/q/*"))
    assert uids.tolist() == [7]
    engine.tidy()
    engine.refresh()
    assert len(engine) == 58
    engine.delete([])
    engine.update([])
    assert engine.get([]) == []
    assert engine.vectors([]).shape == (0, WIDTH)


def test_an_empty_engine_finds_nothing(engine):
    assert len(engine) == 0
    assert engine.search(vectors(1)[0], 3, None)[0].tolist() == []
    assert list(engine.every()) in ([], [[]])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((1, WIDTH + 1), np.float32), r"vectors: got shape \(1, 5\), wanted \(1, 4\)"),
        (np.full((1, WIDTH), np.nan, np.float32), "vectors: that of .* is not finite"),
    ],
)
def test_wrong_vectors_are_refused_and_nothing_is_added(engine, rows, message):
    with pytest.raises(InputError, match=message):
        engine.add([entry(1)], rows)
    assert len(engine) == 0


@pytest.mark.parametrize("kind", ["lance", "milvus"])
def test_what_was_added_is_there_for_the_next_process(kind, tmp_path):
    engine = make(kind, tmp_path)
    there = fill(engine)
    engine.close()
    if kind == "lance":
        from crossgaze.search.lance import LanceEngine

        again = LanceEngine(tmp_path / "db", "photos", WIDTH)
    else:
        from crossgaze.search.milvus import MilvusEngine

        again = MilvusEngine(str(tmp_path / "milvus.db"), "photos", WIDTH)
    assert len(again) == 60
    assert again.get([8]) == [there[8][0]]
    again.close()


def test_another_schema_is_refused(tmp_path):
    from crossgaze.search.lance import LanceEngine

    make("lance", tmp_path)
    with pytest.raises(FileFormatError, match="has other columns than are wanted: uid int64"):
        LanceEngine(tmp_path / "db", "photos", WIDTH + 1)
    with pytest.raises(FileFormatError, match="LanceDB cannot work with it"):
        LanceEngine(tmp_path / "db", "nothing", WIDTH)


def test_another_milvus_schema_is_refused(tmp_path):
    make("milvus", tmp_path).close()
    from crossgaze.search.milvus import MilvusEngine

    uri = str(tmp_path / "milvus.db")
    with pytest.raises(InputError, match=r"column 'vector' .* wanted \('FLOAT_VECTOR', 5"):
        MilvusEngine(uri, "photos", WIDTH + 1)
    with pytest.raises(InputError, match="has no collection 'nothing'"):
        MilvusEngine(uri, "nothing", WIDTH)
    with pytest.raises(InputError, match="the collection 'photos' is there already"):
        MilvusEngine(uri, "photos", WIDTH, create=True)


def drop(schema, name):
    schema._fields = [field for field in schema.fields if field.name != name]


def rename(schema, name, into):
    (field,) = (field for field in schema.fields if field.name == name)
    field.name = into


@pytest.mark.parametrize(
    ("change", "measure", "message"),
    [
        (lambda s: drop(s, "taken"), "IP", r"column 'taken' .* is None, wanted \('INT64'"),
        (lambda s: rename(s, "tags", "words"), "IP", r"column 'tags' .* is None, wanted"),
        (
            lambda s: s.add_field("more", 5),  # INT64
            "IP",
            r"column 'more' .* is \('INT64', None, False\), wanted None",
        ),
        (lambda s: None, "L2", r"'photos' are compared by \['L2'\], wanted one index by IP"),
        (lambda s: None, "COSINE", r"are compared by \['COSINE'\], wanted one index by IP"),
    ],
    ids=["dropped", "renamed", "added", "L2", "COSINE"],
)
def test_a_milvus_that_makes_something_else_than_was_asked_is_refused(
    tmp_path, monkeypatch, change, measure, message
):
    """Both when the collection is made and when it is opened."""
    pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    from pymilvus import MilvusClient

    from crossgaze.search.milvus import MilvusEngine

    create = MilvusClient.create_collection

    def create_otherwise(client, name, *, schema, index_params, **more):
        change(schema)
        made = client.prepare_index_params()
        how = {"M": 16, "efConstruction": 200}
        made.add_index("vector", index_type="HNSW", metric_type=measure, params=how)
        create(client, name, schema=schema, index_params=made, **more)

    monkeypatch.setattr(MilvusClient, "create_collection", create_otherwise)
    uri = str(tmp_path / "milvus.db")
    with pytest.raises(InputError, match=message):
        MilvusEngine(uri, "photos", WIDTH, create=True)
    with pytest.raises(InputError, match=message):
        MilvusEngine(uri, "photos", WIDTH)


def test_two_lance_readers_see_what_a_writer_adds_when_they_look_again(tmp_path):
    from crossgaze.search.lance import LanceEngine

    writer = make("lance", tmp_path)
    reader = LanceEngine(tmp_path / "db", "photos", WIDTH)
    assert reader.search(vectors(1)[0], 3, None)[0].tolist() == []
    fill(writer)
    reader.refresh()
    assert len(reader.search(vectors(1)[0], 3, None)[0]) == 3


def test_vectors_of_what_is_gone_are_said_to_be_out_of_date(engine):
    fill(engine)
    engine.delete([3])
    with pytest.raises(OutOfDateError, match="has no entry 3 any more"):
        engine.vectors([2, 3])


def test_a_change_that_is_stopped_half_way_is_read_again(tmp_path, monkeypatch):
    """Ctrl-C between the commit and what is held in memory: the files are what counts."""
    engine = make("lance", tmp_path)
    there = fill(engine)
    query = vectors(1, seed=9)[0]
    engine.search(query, 1, None)

    def stop(*args):
        raise KeyboardInterrupt

    new, row = entry(61), vectors(1, seed=5)
    with monkeypatch.context() as patched:
        patched.setattr(MemoryEngine, "add", stop)
        with pytest.raises(KeyboardInterrupt):
            engine.add([new], row)
    there[61] = (new, row[0])
    assert engine.search(query, 61, None)[0].tolist() == ranked(there, query, 61)[0]
    with monkeypatch.context() as patched:
        patched.setattr(MemoryEngine, "delete", stop)
        with pytest.raises(KeyboardInterrupt):
            engine.delete([61, 1])
    del there[61], there[1]
    assert engine.search(query, 61, None)[0].tolist() == ranked(there, query, 61)[0]


def test_what_is_acknowledged_is_flushed(tmp_path, monkeypatch):
    """Lance does not flush its files; when a call returns, this has."""
    flushed, fsync = set(), os.fsync

    def note(handle):
        flushed.add(str(Path(f"/proc/self/fd/{handle}").readlink()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    engine = make("lance", tmp_path)
    for work in (
        lambda: engine.add([entry(1), entry(2)], vectors(2)),
        lambda: engine.update([entry(1, tags=("x",))]),
        lambda: engine.delete([2]),
        engine.tidy,
    ):
        before = {path: path.stat().st_mtime_ns for path in (tmp_path / "db").rglob("*")}
        flushed.clear()
        work()
        after = {path: path.stat().st_mtime_ns for path in (tmp_path / "db").rglob("*")}
        new = {str(path) for path, date in after.items() if before.get(path) != date}
        assert new - {str(tmp_path / "db")} <= flushed
        assert {str(path.parent) for path in after.keys() - before.keys()} <= flushed


def test_many_filters_in_turn(tmp_path):
    engine = make("memory", tmp_path)
    there = fill(engine)
    query = vectors(1, seed=9)[0]
    for number in [*range(40), *range(40)]:
        where = Where(since=number)
        assert engine.search(query, 5, where)[0].tolist() == ranked(there, query, 5, where)[0]
    engine.delete([60])
    assert 60 not in engine.search(query, 60, Where(since=39))[0]


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, -1.0]), max_size=12),
    st.integers(1, 14),
)
def test_best_is_a_sort(scores, count):
    uids = np.arange(len(scores))[::-1].copy()
    found, values = best(np.array(scores, np.float32), uids, count)
    order = sorted(zip(scores, uids.tolist(), strict=True), key=lambda one: (-one[0], one[1]))
    assert list(zip(values.tolist(), found.tolist(), strict=True)) == order[:count]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 5)),
        st.tuples(st.just("delete"), st.lists(st.integers(1, 20), max_size=4)),
        st.tuples(st.just("update"), st.integers(1, 20)),
        st.tuples(st.just("refresh"), st.just(0)),
    ),
    max_size=8,
)


@pytest.mark.parametrize("kind", ["memory", "lance"])
@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_any_sequence_leaves_what_a_dictionary_would_hold(kind, steps, tmp_path_factory):
    engine = make(kind, tmp_path_factory.mktemp("engine"))
    there, uid = {}, 1
    for number, (step, value) in enumerate(steps):
        if step == "add":
            rows = vectors(value, seed=number)
            entries = [entry(uid + n) for n in range(value)]
            engine.add(entries, rows)
            there |= {e.uid: (e, row) for e, row in zip(entries, rows, strict=True)}
            uid += value
        elif step == "delete":
            engine.delete(value)
            there = {one: row for one, row in there.items() if one not in value}
        elif step == "update" and value in there:
            changed = entry(value, tags=(f"t{number}",))
            engine.update([changed])
            there[value] = (changed, there[value][1])
        elif step == "refresh":
            engine.refresh()
        query = vectors(1, seed=50 + number)[0]
        assert engine.search(query, 5, None)[0].tolist() == ranked(there, query, 5)[0]
    assert len(engine) == len(there)
    found = {one.uid: one for part in engine.every() for one in part}
    assert found == {one: row[0] for one, row in there.items()}


def test_rows_and_entries_are_the_same_thing():
    one = entry(3, tags=("a", "é"), digest="x", width=2, height=4)
    assert from_row(to_row(one)) == one
    assert from_row(to_row(one) | {"tags": ["a", "é"]}) == one


def test_without_the_extra_a_line_says_which_one(tmp_path):
    code = """
        import sys
        sys.modules["lancedb"] = None
        sys.modules["pymilvus"] = None
        from pathlib import Path
        from crossgaze.errors import InputError
        from crossgaze.search.lance import LanceEngine
        from crossgaze.search.milvus import MilvusEngine
        for make in (lambda: LanceEngine(Path("x"), "t", 2), lambda: MilvusEngine("x.db", "t", 2)):
            try:
                make()
            except InputError as error:
                print(error)
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "an index needs the package lancedb: pip install 'crossgaze[search]'",
        "an index in Milvus needs the package pymilvus: pip install 'crossgaze[search]'",
    ]
