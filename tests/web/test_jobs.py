"""Adding a folder over HTTP, and looking on."""

import asyncio
import json
import threading
import time

import pytest

import search_parts

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from crossgaze.files import only_writer
from crossgaze.search import adding
from crossgaze.web import jobs
from web_parts import client_of, make_world


def wait(client):
    for _ in range(3000):
        job = client.get("/index").json()["job"]
        if job["state"] != "running":
            return job
        time.sleep(0.02)
    raise AssertionError(job)


def test_a_folder_is_added_and_found_while_it_is_added(tmp_path, monkeypatch):
    index = make_world(tmp_path, 0)
    for number in range(6):
        search_parts.make_photo(tmp_path / "more" / f"{number}.png", number)
    folder = str(tmp_path / "more")
    monkeypatch.setattr(adding, "COMMIT", 1)
    monkeypatch.setattr(adding, "GROUP", 2)
    monkeypatch.setattr(adding, "default_batch", lambda device: 0)  # groups are not larger
    seen = []
    step = jobs.Indexing._step

    with client_of(index, folders=(tmp_path / "more",)) as client:

        def looking(self, done, total):
            step(self, done, total)
            seen.append((done, total, client.get("/images").json()["total"]))

        monkeypatch.setattr(jobs.Indexing, "_step", looking)
        assert client.get("/index").json()["folders"] == [folder]
        started = client.post("/index", json={"folder": folder, "tags": ["b", "a"]})
        assert started.status_code == 202
        assert started.json()["state"] == "running"
        job = wait(client)
        assert job["state"] == "done"
        assert (job["words"], job["done"], job["of"]) == ("6 added", 6, 6)
        state = client.get("/index").json()
        assert (state["photographs"], state["tags"]) == (6, ["a", "b"])
        again = client.post("/index", json={"folder": folder})
        assert again.status_code == 202
        assert wait(client)["words"] == "6 as before"
    # Each batch here is acknowledged as soon as it has been read, and found then.
    assert [done for done, _, found in seen if done == found] == [0, 2, 4, 6]


def test_only_folders_that_were_named_at_the_start(tmp_path):
    index = make_world(tmp_path, 1)
    with client_of(index, folders=(tmp_path / "photos",)) as client:
        for folder in ("/", "/etc", str(tmp_path), "photos", f"{tmp_path}/photos/../photos"):
            response = client.post("/index", json={"folder": folder})
            assert response.status_code == 403, folder
            assert str(tmp_path / "photos") in response.json()["error"]
        tags = client.post("/index", json={"folder": str(tmp_path / "photos"), "tags": [" "]})
        assert tags.status_code == 422
    with client_of(index) as client:
        assert client.post("/index", json={"folder": "/etc"}).status_code == 403
        assert client.get("/index").json()["job"]["state"] == "idle"


def test_one_at_a_time_and_what_goes_wrong_in_words(tmp_path):
    index = make_world(tmp_path, 1)
    (tmp_path / "empty").mkdir()
    with client_of(index, folders=(tmp_path / "photos", tmp_path / "empty")) as client:
        with only_writer(index.folder, "this index"):
            client.post("/index", json={"folder": str(tmp_path / "photos")})
            job = wait(client)
            assert job["state"] == "failed"
            assert "is being written by another process" in job["words"]
        client.post("/index", json={"folder": str(tmp_path / "empty")})
        job = wait(client)
        assert job["state"] == "failed"
        assert str(tmp_path / "empty") in job["words"]
        indexing = client.app.state.service.indexing
        indexing.job = indexing.job.model_copy(update={"state": "running"})
        busy = client.post("/index", json={"folder": str(tmp_path / "photos")})
        assert busy.status_code == 409
        assert "wait until it is done" in busy.json()["error"]
        indexing.job = jobs.IDLE
        assert client.get("/images").json()["total"] == 1


def test_events_tell_every_state_and_end(tmp_path):
    index = make_world(tmp_path, 0)
    for number in range(3):
        search_parts.make_photo(tmp_path / "more" / f"{number}.png", number)
    with client_of(index, folders=(tmp_path / "more",)) as client:
        idle = client.get("/index/events")
        assert idle.headers["content-type"].startswith("text/event-stream")
        assert json.loads(idle.text.removeprefix("data: "))["state"] == "idle"
        client.post("/index", json={"folder": str(tmp_path / "more")})
        told = [
            json.loads(part.removeprefix("data: "))
            for part in client.get("/index/events").text.strip().split("\n\n")
        ]
        assert told[-1]["state"] == "done"
        assert all(job["state"] == "running" for job in told[:-1])


def test_stopping_ends_the_work_and_keeps_what_was_done(tmp_path, monkeypatch):
    index = make_world(tmp_path, 0)
    for number in range(6):
        search_parts.make_photo(tmp_path / "more" / f"{number}.png", number)
    monkeypatch.setattr(adding, "COMMIT", 1)
    monkeypatch.setattr(adding, "GROUP", 2)
    monkeypatch.setattr(adding, "default_batch", lambda device: 0)  # groups are not larger
    indexing = jobs.Indexing(index, [tmp_path / "more"])
    step = jobs.Indexing._step

    def stopping(self, done, total):
        self._stop = done > 0
        step(self, done, total)

    monkeypatch.setattr(jobs.Indexing, "_step", stopping)
    indexing.start(str(tmp_path / "more"), ())
    indexing.stop(60)
    assert indexing.job.words == "stopped; what was done is kept"
    index.refresh()
    assert 0 < len(index) < 6


class Held(search_parts.CellSource):
    """Goes from one photograph to the next until somebody lets it end."""

    def __init__(self):
        super().__init__()
        self.free, self.at_work = threading.Event(), threading.Event()

    def __call__(self, photos, names, go_on):
        self.at_work.set()
        while not self.free.wait(0.01):
            go_on()
        return super().__call__(photos, names, go_on)


def test_giving_up_ends_a_group_of_photographs_in_the_middle(tmp_path):
    search_parts.save_models(tmp_path)
    search_parts.make_photo(tmp_path / "more" / "0.png", 0)
    source = Held()
    indexing = jobs.Indexing(search_parts.create(tmp_path, source=source), [tmp_path / "more"])
    indexing.start(str(tmp_path / "more"), ())
    try:
        assert source.at_work.wait(60)
        assert (indexing.job.state, indexing.job.done, indexing.job.of) == ("running", 0, 1)
        indexing.stop(60)
        assert indexing.job.words == "stopped; what was done is kept"
    finally:
        source.free.set()


def test_whoever_looks_on_is_let_go_when_the_service_is_stopped(tmp_path):
    indexing = jobs.Indexing(make_world(tmp_path, 0), ())
    indexing.job = indexing.job.model_copy(update={"state": "running"})

    async def look_on():
        told = []
        async for job in indexing.events():
            told.append(job.state)
            indexing.give_up()
        return told

    assert asyncio.run(asyncio.wait_for(look_on(), 60)) == ["running"]
