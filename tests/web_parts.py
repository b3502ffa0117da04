"""A small library behind the service, and a client of it."""

import threading
import time
from contextlib import contextmanager

import search_parts
from crossgaze.search.index import Index
from crossgaze.web.app import create_app
from crossgaze.web.settings import ServeConfig

QUERY = "a red dog in the snow"
TOKEN = "0123456789abcdef-token"


def make_world(folder, count=12):
    """Write photographs, two models and an index of them."""
    search_parts.save_models(folder)
    for number in range(count):
        search_parts.make_photo(folder / "photos" / f"{number:02}.png", number)
    index = search_parts.create(folder)
    if count:
        index.add(folder / "photos", tags=["small"])
    return index


def reopen(folder):
    return Index.open(folder / "index", source=search_parts.CellSource())


@contextmanager
def client_of(index, asker=None, host="127.0.0.1", **settings):
    """Give a client; what goes wrong inside is an answer, as it is with uvicorn."""
    from starlette.testclient import TestClient

    app = create_app(index, ServeConfig(**settings), asker=asker)
    address = f"http://{host}"
    with TestClient(app, base_url=address, raise_server_exceptions=False) as client:
        yield client


@contextmanager
def running(app):
    """Serve an app on loopback in a thread of this process; give its address."""
    from crossgaze.web.server import Server, address_of, bind

    with bind("127.0.0.1", 0) as bound:
        server = Server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield address_of(bound, "127.0.0.1")
        finally:
            server.should_exit = True
            thread.join()
