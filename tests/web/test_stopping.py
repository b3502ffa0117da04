"""Ctrl-C in the middle of something: a server in a process of its own, and what it leaves."""

import asyncio
import json
import os
import signal
import socket
import time
import urllib.request
from contextlib import contextmanager

import pytest

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

import killing
import killing_work
import search_parts
import web_parts
from crossgaze.web.metrics import Metrics
from crossgaze.web.shell import STOPPING, Shell

PHOTOS = 4 * 64  # all but the first 64 take a second each, and a thread takes 64 at a time
SOON = 60.0  # seconds; a busy machine is no failure, waiting for such a thread would be


class Server:
    """A server that is stopped, and what it said."""

    def __init__(self, process, address, out, errors):
        self.process, self.address, self.out, self.errors = process, address, out, errors

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        how = {"Content-Type": "application/json"}
        asked = urllib.request.Request(self.address + path, data, how)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)

    def connect(self):
        port = int(self.address.rsplit(":", 1)[1].strip("/"))
        return socket.create_connection(("127.0.0.1", port), timeout=60)

    def press_ctrl_c(self, times=1):
        """Stop it, and see it end soon and in order; return what it said on stderr."""
        for _ in range(times):
            os.kill(self.process.pid, signal.SIGINT)
            time.sleep(0.5)
        self.process.join(SOON)
        said = self.errors.read_text()
        assert self.process.exitcode == 0, said
        assert self.out.read_text().endswith("stopped\n")
        assert "Traceback" not in said, said
        return said


@pytest.fixture
def world(tmp_path):
    web_parts.make_world(tmp_path, 0).close()
    for number in range(PHOTOS):
        search_parts.make_photo(tmp_path / "photos" / f"{number:03}.png", number)
    return tmp_path


@contextmanager
def serving(world):
    (world / "photos").mkdir(exist_ok=True)
    out, errors = world / "out.txt", world / "errors.txt"
    process, told = killing.start(killing_work.serve_command, world, out, errors)
    try:
        until = time.monotonic() + 120
        while not (out.exists() and out.read_text().endswith("\n")):
            assert process.is_alive(), errors.read_text()
            assert time.monotonic() < until
            time.sleep(0.05)
        yield Server(process, out.read_text().split(" at ")[1].split()[0], out, errors)
    finally:
        process.kill()
        process.join()
        told.close()


@pytest.mark.parametrize("times", [1, 2])
def test_while_a_folder_is_added_and_somebody_looks_on(world, times):
    with serving(world) as server:
        server.ask("index", {"folder": str(world / "photos")})
        with server.connect() as client, client.makefile("rb") as stream:
            client.sendall(b"GET /index/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            while not (line := stream.readline()).startswith(b"data: "):
                assert line
            assert json.loads(line.removeprefix(b"data: "))["state"] == "running"
            until = time.monotonic() + 120
            while not (state := server.ask("index"))["photographs"]:
                assert (state["job"]["state"], time.monotonic() < until) == ("running", True)
                time.sleep(0.05)
            said = server.press_ctrl_c(times)
            ended = stream.read().endswith(b"0\r\n\r\n")
    if times == 1:
        assert ended  # by itself: the stream did not break off,
        assert "Cancel" not in said  # and nobody had to be cancelled
    with web_parts.reopen(world) as index:
        assert state["photographs"] <= len(index) < PHOTOS  # acknowledged is there


def test_while_a_picture_arrives(tmp_path):
    web_parts.make_world(tmp_path, 0).close()
    with serving(tmp_path) as server, server.connect() as client:
        client.sendall(
            b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: image/png\r\n"
            b"Content-Length: 100000\r\n\r\nsome of it"
        )
        server.ask("health")  # after it, the picture is being received
        server.press_ctrl_c()
        with client.makefile("rb") as stream:
            head, _, body = stream.read().partition(b"\r\n\r\n")
    status, *headers = head.decode("latin-1").lower().split("\r\n")
    assert status.startswith("http/1.1 503 ")
    assert json.loads(body) == {"error": "the server is being stopped; try again later"}
    names = {line.partition(":")[0] for line in headers}
    assert {"content-security-policy", "x-content-type-options", "retry-after"} <= names
    assert "content-type: application/json" in headers


@pytest.mark.parametrize("stopping", [True, False])
@pytest.mark.parametrize("started", [True, False])
def test_a_request_that_is_cancelled_is_answered_if_it_can_be(stopping, started):
    """By whoever runs the service; only where it is being stopped is that the end of it."""
    sent = []

    async def app(scope, receive, send):
        if started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(600)

    async def send(message):
        sent.append(message)

    async def cancel():
        shell = Shell(app, Metrics(), is_stopping=lambda: stopping)
        scope = {"type": "http", "method": "GET", "path": "/"}
        task = asyncio.create_task(shell(scope, None, send))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancel()) is not stopping
    assert sent[0]["status"] == (200 if started else 503)
    assert b"content-security-policy" in dict(sent[0]["headers"])
    if not started:
        assert json.loads(sent[1]["body"]) == {"error": STOPPING[1]}
