"""Where an index may be made, and that nothing of anybody else's is ever removed for it."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import search_parts
from crossgaze.errors import InputError
from crossgaze.search import making, moving
from crossgaze.search.index import Index
from crossgaze.search.milvus import MilvusEngine
from crossgaze.search.places import MARKER, mark, marked
from engine_parts import entry, vectors
from search_parts import create, reopen

pytest.importorskip("lancedb", reason="needs crossgaze[search]")


def files_in(folder):
    found = [path for path in Path(folder).rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def make_at(world, place, *, move):
    if move:
        return moving.move_index(world / "index", place)
    how = {"embedder": world / "embedder", "source": search_parts.CellSource()}
    return Index.create(place, **how).close()


@pytest.mark.parametrize("move", [False, True])
@pytest.mark.parametrize("name", ["regions-train", "database", "regions-1", "milvus.db-old"])
def test_a_folder_with_anything_in_it_is_refused_and_left_as_it_is(world, name, move):
    (world / "work" / name).mkdir(parents=True)
    (world / "work" / name / "mine.npy").write_bytes(b"weeks of work")
    before = files_in(world / "work")
    if move:
        create(world).close()
    with pytest.raises(InputError, match=rf"is not empty and not an index \(it holds '{name}'\)"):
        make_at(world, world / "work", move=move)
    assert files_in(world / "work") == before


@pytest.mark.parametrize("move", [False, True])
def test_under_a_marker_too_only_what_an_index_is_made_of_goes(world, move):
    if move:
        create(world).close()
    place = world / "work"
    (place / "regions-train").mkdir(parents=True)
    (place / "regions-train" / "mine.npy").write_bytes(b"weeks of work")
    (place / "regions-1").mkdir()
    mark(place, "abc")
    before = files_in(place)
    with pytest.raises(InputError, match="never finished, and 'regions-train', which is none"):
        make_at(world, place, move=move)
    assert files_in(place) == before
    assert (place / "regions-1").is_dir()
    shutil.rmtree(place / "regions-train")
    make_at(world, place, move=move)
    assert Index.open(place).head.id == "abc"


@pytest.mark.parametrize("text", ["", "[]", '{"format": "x", "id": "y"}', '{"id": 3}', "{"])
def test_a_marker_that_this_library_did_not_write_is_none(world, text):
    place = world / "work"
    (place / "database").mkdir(parents=True)
    (place / MARKER).write_text(text)
    with pytest.raises(InputError, match="is not empty and not an index"):
        make_at(world, place, move=False)
    assert (place / "database").is_dir()


@pytest.mark.parametrize("step", ["open_tables", "open_writer", "write_head"])
@pytest.mark.parametrize("engine", ["lance", "milvus"])
def test_what_an_interrupted_creation_left_is_no_obstacle(world, monkeypatch, step, engine):
    if engine == "milvus":
        pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    with monkeypatch.context() as patched:
        patched.setattr(making, step, lambda *args, **more: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            create(world, engine=engine)
    begun = marked(world / "index")
    assert begun
    (world / "index" / "milvus.db.x").write_text("not ours")
    with pytest.raises(InputError, match=r"and 'milvus.db.x', which is none of it"):
        create(world)
    (world / "index" / "milvus.db.x").unlink()
    shutil.rmtree(world / "index" / "milvus.db", ignore_errors=True)
    (world / "index" / "milvus.db").write_text("a file, as older versions of Milvus Lite have")
    index = create(world)
    assert (len(index), index.head.id) == (0, begun)
    assert not (world / "index" / "milvus.db").exists()
    assert not (world / "index" / MARKER).exists()
    assert index.add(world / "photos").added == 12


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import search_parts
from crossgaze.search import making, moving, places

def die(*args, **more):
    os.kill(os.getpid(), signal.SIGKILL)

step, world = sys.argv[3], Path(sys.argv[1])
if step.startswith("unmake"):
    index = search_parts.create(world)
    making.clear_leftovers = die
    making.unmake_index(index)
elif step == "marker":
    Path.replace = die  # the marker is the first file that gets its name by it
elif step == "unmark":
    making.unmark = die
else:
    making.write_head = die
search_parts.create(world)
"""


@pytest.mark.parametrize("step", ["marker", "head", "unmark", "unmake"])
def test_killed_while_it_is_made_or_unmade(world, step):
    words = [sys.executable, "-c", KILLED, str(world), str(Path(__file__).parents[1]), step]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    left = {path.name for path in (world / "index").iterdir()}
    if step == "unmark":  # it was whole already
        assert {MARKER, "index.json"} < left
        index = reopen(world)
    else:
        assert "index.json" not in left
        assert (MARKER in left) == (step != "marker")
        with pytest.raises(InputError, match="is not an index"):
            reopen(world)
        index = create(world)
    assert index.add(world / "photos").added == 12
    wanted = {".crossgaze.lock", "database", "held.json", "index.json", "regions-1"}
    assert {path.name for path in (world / "index").iterdir()} - wanted <= (
        {path for path in left if path.endswith(".partial")} if step == "marker" else set()
    )


def test_a_folder_beside_the_regions_of_an_index_is_not_taken_for_old_regions(world):
    index = create(world)
    index.add(world / "photos")
    for name in ("regions-train", "regions-2"):
        (world / "index" / name).mkdir()
    (world / "index" / "regions-train" / "mine.npy").write_bytes(b"weeks of work")
    index.add(world / "photos")
    assert (world / "index" / "regions-train" / "mine.npy").read_bytes() == b"weeks of work"
    assert not (world / "index" / "regions-2").exists()  # what a stopped `compact` leaves


class Remembering:
    """Milvus Lite's client, with collections' descriptions, which it drops and a server keeps."""

    notes: dict = {}  # noqa: RUF012 (all clients' together, as a server's)

    def __init__(self, client):
        self.client = client

    def create_collection(self, name, *, schema, **more):
        self.notes[name] = schema.description
        self.client.create_collection(name, schema=schema, **more)

    def describe_collection(self, name):
        return self.client.describe_collection(name) | {"description": self.notes[name]}

    def __getattr__(self, name):
        return getattr(self.client, name)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Milvus Lite's file in the place of a server, which takes half a minute to come."""
    pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    from crossgaze.search import engines, milvus

    connect, real, uri = milvus.connect, engines.MilvusEngine, str(tmp_path / "server.db")
    monkeypatch.setattr(milvus, "connect", lambda uri: Remembering(connect(uri)))
    monkeypatch.setattr(engines, "MilvusEngine", lambda _, *a, **more: real(uri, *a, **more))
    monkeypatch.setattr(Remembering, "notes", {})
    return uri


def note(index, folder):
    return json.dumps({"format": "crossgaze-index", "index": index, "folder": folder})


def test_the_same_path_on_another_machine_does_not_drop_a_live_index(server):
    live = MilvusEngine(server, "x_photos", 4, create=True, note=note("one", "/data/index"))
    live.add([entry(1)], vectors(1))
    for other in (note("two", "/data/index"), "", "[]", note("", "/data/index")):
        with pytest.raises(InputError, match="there already, of the index in /data/index; take"):
            MilvusEngine(server, "x_photos", 4, create=True, note=other)
    assert len(live) == 1
    again = MilvusEngine(server, "x_photos", 4, create=True, note=note("one", "/elsewhere"))
    assert len(again) == 0  # what has the id of the folder's marker is left over
    again.close()
    live.close()


def test_a_move_that_was_stopped_finds_its_own_collections_again(world, server, monkeypatch):
    create(world).add(world / "photos")
    url = "http://127.0.0.1:9/photos"
    with monkeypatch.context() as patched:
        patched.setattr(moving, "write_head", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            moving.move_index(world / "index", world / "served", url)
    with pytest.raises(InputError, match=f"there already, of the index in {world}/served; take"):
        moving.move_index(world / "index", world / "other", url)
    assert moving.move_index(world / "index", world / "served", url) == (12, 0)
    note_of = json.loads(Remembering.notes["photos_photos"])
    assert note_of["index"] == json.loads((world / "served" / "index.json").read_text())["id"]
