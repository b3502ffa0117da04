"""What a program may give by mistake is refused in a line, and changes nothing."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from crossgaze.errors import InputError
from crossgaze.search.filters import Where
from crossgaze.search.head import HELD
from crossgaze.search.index import Index
from search_parts import CellSource, create

pytest.importorskip("lancedb", reason="needs crossgaze[search]")

CALLS = {
    "query: got": lambda index: index.search(np.zeros((0, 0, 3), np.uint8)),
    "where: got 5": lambda index: index.remove(5),
    "where: got None": lambda index: index.remove(None),
    r"where: got \['a'\]": lambda index: index.remove(["a"]),
    r"where: got \[1.5\]": lambda index: index.remove([1.5]),
    "where: got 'a'": lambda index: index.remove("a"),
    "where: is empty": lambda index: index.remove(Where()),
    "tags: got None": lambda index: index.add("photos", tags=None),
    "tags: got 5": lambda index: index.add("photos", tags=5),
    "store: got 5": lambda index: index.add("photos", store=5),
    "sentences: got None": lambda index: index.add_sentences(None),
    "sentences: got 5": lambda index: index.forget_sentences(5),
    "every: got 'x'": lambda index: index.watch("photos", every="x"),
    "every: got None": lambda index: index.watch("photos", every=None),
    "every: got True": lambda index: index.watch("photos", every=True),
    "hit: got None": lambda index: index.look("a dog", None),
    "candidates: got 0": lambda index: index.search("a dog", candidates=np.int64(0)),
}


@pytest.fixture
def filled(world, monkeypatch):
    monkeypatch.chdir(world)
    index = create(world)
    index.add("photos")
    return index


@pytest.mark.parametrize("message", CALLS)
def test_a_call_that_says_nothing_is_refused_and_changes_nothing(filled, message):
    held = (filled.folder / HELD).read_text()
    with pytest.raises(InputError, match=message):
        CALLS[message](filled)
    assert len(filled) == 12
    assert (filled.folder / HELD).read_text() == held


def test_numbers_of_numpy_are_numbers(filled):
    assert len(filled.search("a dog", k=np.int64(2), candidates=np.int64(3)).hits) == 2
    assert filled.remove([np.int64(1), 2, 99]) == 2
    assert len(filled) == 10


def test_a_folder_that_was_mistyped_leaves_the_note_of_what_is_held(filled):
    held = (filled.folder / HELD).read_text()
    with pytest.raises(InputError, match="typo: cannot be opened"):
        filled.add("typo")
    assert (filled.folder / HELD).read_text() == held


@pytest.mark.parametrize("path", [None, 5, b"index", ["index"], "x\0y", ""])
def test_what_is_no_path_is_no_index(world, path):
    with pytest.raises(InputError, match=r"index: got .*, wanted a path"):
        Index.open(path)
    with pytest.raises(InputError, match=r"index: got .*, wanted a path"):
        Index.create(path, source=CellSource())
    with pytest.raises(InputError, match=r"model: got .*, wanted a path"):
        create(world, embedder=path if path is not None else 7)
    assert not (world / "index").exists()


def test_an_engine_is_a_text(world):
    with pytest.raises(InputError, match="engine: got None, wanted lance"):
        create(world, engine=None)


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize(
    "value",
    [
        5,
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-12:00",
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    ],
)
def test_days_that_no_calendar_has_are_refused(name, value):
    with pytest.raises(InputError, match=f"{name}: got "):
        Where.of(**{name: value})


def test_a_moment_of_a_zone_is_put_on_the_clock_here():
    moment = datetime(2024, 5, 1, 12, tzinfo=UTC)
    assert Where.of(since=moment) == Where.of(since=moment.astimezone().replace(tzinfo=None))


def test_a_photograph_that_became_a_link_to_another_is_one(world):
    """As a folder that was renamed, with a link left at its old name."""
    index = create(world)
    index.add(world / "photos")
    old, new = world / "photos" / "2019", world / "photos" / "2019-old"
    old.mkdir()
    for number in range(3):
        (world / "photos" / f"{number:02}.png").rename(old / f"{number:02}.png")
    assert index.add(world / "photos").removed == 3
    old.rename(new)
    old.symlink_to(new.name)
    report = index.add(world / "photos")
    assert (report.added, report.removed, len(index)) == (3, 3, 12)
    (world / "photos" / "inside").mkdir()
    moved = (world / "photos" / "05.png").rename(world / "photos" / "inside" / "05.png")
    (world / "photos" / "05.png").symlink_to(Path("inside") / moved.name)
    report = index.add(world / "photos")
    assert (report.added, report.removed, len(index)) == (1, 1, 12)
