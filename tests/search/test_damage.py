"""Files of an index that are damaged: writers refuse before they change anything."""

import shutil

import pytest

import search_parts
from crossgaze.errors import FileFormatError, InputError
from crossgaze.files import LOCK
from crossgaze.search.filters import Where
from crossgaze.search.head import HELD
from crossgaze.search.index import Index
from crossgaze.search.moving import move_index
from durability_parts import QUERY, answers
from search_parts import create, reopen

pytest.importorskip("lancedb", reason="needs crossgaze[search]")

DAMAGE = {
    "log.jsonl": {
        "cut": lambda data: data[:-20],
        "a line less": lambda data: b"".join(data.splitlines(keepends=True)[:-1]),
        "empty": lambda data: b"",
        "junk": lambda data: b"junk\n" * 3,
        "junk of one line": lambda data: b"\x00\xff" * 99,
        "gone": lambda data: None,
    },
    "state": {
        "half": lambda data: data[: len(data) // 2 - 1],
        "empty": lambda data: b"",
        "junk": lambda data: b"\x00\xff" * 21,
    },
}
CASES = [(name, how) for name, ways in DAMAGE.items() for how in ways]


@pytest.fixture
def filled(world):
    """A world whose index holds two batches with tags, a sentence, and regions left over."""
    (world / "lines.txt").write_text("a dog runs\n")
    with create(world) as index:
        index.add(world / "photos", tags=["mine"])
        search_parts.make_photo(world / "photos" / "00.png", "another content")
        index.add(world / "photos")
        index.add_sentences(world / "lines.txt")
    return world


def works(world):
    """What writes to an index, by name."""
    return {
        "add": lambda index: index.add(world / "photos"),
        "compact": lambda index: index.compact(),
        "sentences": lambda index: index.add_sentences(world / "lines.txt"),
        "remove": lambda index: index.remove([1]),
        "move": lambda index: move_index(world / "index", world / "moved"),
    }


def entries_of(index):
    return [entry for part in index.tables.photos.every() for entry in part]


def files_of(folder):
    """Everything in a folder but the lock, in which every writer leaves its number."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != LOCK]
    return {path: path.read_bytes() for path in paths}


def damage(path, how):
    """Damage a file; return what it was."""
    before = path.read_bytes()
    after = DAMAGE[path.name][how](before)
    path.unlink() if after is None else path.write_bytes(after)
    return before


def refuse(world, names, match):
    """Open an index and work at it, which is refused; nothing of it has changed then."""
    before = files_of(world / "index")
    with reopen(world) as index:
        for name in names:
            with pytest.raises(InputError, match=match) as caught:
                works(world)[name](index)
            assert "\n" not in str(caught.value)
            shutil.rmtree(world / "moved", ignore_errors=True)
        index.refresh()
        assert len(entries_of(index)) == 12
    assert files_of(world / "index") == before


@pytest.mark.parametrize(("name", "how"), CASES)
def test_a_damaged_log_or_state_costs_no_entry(filled, name, how):
    with reopen(filled) as index:
        good = answers(index)
    path = filled / "index" / "regions-1" / name
    before = damage(path, how)
    refuse(filled, works(filled), f"regions-1/{name}")
    path.write_bytes(before)
    with reopen(filled) as index:
        assert answers(index) == good
        assert index.add(filled / "photos").unchanged == 12
        assert index.compact() == 1
        assert answers(index) == good


def test_a_search_that_lacks_regions_names_the_damage_that_is_why(filled):
    log = filled / "index" / "regions-1" / "log.jsonl"
    log.write_bytes(log.read_bytes()[:100])
    with (
        reopen(filled) as index,
        pytest.raises(InputError, match=r"log\.jsonl"),
    ):
        index.search("a dog", k=3)


def test_regions_that_were_moved_away_are_made_anew_with_entries_and_tags(filled):
    with reopen(filled) as index:
        good = answers(index)
    store = filled / "index" / "regions-1"
    damage(store / "log.jsonl", "cut")
    ways = ["add", "compact", "sentences", "remove"]
    refuse(filled, ways, r"nothing was changed; put .*regions-1 back from a copy, or move it away")
    store.rename(filled / "away")
    refuse(filled, ways[1:], "regions-1: no such folder, .*; put .*regions-1 back from a copy")
    with reopen(filled) as index:
        with pytest.raises(InputError, match="no such folder, wanted a region store"):
            index.search(QUERY)
        report = index.add(filled / "photos")
        assert (report.added, report.changed, report.removed) == (0, 12, 0)
        assert answers(index) == good
        assert {entry.tags for entry in entries_of(index)} == {("mine",)}
        assert index.compact() == 0
        assert index.add(filled / "photos").unchanged == 12


def test_a_damaged_state_may_be_removed(filled):
    state = filled / "index" / "regions-1" / "state"
    damage(state, "empty")
    match = r"state: is damaged: it says 0 images, the log lists 13; if .* remove this file"
    refuse(filled, ["add"], match)
    state.unlink()
    search_parts.make_photo(filled / "photos" / "new.png", "new")
    with reopen(filled) as index:
        report = index.add(filled / "photos")
        assert (report.added, report.unchanged) == (1, 12)
    assert state.stat().st_size


def test_photographs_without_regions_wait_until_their_folder_is_indexed(filled):
    search_parts.make_photo(filled / "others" / "x.png", "x")
    with reopen(filled) as index:
        index.add(filled / "others", tags=["theirs"])
        good = answers(index)
    shutil.rmtree(filled / "index" / "regions-1")
    with reopen(filled) as index:
        assert index.add(filled / "photos").changed == 12
        with pytest.raises(FileFormatError, match=r"of 1 photographs; index.*others/x.png"):
            index.search(QUERY)
        assert len(index.search(QUERY, where=Where(path="photos/*"), k=20).hits) == 12
        assert index.compact() == 0  # and gives nobody's regions to the one that has none
        with pytest.raises(FileFormatError, match="lacks the regions of 1 photographs; index"):
            move_index(filled / "index", filled / "moved")
        assert index.add(filled / "others").changed == 1
        assert answers(index) == good
        tags = {entry.key.rpartition("/")[2]: entry.tags for entry in entries_of(index)}
        assert (tags["x.png"], tags["11.png"]) == (("theirs",), ("mine",))


@pytest.mark.parametrize("table", ["photos", "sentences"])
def test_a_database_that_lost_everything_is_not_taken_for_an_empty_one(filled, table):
    index = reopen(filled)
    lost = getattr(index.tables, table)
    lost.delete([entry.uid for part in lost.every() for entry in part])  # as no writer does
    what = {"photos": "photographs, and held 12", "sentences": "sentences, and held 1"}[table]
    before = files_of(filled / "index")
    tried = [*works(filled).values(), lambda index: index.describe()]
    if table == "photos":
        tried += [lambda index: index.search(QUERY), lambda index: index.search(filled / "x.png")]
        search_parts.make_photo(filled / "x.png", 1)
    for work in tried:
        with pytest.raises(FileFormatError, match=f"may be damaged: it holds no {what} when"):
            work(index)
        shutil.rmtree(filled / "moved", ignore_errors=True)
    assert files_of(filled / "index") == before
    (filled / "index" / HELD).unlink()  # as the message says
    index.add(filled / "photos")
    index.add_sentences(filled / "lines.txt")
    assert len(index) == 12
    assert len(index.tables.sentences) == 1


@pytest.mark.parametrize("text", ['{"photos": 1e999, "sentences": 1e999}', "[" * 100_000, "\xff"])
def test_what_was_held_is_not_known_where_its_file_is_damaged(filled, text):
    (filled / "index" / HELD).write_bytes(text.encode("latin1"))
    with reopen(filled) as index:
        assert index.add(filled / "photos").unchanged == 12


def test_a_moved_index_that_lost_everything_is_known_too(filled):
    move_index(filled / "index", filled / "moved")
    with Index.open(filled / "moved", source=search_parts.CellSource()) as index:
        index.tables.photos.delete([entry.uid for entry in entries_of(index)])
        with pytest.raises(FileFormatError, match="holds no photographs, and held 12"):
            index.add(filled / "photos")


def test_an_index_that_was_emptied_goes_on(filled, monkeypatch):
    """By a writer that ended, and by one that was killed before it could say so."""
    with reopen(filled) as index:
        for _ in range(2):
            assert index.remove(Where(path="*")) == 12
            with pytest.raises(InputError, match="holds no photograph yet"):
                index.search(QUERY)
            assert index.add(filled / "photos").added == 12
            assert len(answers(index)) == 12
            with monkeypatch.context() as patched:
                patched.setattr("crossgaze.search.damage.note_held", lambda *args: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    index.remove(Where(path="*"))
            assert index.add(filled / "photos").added == 12


def test_a_reader_of_what_was_empty_is_not_told_of_damage(world):
    index = create(world)
    reader = reopen(world)
    index.add(world / "photos")
    assert len(reader.search(QUERY).hits) == 10
