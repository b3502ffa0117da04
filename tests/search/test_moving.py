"""An index moved between engines finds the same."""

from dataclasses import replace

import pytest

import search_parts
from crossgaze.errors import InputError
from crossgaze.search import moving
from crossgaze.search.filters import Where
from crossgaze.search.index import Index
from crossgaze.search.moving import move_index

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
QUERY = "a red dog in the snow"


@pytest.fixture
def index(tmp_path):
    search_parts.save_models(tmp_path)
    for number in range(9):
        search_parts.make_photo(tmp_path / "photos" / f"{number}.png", number)
    made = search_parts.create(tmp_path)
    made.add(tmp_path / "photos", tags=["x"])
    search_parts.make_photo(tmp_path / "photos" / "3.png", "changed")
    made.add(tmp_path / "photos")
    (tmp_path / "lines.txt").write_text("a dog runs\na cat in the snow\n")
    made.add_sentences(tmp_path / "lines.txt")
    return made


def test_there_and_back_again(index, tmp_path):
    pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    picture = tmp_path / "photos" / "2.png"
    before = index.search(QUERY, k=9), index.search(picture, k=9)
    assert move_index(tmp_path / "index", tmp_path / "milvus", "milvus") == (9, 2)
    assert move_index(tmp_path / "milvus", tmp_path / "back", "lance") == (9, 2)
    for name in ("milvus", "back", "index"):
        with Index.open(tmp_path / name, source=search_parts.CellSource()) as moved:
            assert moved.search(QUERY, k=9).hits == before[0].hits
            found = moved.search(picture, k=9)
            assert found.sentences == before[1].sentences
            assert [hit.path for hit in found.hits] == [hit.path for hit in before[1].hits]
            where = Where(path="photos/?.png", tags=("x",))
            assert len(moved.search(QUERY, k=9, where=where).hits) == 9
            if name != "index":
                assert moved.describe()["unused_regions"] == 0
            # It lives on: what is new goes into the moved one.
            search_parts.make_photo(tmp_path / "photos" / "new.png", "new")
            assert moved.add(tmp_path / "photos").added == 1
            (tmp_path / "photos" / "new.png").unlink()


def test_a_move_that_is_stopped_leaves_the_old_and_can_be_done_again(index, tmp_path, monkeypatch):
    hits = index.search(QUERY, k=9).hits
    monkeypatch.setattr("crossgaze.search.moving.write_head", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        move_index(tmp_path / "index", tmp_path / "new")
    monkeypatch.undo()
    with pytest.raises(InputError, match="is not an index"):
        Index.open(tmp_path / "new")
    with Index.open(tmp_path / "index") as old:
        assert old.search(QUERY, k=9).hits == hits
    assert move_index(tmp_path / "index", tmp_path / "new") == (9, 2)


def test_compacted_by_another_process_just_before_the_move(index, tmp_path, monkeypatch):
    hits = index.search(QUERY, k=9).hits
    lock = moving.only_writer

    def late(at, what):
        if at.name == "index" and index.head.store == "regions-1":
            assert index.compact() == 1
        return lock(at, what)

    monkeypatch.setattr(moving, "only_writer", late)
    assert move_index(tmp_path / "index", tmp_path / "new") == (9, 2)
    assert index.head.store == "regions-2"
    with Index.open(tmp_path / "new") as moved:
        assert moved.search(QUERY, k=9).hits == hits


def test_what_a_stopped_writer_left_stays_behind(index, tmp_path):
    """The older of two entries for a photograph."""
    hits = index.search(QUERY, k=9).hits
    table = index.tables.photos
    (old,) = table.get([1])
    table.update([replace(old, key=hits[0].path)])  # older than the photograph's own entry
    assert move_index(tmp_path / "index", tmp_path / "new") == (8, 2)
    with Index.open(tmp_path / "new", source=search_parts.CellSource()) as moved:
        found = {hit.path: hit.score for hit in moved.search(QUERY, k=20, exhaustive=True).hits}
        assert found == pytest.approx({hit.path: hit.score for hit in hits if hit.uid != 1})
        assert len(moved) == 8
        assert moved.describe()["unused_regions"] == 0


def test_a_place_that_is_taken_is_refused(index, tmp_path):
    with pytest.raises(InputError, match="is an index already"):
        move_index(tmp_path / "index", tmp_path / "index")
    with pytest.raises(InputError, match="is not empty and not an index"):
        move_index(tmp_path / "index", tmp_path / "photos")
