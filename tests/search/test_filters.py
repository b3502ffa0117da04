"""Filters against the definition of each part, and as each engine is told them."""

import time
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.errors import InputError
from crossgaze.search.entries import Entry
from crossgaze.search.filters import Where, parse_bytes
from crossgaze.search.lance_rows import sql
from crossgaze.search.milvus_filters import is_pushed_whole, pushed


def matches(pattern, text):
    """A star is nothing, or a sign and a star; worked out from the back."""
    table = [[False] * (len(text) + 1) for _ in range(len(pattern) + 1)]
    table[len(pattern)][len(text)] = True
    for p in range(len(pattern) - 1, -1, -1):
        for t in range(len(text), -1, -1):
            if pattern[p] == "*":
                table[p][t] = table[p + 1][t] or (t < len(text) and table[p][t + 1])
            elif t < len(text):
                table[p][t] = pattern[p] in ("?", text[t]) and table[p + 1][t + 1]
    return table[0][0]


@given(st.text("ab/*?.\n", max_size=8).map(lambda s: "*" + s), st.text("ab/.\n", max_size=10))
def test_a_pattern_matches_as_stars_and_question_marks_say(pattern, path):
    assert Where(path=pattern).admits(Entry(1, path, "")) == matches(pattern, path)


def test_a_pattern_may_begin_at_any_folder():
    assert Where(path="2024/*").admits(Entry(1, "/home/2024/a.jpg", ""))
    assert not Where(path="2024/*").admits(Entry(1, "/home/x2024/a.jpg", ""))
    assert not Where(path="/2024/*").admits(Entry(1, "/home/2024/a.jpg", ""))


def test_many_stars_take_no_time():
    started = time.process_time()
    assert not Where(path="*a" * 200 + "*b").admits(Entry(1, "a" * 4000, ""))
    assert time.process_time() - started < 5


@given(
    st.builds(
        Where,
        since=st.none() | st.integers(0, 6),
        until=st.none() | st.integers(0, 6),
        least_bytes=st.none() | st.integers(0, 6),
        most_bytes=st.none() | st.integers(0, 6),
        tags=st.sets(st.sampled_from("xyz")).map(tuple),
    ),
    st.integers(0, 6),
    st.integers(0, 6),
    st.sets(st.sampled_from("xyz")),
)
def test_every_part_must_hold(where, taken, size, tags):
    parts = [
        where.since is None or where.since <= taken,
        where.until is None or taken < where.until,
        where.least_bytes is None or where.least_bytes <= size,
        where.most_bytes is None or size <= where.most_bytes,
        *(tag in tags for tag in where.tags),
    ]
    entry = Entry(1, "/a", "", bytes=size, taken=taken, tags=tuple(sorted(tags)))
    assert where.admits(entry) == all(parts)


def test_days_and_sizes_as_people_write_them():
    where = Where.of(since="1970-01-02", until="1970-01-02", larger="1.5 KB", smaller="2mb")
    assert (where.since, where.until) == (86400, 2 * 86400)  # the last day counts whole
    assert (where.least_bytes, where.most_bytes) == (1500, 2_000_000)
    assert Where.of(since=date(1970, 1, 2)) == Where.of(since=datetime(1970, 1, 2))
    assert Where.of(until="1970-01-02T00:00:05").until == 86405
    assert not Where.of()
    assert parse_bytes("larger", 7) == 7


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"since": "yesterday"}, "since: got 'yesterday', wanted a day such as 2024-05-01"),
        ({"until": "2024-13-01"}, "until: got '2024-13-01'"),
        ({"larger": "big"}, "larger: got 'big', wanted a number of bytes"),
        ({"smaller": -1}, "smaller: got -1"),
        ({"tags": "dog"}, "tags: got"),
        ({"tags": ["\n"]}, "tags: got '\\n'"),
        ({"path": ""}, "where path: got ''"),
    ],
)
def test_what_is_no_filter_is_refused(wrong, message):
    with pytest.raises(InputError, match=message.replace("\\", "\\\\")):
        Where.of(**wrong)
    with pytest.raises(InputError, match="where since: got '1'"):
        Where(since="1")


def test_texts_are_quoted_for_every_engine():
    nasty = Where(path="/a'; DROP TABLE x; --\"*", tags=("it's",))
    assert sql(nasty) == ("key LIKE '/a''; DROP TABLE x; --\"%' AND array_has(tags, 'it''s')")
    assert pushed(nasty) == 'key like "/a%"'  # up to the first sign that could mean anything
    assert not is_pushed_whole(nasty)
    assert is_pushed_whole(Where(path="/a/*", since=3))
    assert not is_pushed_whole(Where(path="/a/*.jpg"))
