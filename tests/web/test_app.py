"""What the service answers, beside what the library says when it is asked itself."""

import io
import json
import time
from pathlib import Path

import numpy as np
import pytest
import requests
from PIL import Image

import asking_parts
import search_parts

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from crossgaze.asking import ask as ask_module
from crossgaze.asking.ask import ask
from crossgaze.models.ensemble import Ensemble
from crossgaze.search import paging
from crossgaze.search.filters import Where
from crossgaze.search.results import Hit
from crossgaze.vision.photos import read_photo
from crossgaze.web import library as library_module
from crossgaze.web.app import create_app
from crossgaze.web.asker import Asker
from crossgaze.web.problems import INSIDE
from crossgaze.web.routes import images as images_routes
from crossgaze.web.routes import search as search_routes
from crossgaze.web.shell import HEADERS
from photo_files import scans
from web_parts import QUERY, client_of, make_world, reopen, running

HOWS = ("get", "head")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    index = make_world(folder)
    lines = "a dog runs\na red cat in the snow\nthe blue dog\n"
    (folder / "lines.txt").write_text(lines)
    index.add_sentences(folder / "lines.txt")
    return folder, index


@pytest.fixture
def client(world):
    with client_of(world[1]) as made:
        yield made


def names(answer, what="hits"):
    return [one["name"] for one in answer[what]]


def lines_of(response):
    return [json.loads(line) for line in response.text.splitlines()]


def test_a_sentence_finds_what_the_index_finds(world, client):
    found = world[1].search(QUERY, k=5)
    answer = client.get("/search", params={"q": QUERY, "limit": 5}).json()
    assert names(answer) == [Path(hit.path).name for hit in found.hits]
    assert [hit["score"] for hit in answer["hits"]] == pytest.approx(
        [hit.score for hit in found.hits], abs=1e-5
    )
    assert [hit["rank"] for hit in answer["hits"]] == [1, 2, 3, 4, 5]
    assert answer["stage"] == "ranked"
    assert (answer["looked_at"], answer["total"], answer["next_offset"]) == (12, 12, 5)
    first = answer["hits"][0]
    assert (first["width"], first["height"], first["tags"]) == (16, 16, ["small"])
    assert first["shows"] == ["top left", "top right", "bottom left"]


def test_a_stream_gives_candidates_first_and_the_exact_order_last(world, client, monkeypatch):
    monkeypatch.setattr(paging, "PART", 5)
    monkeypatch.setattr(search_routes, "APART", 0)
    response = client.get("/search", params={"q": "the blue cat", "limit": 12, "stream": True})
    assert response.headers["content-type"] == "application/x-ndjson"
    lines = lines_of(response)
    assert [line["stage"] for line in lines] == ["candidates", "ranking", "ranking", "ranked"]
    assert [line["ranked"] for line in lines] == [0, 5, 10, 12]
    index = world[1]
    (vector,) = index.embedder.texts(["the blue cat"])
    uids, _ = index.tables.photos.search(vector, 12, None)
    assert [hit["id"] for hit in lines[0]["hits"]] == uids.tolist()
    assert names(lines[-1]) == [Path(h.path).name for h in index.search("the blue cat", 12).hits]
    # In between: the first five in the exact order, the others still as they came.
    assert [hit["id"] for hit in lines[1]["hits"]][5:] == uids.tolist()[5:]


def test_pages_hold_every_photograph_once_in_blocks(world, monkeypatch):
    for module in (paging, library_module, search_routes):
        monkeypatch.setattr(module, "CANDIDATES", 5)
    seen, offset = [], 0
    with client_of(world[1]) as client:
        while offset is not None:
            params = {"q": QUERY, "offset": offset, "limit": 3}
            page = client.get("/search", params=params).json()
            assert [hit["rank"] for hit in page["hits"]] == list(
                range(offset + 1, offset + 1 + len(page["hits"]))
            )
            seen += page["hits"]
            assert page["next_offset"] is None or page["next_offset"] > offset
            offset = page["next_offset"]
    assert len({hit["id"] for hit in seen}) == len(seen) == 12
    scores = [hit["score"] for hit in seen]
    for start in (0, 5, 10):
        assert scores[start : start + 5] == sorted(scores[start : start + 5], reverse=True)
    (vector,) = world[1].embedder.texts([QUERY])
    uids = world[1].tables.photos.search(vector, 12, None)[0].tolist()
    assert {hit["id"] for hit in seen[:5]} == set(uids[:5])
    assert {hit["id"] for hit in seen[5:10]} == set(uids[5:10])


def test_filters(world, client):
    found = world[1].search(QUERY, 12, where=Where.of(path="0[1]*")).hits
    assert found == ()
    for params, wanted in (
        ({"path": "01.png"}, ["01.png"]),
        ({"path": "*1.png", "tag": "small"}, ["01.png", "11.png"]),
        ({"tag": ["small", "no"]}, []),
        ({"larger": "1MB"}, []),
        ({"until": "1999-01-01"}, []),
        ({"path": "", "since": ""}, [f"{n:02}.png" for n in range(12)]),
    ):
        assert sorted(names(client.get("/search", params={"q": QUERY, **params}).json())) == wanted
        page = client.get("/images", params=params).json()
        assert sorted(names(page, "photographs")) == wanted
        assert (page["found"], page["total"]) == (len(wanted), 12)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "wanted one of q, picture and like"),
        ({"q": "a", "like": 1}, "wanted one of q, picture and like"),
        ({"q": " "}, "query: is empty"),
        ({"q": "?!"}, "no word in it"),
        ({"q": "zebra"}, "knows none of its words (zebra)"),
        ({"q": "dog", "since": "yesterday"}, "since: got 'yesterday', wanted a day"),
        ({"q": "dog", "larger": "much"}, "larger: got 'much', wanted a number of bytes"),
        ({"q": "dog", "limit": 101}, "limit: input should be less than or equal to 100"),
        ({"q": "dog", "offset": -1}, "offset: input should be"),
        ({"q": "x" * 2001}, "q: string should have at most 2000"),
    ],
)
def test_what_cannot_be_searched_is_said_in_words(client, params, words):
    for stream in (False, True):
        response = client.get("/search", params={**params, "stream": stream})
        assert response.status_code == 422
        assert list(response.json()) == ["error"]
        assert words in response.json()["error"]


def test_unknown_words_are_named(client):
    assert client.get("/search", params={"q": "a red zebra"}).json()["unknown"] == ["zebra"]


def test_a_picture_finds_itself_and_its_pages_and_sentences(world, client):
    data = (world[0] / "photos" / "03.png").read_bytes()
    answer = client.post("/search", params={"limit": 2}, content=data).json()
    assert names(answer)[0] == "03.png"
    assert answer["hits"][0]["score"] == pytest.approx(1, abs=1e-5)
    wanted = world[1].search(world[0] / "photos" / "03.png", k=12)
    assert [one["text"] for one in answer["sentences"]] == [s.text for s in wanted.sentences]
    again = client.get("/search", params={"picture": answer["picture"]}).json()  # as a reload does
    assert again["sentences"] == answer["sentences"]
    more = client.get("/search", params={"picture": answer["picture"], "offset": 2}).json()
    assert not more["sentences"]
    found = names(answer) + names(more)
    assert found == [Path(hit.path).name for hit in wanted.hits]
    gone = client.get("/search", params={"picture": "no-such"})
    assert gone.status_code == 410
    assert "send it again" in gone.json()["error"]


def test_photographs_like_one_of_the_index(world, client):
    answer = client.get("/search", params={"like": 4}).json()
    wanted = world[1].search(Path(world[1].tables.photos.get([4])[0].key), k=12)
    assert names(answer) == [Path(hit.path).name for hit in wanted.hits]
    assert client.get("/search", params={"like": 999}).status_code == 404


def test_uploads_are_bounded_and_leave_nothing_on_disk(world, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    big = io.BytesIO()
    Image.new("RGB", (300, 300), "red").save(big, "PNG")
    noise = io.BytesIO()
    Image.effect_noise((200, 200), 90).save(noise, "BMP")  # as large as its pixels
    before = sorted(world[0].rglob("*"))
    with client_of(world[1], upload_bytes=30_000, upload_pixels=50_000) as client:
        pixels = client.post("/search", content=big.getvalue())
        assert pixels.status_code == 422
        assert "300 x 300 = 90,000 pixels, wanted at most 50,000" in pixels.json()["error"]
        said = client.post("/search", content=noise.getvalue())
        pieces = (noise.getvalue()[start : start + 4096] for start in range(0, 60_000, 4096))
        unsaid = client.post("/search", content=pieces)  # chunked: no length is announced
        for response in (said, unsaid):
            assert response.status_code == 413
            assert response.json()["error"] == "too large: at most 30,000 bytes can be sent here"
        other = client.post("/search", content=b"<svg xmlns='http://www.w3.org/2000/svg'/>")
        assert other.status_code == 422
        assert "is not an image" in other.json()["error"]
        many = client.post("/search", content=scans(101))
        assert many.status_code == 422
        assert "has more than 100 scans, wanted a photograph" in many.json()["error"]
        empty = client.post("/search", content=b"")
        assert (empty.status_code, empty.json()["error"]) == (
            422,
            "the body is empty, wanted a picture",
        )
        good = client.post(
            "/search",
            content=(world[0] / "photos" / "03.png").read_bytes(),
            headers={"Content-Disposition": 'attachment; filename="../../evil.png"'},
        )
        assert good.status_code == 200
    assert list(tmp_path.iterdir()) == []
    assert sorted(world[0].rglob("*")) == before


def test_other_bodies_are_small(client):
    response = client.post("/ask", content=b"x" * 70_000)
    assert response.status_code == 413


def test_photographs_newest_first_and_one_by_one(tmp_path, monkeypatch):
    import os

    index = make_world(tmp_path, 0)
    for number, when in ((0, 1_600_000_000), (1, 1_700_000_000), (2, 1_500_000_000)):
        path = search_parts.make_photo(tmp_path / "photos" / f"{number}.png", number)
        os.utime(path, (when, when))
    index.add(tmp_path / "photos")
    with client_of(index) as client:
        page = client.get("/images", params={"limit": 2}).json()
        assert names(page, "photographs") == ["1.png", "0.png"]
        rest = client.get("/images", params={"offset": page["next_offset"]}).json()
        assert (names(rest, "photographs"), rest["next_offset"]) == (["2.png"], None)
        for module in (images_routes, search_routes):  # no page begins beyond what may be asked for
            monkeypatch.setattr(module, "FARTHEST", 1)
        assert client.get("/images", params={"limit": 2}).json()["next_offset"] is None
        assert client.get("/images", params={"limit": 1}).json()["next_offset"] == 1
        for limit, then in ((2, None), (1, 1)):
            asked = client.get("/search", params={"q": QUERY, "limit": limit}).json()
            assert asked["next_offset"] == then
        uid = page["photographs"][1]["id"]
        detail = client.get(f"/images/{uid}").json()
        assert detail["path"] == str(tmp_path / "photos" / "0.png")
        assert detail["taken"] == "2020-09-13T12:26:40Z"
        assert detail["bytes"] == (tmp_path / "photos" / "0.png").stat().st_size
        assert detail["regions"][1]["box"] == [0.5, 0, 1, 0.5]
        assert client.get("/images/77").json() == {"error": "photograph 77 is not in the index"}
        assert client.get("/images/0").status_code == 422


def test_photographs_are_newest_first_also_after_a_search_showed_some(world):
    with client_of(world[1]) as fresh:
        right = [one["id"] for one in fresh.get("/images").json()["photographs"]]
    with client_of(world[1]) as client:  # another service, which has shown nothing yet
        found = client.get("/search", params={"q": QUERY, "limit": 3}).json()
        assert [hit["id"] for hit in found["hits"]] != right[:3]
        assert [one["id"] for one in client.get("/images").json()["photographs"]] == right


def test_thumbnails_are_upright_small_and_cached(tmp_path):
    index = make_world(tmp_path, 0)
    pixels = np.zeros((300, 1000, 3), np.uint8)
    pixels[:, :500] = (250, 20, 20)  # the left half is red
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees: what was left is then on top
    (tmp_path / "photos").mkdir()
    Image.fromarray(pixels).save(tmp_path / "photos" / "a.jpg", exif=exif, quality=95)
    index.add(tmp_path / "photos")
    with client_of(index) as client:
        response = client.get("/images/1/thumbnail")
        picture = Image.open(io.BytesIO(response.content))
        assert picture.size == (144, 480)
        shown = np.asarray(picture).astype(int)
        assert shown[:200].mean((0, 1)) == pytest.approx([250, 20, 20], abs=12)
        assert shown[280:].mean() < 12
        tag = response.headers["etag"]
        again = client.get("/images/1/thumbnail", headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
        sizes = {
            side: Image.open(
                io.BytesIO(client.get(f"/images/1/thumbnail?side={side}").content)
            ).size
            for side in (960, 1600)
        }
        assert sizes == {960: (288, 960), 1600: (300, 1000)}  # never larger than it is
        assert client.get("/images/1/thumbnail?side=100").status_code == 422
        kept = client.app.state.service.thumbnails.kept
        assert len(kept) == 3
        (tmp_path / "photos" / "a.jpg").unlink()
        assert client.get("/images/1/thumbnail").content == response.content  # from memory
        kept.clear()
        gone = client.get("/images/1/thumbnail")
        assert gone.status_code == 404
        assert gone.json()["error"].startswith("this photograph cannot be shown: no such file")


def test_files_are_sent_only_while_they_are_photographs(tmp_path):
    index = make_world(tmp_path, 2)
    path = tmp_path / "photos" / "00.png"
    with client_of(index) as client:
        response = client.get("/images/1/file")
        assert response.content == path.read_bytes()
        assert response.headers["content-type"] == "image/png"
        assert response.headers["content-disposition"] == "inline; filename*=UTF-8''00.png"
        path.unlink()
        assert client.get("/images/1/file").status_code == 404
        path.symlink_to("/etc/passwd")
        stolen = client.get("/images/1/file")
        assert stolen.status_code == 404
        assert b"root" not in stolen.content
        for address in ("/images/../../etc/passwd", "/static/..%2fapp.py", "/static/app.py"):
            assert client.get(address).status_code in (404, 422)


def test_explanations_are_where_the_reranker_looks(world, client):
    answer = client.get("/explain", params={"id": 3, "q": QUERY}).json()
    looks = world[1].look(QUERY, Hit(1, 0.0, "", 3))
    assert [word["word"] for word in answer["words"]] == ["a", "red", "dog", "in", "the", "snow"]
    for word, look in zip(answer["words"], looks[1:-1], strict=True):  # without <start>, <end>
        assert word["weights"] == pytest.approx(look.weights, abs=1e-5)
        assert word["strongest"] == look.strongest
    hit = next(hit for hit in world[1].search(QUERY, 12).hits if hit.uid == 3)
    assert answer["score"] == pytest.approx(hit.score, abs=1e-4)
    assert len(answer["regions"]) == len(answer["words"][0]["weights"])
    assert answer["unknown"] == []
    told = client.get("/explain", params={"id": 3, "q": "a red zebra"}).json()
    assert told["unknown"] == ["zebra"]
    assert client.get("/explain", params={"id": 99, "q": QUERY}).status_code == 404
    assert client.get("/explain", params={"id": 3, "q": "zebra"}).status_code == 422
    assert client.get("/explain", params={"id": 3}).json() == {"error": "q: field required"}


def test_a_word_without_a_region_and_whose_attention_it_is(world, client, tmp_path):
    assert client.get("/explain", params={"id": 3, "q": QUERY}).json()["whose"] is None
    search_parts.save_models(tmp_path)
    search_parts.make_photo(tmp_path / "photos" / "a.png", 1)
    both = Ensemble([search_parts.taker(), search_parts.reranker()])
    index = search_parts.create(tmp_path, reranker=both)
    index.add(tmp_path / "photos")
    with client_of(index) as other:
        answer = other.get("/explain", params={"id": 1, "q": QUERY}).json()
    assert answer["whose"] == "sum-max, the first of 2 models"
    answered = [word for word in answer["words"] if any(word["weights"])]
    assert len(answered) <= 4 < len(answer["words"])  # at most four regions, one word each
    for word in answer["words"]:
        wanted = word["weights"].index(max(word["weights"])) if word in answered else None
        assert word["strongest"] == wanted


def test_sentences_for_a_photograph(world, client):
    found = client.get("/images/2/sentences").json()
    path = Path(world[1].tables.photos.get([2])[0].key)
    wanted = world[1].search(path, k=3).sentences
    assert [one["text"] for one in found] == [one.text for one in wanted]
    assert [one["score"] for one in found] == pytest.approx([s.score for s in wanted], abs=2e-3)


def test_questions(tmp_path):
    index = make_world(tmp_path, 2)
    model = asking_parts.answerer()
    with client_of(index, asker=Asker(model)) as client:
        asked = {"id": 1, "question": "is the lamp on?", "top": 2}
        reply = client.post("/ask", json=asked).json()
        path = index.tables.photos.get([1])[0].key
        decoded = []

        def counted(file, size=None, **how):
            decoded.append(size)
            return read_photo(file, size, **how)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ask_module, "read_photo", counted)
            assert client.post("/ask", json=asked).json() == reply
        assert len(decoded) == 1
        assert decoded[0] is not None  # never in its own size, which nobody looks at here
        wanted = ask(model, path, "is the lamp on?", top=2)
        assert [one["answer"] for one in reply["answers"]] == [one for one, _ in wanted.answers]
        assert reply["words"] == ["is", "the", "lamp", "on", "?"]  # without <start>, <end>
        assert len(reply["steps"]) == len(wanted.region_weights) == 2
        for step, regions, words in zip(
            reply["steps"], wanted.region_weights, wanted.word_weights, strict=True
        ):
            assert step["regions"] == pytest.approx(regions.tolist(), abs=1e-5)
            assert step["words"] == pytest.approx(words[1:-1].tolist(), abs=1e-5)
        assert np.allclose(reply["boxes"], wanted.boxes, atol=1e-5)
        refused = client.post("/ask", json={"id": 1, "question": "xyzzy"})
        assert refused.status_code == 422
        assert refused.json()["error"] == "question: the model knows no word of 'xyzzy'"
        assert client.post("/ask", json={**asked, "id": 9}).status_code == 404
        extra = client.post("/ask", json={**asked, "path": "/etc/passwd"})
        assert extra.json() == {"error": "path: extra inputs are not permitted"}
        kind = {"Content-Type": "application/json"}
        broken = client.post("/ask", content=b"{", headers=kind)
        assert broken.json() == {"error": "the body is not JSON"}
        other = client.post("/ask", content=b"[]", headers=kind)
        assert other.json()["error"].startswith("the body is not an object of JSON")
        assert client.get("/index").json()["answerer"] == "r-dan"


def test_without_a_model_that_answers(client):
    response = client.post("/ask", json={"id": 1, "question": "what is it?"})
    assert response.status_code == 409
    assert "--answerer" in response.json()["error"]


def test_an_index_without_a_reranker(tmp_path):
    from crossgaze.search.index import Index

    make_world(tmp_path, 3)
    index = Index.create(
        tmp_path / "plain", embedder=tmp_path / "embedder", source=search_parts.CellSource()
    )
    index.add(tmp_path / "photos")
    with client_of(index) as client:
        answer = client.get("/search", params={"q": QUERY}).json()
        wanted = index.search(QUERY).hits
        assert names(answer) == [Path(hit.path).name for hit in wanted]
        explained = client.get("/explain", params={"id": 1, "q": QUERY}).json()
        assert (explained["words"], explained["score"]) == ([], None)


def test_an_empty_index_answers_with_nothing_until_something_comes(tmp_path):
    with client_of(make_world(tmp_path, 0)) as client:
        assert client.get("/images").json()["total"] == 0
        by_words = client.get("/search", params={"q": QUERY})
        picture = search_parts.make_photo(tmp_path / "photos" / "a.png", 1).read_bytes()
        by_picture = client.post("/search", content=picture)
        for response in (by_words, by_picture):
            assert response.status_code == 200
            answer = response.json()
            assert (answer["stage"], answer["hits"], answer["total"]) == ("ranked", [], 0)
            assert answer["next_offset"] is None
        said = client.get("/search", params={"q": "?!"})
        assert (said.status_code, said.json()["error"]) == (422, "query: '?!' has no word in it")
        reopen(tmp_path).add(tmp_path / "photos")
        for params in ({"q": QUERY}, {"picture": by_picture.json()["picture"]}):
            assert names(client.get("/search", params=params).json()) == ["a.png"]


def test_a_picture_takes_as_long_as_reading_it_does(world, client, monkeypatch):
    read = library_module.read_picture

    def slowly(*given, **more):
        time.sleep(0.4)
        return read(*given, **more)

    monkeypatch.setattr(library_module, "read_picture", slowly)
    data = (world[0] / "photos" / "03.png").read_bytes()
    assert client.post("/search", content=data).json()["milliseconds"] >= 400


def test_a_look_whether_anybody_is_there_needs_no_body(world):
    with running(create_app(world[1])) as address:
        for path in ("", "health"):
            got, head = (getattr(requests, how)(address + path, timeout=60) for how in HOWS)
            assert (head.status_code, head.content) == (200, b"")
            for name in ("content-type", "content-length", "content-security-policy"):
                assert head.headers[name] == got.headers[name]
        assert requests.head(f"{address}search", timeout=60).status_code == 405


def test_a_bug_inside_is_not_shown(client, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(client.app.state.service.library, "begin", broken)
    response = client.get("/search", params={"q": QUERY})
    assert (response.status_code, response.json()) == (500, {"error": INSIDE})
    assert "secret detail" in caplog.text
    assert set(HEADERS) <= set(response.headers)
    monkeypatch.undo()
    monkeypatch.setattr(client.app.state.service.library, "go_on", broken)
    lines = lines_of(client.get("/search", params={"q": "the green dog", "stream": True}))
    assert lines[-1] == {"error": INSIDE}
    assert client.app.state.service.models.taken == 0
