"""What the service answers while its index changes under it."""

import os
import shutil
from dataclasses import replace

import pytest

import asking_parts
import search_parts

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

import web_parts
from crossgaze.web import library as library_module
from crossgaze.web.asker import Asker
from web_parts import QUERY, client_of, make_world


def test_what_another_process_adds_and_removes_is_seen(tmp_path):
    index = make_world(tmp_path, 3)
    with client_of(index) as client:
        assert len(client.get("/search", params={"q": QUERY}).json()["hits"]) == 3
        other = web_parts.reopen(tmp_path)
        search_parts.make_photo(tmp_path / "photos" / "new.png", "new")
        other.add(tmp_path / "photos")
        assert len(client.get("/search", params={"q": QUERY}).json()["hits"]) == 4
        assert client.get("/index").json()["photographs"] == 4
        other.remove([1])
        other.compact()
        left = client.get("/search", params={"q": QUERY}).json()["hits"]
        assert {hit["id"] for hit in left} == {2, 3, 4}
        assert client.get("/images/1").status_code == 404


def test_what_was_removed_is_not_sent_any_more(tmp_path):
    index = make_world(tmp_path, 3)
    with client_of(index, asker=Asker(asking_parts.answerer())) as client:
        assert len(client.get("/images").json()["photographs"]) == 3
        other = web_parts.reopen(tmp_path)
        other.remove([1])  # its file stays, and a client still has its address
        for address in ("/images/1/file", "/images/1/thumbnail"):
            assert client.get(address).status_code == 404
        assert client.get("/images/2/file").status_code == 200
        other.remove([2])
        asked = {"id": 2, "question": "is the lamp on?"}
        assert client.post("/ask", json=asked).status_code == 404


def test_a_file_that_is_another_one_since_is_not_sent(tmp_path):
    index = make_world(tmp_path, 3)
    first, second, third = (tmp_path / "photos" / f"{number:02}.png" for number in range(3))
    with client_of(index) as client:
        data = first.read_bytes()
        shutil.copyfile(second, first)  # another photograph under its name
        gone = client.get("/images/1/file")
        assert gone.status_code == 404
        assert "has changed since; index its folder again" in gone.json()["error"]
        first.write_bytes(data)  # as it was, if at another time
        assert client.get("/images/1/file").content == data
        os.utime(third, (1, 1))
        assert client.get("/images/3/file").status_code == 200
        changed = bytearray(third.read_bytes())
        changed[-1] ^= 1  # of the same length
        third.write_bytes(changed)
        assert client.get("/images/3/file").status_code == 404


@pytest.mark.parametrize("kind", ["q", "picture"])
def test_a_search_meets_a_removal_between_its_steps(tmp_path, monkeypatch, kind):
    index = make_world(tmp_path, 6)
    other = web_parts.reopen(tmp_path)
    rank_part, calls = library_module.rank_part, []

    def removed_meanwhile(index, query, block):
        calls.append(block)
        if len(calls) == 1:
            other.remove([1])
            other.compact()
            index.refresh()  # as a request of somebody else in between
        return rank_part(index, query, block)

    monkeypatch.setattr(library_module, "rank_part", removed_meanwhile)
    with client_of(index) as client:
        if kind == "q":
            response = client.get("/search", params={"q": QUERY})
        else:
            response = client.post("/search", content=(tmp_path / "photos/02.png").read_bytes())
        assert response.status_code == 200, response.text
        assert {hit["id"] for hit in response.json()["hits"]} == {2, 3, 4, 5, 6}
    assert len(calls) == 2


def test_candidates_from_before_a_change_are_not_remembered_after_it(tmp_path, monkeypatch):
    index = make_world(tmp_path, 6)
    other = web_parts.reopen(tmp_path)
    rank_part, library = library_module.rank_part, []

    def changed_meanwhile(index, query, block):
        if library:  # between two steps another photograph comes, and somebody else's request
            search_parts.make_photo(tmp_path / "photos" / "new.png", "new")
            other.add(tmp_path / "photos")
            library.pop().see()
        return rank_part(index, query, block)

    monkeypatch.setattr(library_module, "rank_part", changed_meanwhile)
    with client_of(index) as client:
        library.append(client.app.state.service.library)
        before = client.get("/search", params={"q": QUERY}).json()
        assert len(before["hits"]) == 6
        assert not library  # it did happen
        after = client.get("/search", params={"q": QUERY}).json()
        assert {hit["id"] for hit in after["hits"]} == {1, 2, 3, 4, 5, 6, 7}
        kept = client.app.state.service.library._blocks
        assert len(kept) == 1  # what is not old is remembered as before


def test_of_a_photograph_that_is_being_replaced_the_newer_is_shown(tmp_path):
    index = make_world(tmp_path, 4)
    (tmp_path / "other").mkdir()
    shutil.copy(tmp_path / "photos" / "00.png", tmp_path / "other" / "00.png")
    index.add(tmp_path / "other")  # the same name in another folder is another photograph
    table = index.tables.photos
    old, new = table.get([2, 4])
    table.update([replace(new, key=old.key)])
    with client_of(index) as client:
        hits = client.get("/search", params={"q": QUERY}).json()["hits"]
    assert sorted(hit["id"] for hit in hits) == [1, 3, 4, 5]
