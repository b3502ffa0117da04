"""A day is that day where the user lives, whatever time zone the machine is in."""

import os
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from PIL import Image

from crossgaze.search.filters import Where
from crossgaze.search.planning import taken_when
from search_parts import create

QUERY = "a red dog in the snow"
TOKYO, BERLIN, NEW_YORK = "JST-9", "CET-1CEST,M3.5.0,M10.5.0/3", "EST5EDT,M3.2.0,M11.1.0"


@pytest.fixture
def live_in(monkeypatch):
    """Return what sets this process's time zone, for the test."""

    def move(zone):
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


def at(*moment, hours=0):
    """Return the second of a moment in a zone so many hours before UTC."""
    return int(datetime(*moment, tzinfo=timezone(timedelta(hours=hours))).timestamp())


def on(first, last=None):
    return Where.of(since=first, until=last or first)


def names_of(index, where):
    hits = index.search(QUERY, k=50, where=where).hits
    return sorted(hit.path.rpartition("/")[2] for hit in hits)


@pytest.mark.parametrize(
    ("zone", "hours", "moment"),
    [
        (TOKYO, 9, (2024, 5, 1, 8)),
        (TOKYO, 9, (1940, 5, 1, 0, 0, 1)),
        (BERLIN, 2, (2024, 7, 1, 23, 59, 59)),
        (BERLIN, 1, (2024, 1, 1)),
        (NEW_YORK, -4, (2024, 7, 1, 20)),
        ("UTC", 0, (2024, 7, 1, 20)),
    ],
)
def test_a_files_date_is_what_the_clock_showed(live_in, zone, hours, moment):
    live_in(zone)
    shown = int(datetime(*moment, tzinfo=UTC).timestamp())
    assert taken_when(b"no camera's", at(*moment, hours=hours) * 10**9 + 7) == shown


def test_a_photograph_is_found_by_the_day_on_which_its_file_is_dated(world, live_in):
    pytest.importorskip("lancedb", reason="needs crossgaze[search]")
    live_in(TOKYO)
    index = create(world)
    midnight = at(2024, 5, 2, 0, 0, 1, hours=9)  # in UTC, the day before
    os.utime(world / "photos" / "01.png", (midnight, midnight))
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003] = "2024:05:01 07:00:00"
    Image.new("RGB", (16, 16), (9, 200, 9)).save(world / "photos" / "camera.jpg", exif=exif)
    index.add(world / "photos")
    assert names_of(index, on("2024-05-02")) == ["01.png"]
    morning = at(2024, 5, 1, 8, hours=9)
    for name in ("00.png", "camera.jpg"):
        os.utime(world / "photos" / name, (morning, morning))
    assert index.add(world / "photos").touched == 2
    assert names_of(index, on("2024-05-01")) == ["00.png", "camera.jpg"]
    assert names_of(index, on("2024-04-30")) == []
    # In another zone the files are the same ones, and stay on the day that they had.
    live_in(NEW_YORK)
    report = index.add(world / "photos")
    assert (report.unchanged, report.did_something) == (13, False)
    assert names_of(index, on("2024-05-01")) == ["00.png", "camera.jpg"]


def test_a_moment_that_names_its_zone_is_put_on_the_clock_here(live_in):
    live_in(TOKYO)
    noon = int(datetime(2024, 5, 1, 12, tzinfo=UTC).timestamp())
    assert Where.of(since="2024-05-01T12:00:00").since == noon
    assert Where.of(since="2024-05-01T12:00:00+09:00").since == noon
    assert Where.of(since="2024-05-01T03:00:00Z").since == noon
    assert Where.of(since=datetime(2024, 5, 1, 3, tzinfo=UTC)).since == noon
