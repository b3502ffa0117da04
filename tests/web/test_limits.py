"""Rates, lanes and caches: bounded, and fair to who waits."""

import asyncio
import threading
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from crossgaze.web import limits
from crossgaze.web.lanes import Lane
from crossgaze.web.limits import Rate
from crossgaze.web.problems import BusyError, RequestError
from crossgaze.web.recent import Recent
from web_parts import client_of, make_world


@given(
    st.floats(0.5, 50),
    st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 1)), max_size=60),
)
def test_nobody_gets_more_than_the_rate_over_any_span(rate, asked):
    now = 0.0
    bucket = Rate(rate, lambda: now)
    granted = {"a": [], "b": []}
    for address, wait in asked:
        now += wait
        if bucket.allows(address):
            granted[address].append(now)
    for times in granted.values():
        for first in range(len(times)):
            for last in range(first, len(times)):
                span = times[last] - times[first]
                assert last - first + 1 <= max(2 * rate, 1) + span * rate + 1e-6


def test_addresses_that_are_silent_are_forgotten(monkeypatch):
    monkeypatch.setattr(limits, "ADDRESSES", 3)
    bucket = Rate(1, lambda: 0.0)
    for number in range(10):
        bucket.allows(str(number))
    assert len(bucket._left) == 3


def test_too_many_requests_are_told_so(tmp_path):
    with client_of(make_world(tmp_path, 2), rate=1) as client:
        statuses = [client.get("/search?q=dog").status_code for _ in range(4)]
        assert statuses[:2] == [200, 200]
        refused = client.get("/search?q=dog")
        assert refused.status_code == 429
        assert refused.json()["error"].startswith("too many requests, 1 a second")
        assert refused.headers["retry-after"] == "1"
        # A photograph's sentences are encoded and re-ranked; thumbnails cost no model.
        assert client.get("/images/1/sentences").status_code == 429
        assert {client.get("/images/1/thumbnail").status_code for _ in range(9)} == {200}


def test_a_full_lane_says_so_and_recovers():
    async def scenario():
        lane = Lane("test", 1, 2, 5)
        go = threading.Event()
        first = asyncio.create_task(lane.run(go.wait))
        second = asyncio.create_task(lane.run(lambda: "second"))
        await asyncio.sleep(0.05)
        assert lane.taken == 2
        with pytest.raises(BusyError):
            await lane.run(lambda: "third")
        go.set()
        assert await first is True
        assert await second == "second"
        assert lane.taken == 0
        assert await lane.run(lambda: "fourth") == "fourth"
        lane.close()

    asyncio.run(scenario())


def test_a_client_that_leaves_gives_its_place_back():
    async def scenario():
        lane = Lane("test", 1, 1, 5)
        go = threading.Event()
        task = asyncio.create_task(lane.run(go.wait))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert lane.taken == 0
        go.set()
        lane.close()

    asyncio.run(scenario())


def test_what_takes_too_long_is_given_up():
    async def scenario():
        lane = Lane("test", 1, 1, 0.05)
        go = threading.Event()
        with pytest.raises(RequestError, match=r"no answer within 0\.05 seconds") as told:
            await lane.run(go.wait)
        assert told.value.status == 503
        assert lane.taken == 0
        go.set()
        lane.close()

    asyncio.run(scenario())


def test_a_busy_server_answers_503_in_words(tmp_path):
    with client_of(make_world(tmp_path, 2), waiting=1) as client:
        models = client.app.state.service.models
        with models.enter():
            response = client.get("/search?q=dog")
            assert response.status_code == 503
            assert response.json() == {"error": "the server is busy; try again in a moment"}
            assert response.headers["retry-after"] == "1"
            uploads = client.app.state.service.uploads
            places = [uploads.enter() for _ in range(uploads.count)]
            assert client.post("/search", content=b"x").status_code == 503
            for place in places:
                place.leave()
                place.leave()  # twice is once
            assert uploads.taken == 0
        assert client.get("/search?q=dog").status_code == 200
        assert models.taken == 0


@given(
    st.integers(0, 12),
    st.lists(st.tuples(st.sampled_from("pg"), st.integers(0, 4), st.integers(0, 6)), max_size=50),
)
def test_a_cache_keeps_what_was_used_last_within_its_bound(most, steps):
    cache = Recent(most, lambda value: value)
    model = OrderedDict()
    for what, key, weight in steps:
        if what == "p":
            cache.put(key, weight)
            model.pop(key, None)
            if weight <= most:
                model[key] = weight
            while sum(model.values()) > most:
                model.popitem(last=False)
        else:
            assert cache.get(key) == model.get(key)
            if key in model:
                model.move_to_end(key)
        assert cache.weight == sum(model.values()) <= most
        assert len(cache) == len(model)
