"""Adding a folder over HTTP, and looking on."""

import json
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
    assert all(done == total_seen for done, _, total_seen in seen)  # acknowledged is found
    assert len({done for done, _, _ in seen}) > 1


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
        self._stop = True
        step(self, done, total)

    monkeypatch.setattr(jobs.Indexing, "_step", stopping)
    indexing.start(str(tmp_path / "more"), ())
    indexing.stop(60)
    assert indexing.job.words == "stopped; what was done is kept"
    index.refresh()
    assert 0 < len(index) < 6
