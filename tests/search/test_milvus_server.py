"""The Milvus engine against a real server, PyPI's `milvus` started here."""

import shutil

import pytest

import search_parts
from crossgaze.errors import InputError
from crossgaze.search.engines import find_folder
from crossgaze.search.filters import Where
from crossgaze.search.index import Index
from crossgaze.search.milvus import MilvusEngine
from crossgaze.search.moving import move_index
from durability_parts import make_world
from engine_parts import WHERES, WIDTH, entry, fill, ranked, vectors
from search import test_milvus_hnsw
from search.test_durability import survive

pytestmark = pytest.mark.slow  # a server takes half a minute to come and go
QUERY = "a red dog in the snow"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    milvus = pytest.importorskip("milvus", reason="needs PyPI's milvus, a server for Linux x86-64")
    server = milvus.MilvusServer()
    server.set_base_dir(str(tmp_path_factory.mktemp("milvus")))
    server.start()  # where the package is there, a server that does not start is an error
    yield f"http://127.0.0.1:{server.listen_port}"
    server.stop()


@pytest.fixture
def engine(url):
    made = MilvusEngine(url, "tests", WIDTH, create=True)
    yield made
    made.drop()
    made.close()


def test_the_engine_is_the_definition(engine):
    there = fill(engine)
    query = vectors(1, seed=9)[0]
    for where in WHERES:
        uids, scores = engine.search(query, 7, where)
        wanted, products = ranked(there, query, 7, where)
        assert uids.tolist() == wanted
        assert scores.tolist() == pytest.approx(products, abs=1e-5)
    engine.delete([3, 5])
    new = entry(7, path="/q/new é.jpg", tags=('b"c',))
    engine.update([new])
    assert len(engine) == 58
    assert engine.get([7, 3]) == [new]
    assert engine.vectors([7]).tolist() == [there[7][1].tolist()]
    assert engine.search(query, 3, Where(tags=('b"c',)))[0].tolist() == [7]


def test_the_approximate_index_of_a_server(url):
    made = MilvusEngine(url, "many", test_milvus_hnsw.WIDTH, create=True)
    test_milvus_hnsw.check_hnsw(made)
    made.drop()
    made.close()


def test_an_index_in_a_server(url, tmp_path):
    search_parts.save_models(tmp_path)
    for number in range(9):
        search_parts.make_photo(tmp_path / "photos" / f"{number}.png", number)
    how = {
        "embedder": tmp_path / "embedder",
        "reranker": tmp_path / "reranker",
        "source": search_parts.CellSource(),
    }
    plain = Index.create(tmp_path / "plain", **how)
    plain.add(tmp_path / "photos")
    served = Index.create(tmp_path / "served", engine=f"{url}/served", **how)
    served.add(tmp_path / "photos")
    wanted = plain.search(QUERY, k=9).hits
    assert served.search(QUERY, k=9).hits == wanted
    assert find_folder(f"{url}/served") == (tmp_path / "served").resolve()
    with Index.open(f"{url}/served") as again:
        assert again.search(QUERY, k=9).hits == wanted
    move_index(tmp_path / "plain", tmp_path / "moved", f"{url}/moved")
    with Index.open(f"{url}/moved") as moved:
        assert moved.search(QUERY, k=9).hits == wanted
    with pytest.raises(InputError, match="the collection 'moved_photos' is there already"):
        move_index(tmp_path / "plain", tmp_path / "third", f"{url}/moved")
    # The same path as on another machine, whose index is alive: only its id makes it this one.
    shutil.rmtree(tmp_path / "moved")
    with pytest.raises(InputError, match="'moved_photos' is there already, of the index in"):
        move_index(tmp_path / "plain", tmp_path / "moved", f"{url}/moved")
    with pytest.raises(InputError, match="has no index there; its collections: moved_photos"):
        Index.open(f"{url}/nothing")


def test_killed_while_it_writes_to_a_server(url, tmp_path):
    """A server has no transactions: of a batch, and of what it replaces, any part may be there."""
    found, calm = survive(make_world(tmp_path), 2, f"{url}/killed", seed=3)
    assert found == calm


def test_a_server_that_is_not_there_is_said_in_a_line(tmp_path):
    with pytest.raises(InputError, match=r"http://127.0.0.1:9: Milvus says") as caught:
        Index.open("http://127.0.0.1:9/x")
    assert "\n" not in str(caught.value)
