"""An index of which files were cut off or bits flipped, file by file."""

import random
import shutil

import numpy as np
import pytest

import search_parts
from command_line import run
from crossgaze.data.regions.verify import verify
from crossgaze.errors import FileFormatError, InputError
from crossgaze.files import LOCK
from crossgaze.search.moving import move_index
from durability_parts import QUERY, make_world

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
REGIONS = ("features", "boxes", "sizes", "counts", "confidence", "classes")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """The folder of an index with twelve photographs; each test leaves it as it was."""
    world = make_world(tmp_path_factory.mktemp("damaged"), photos=12)
    with search_parts.create(world) as made:
        made.add(world / "photos")
    return world / "index"


@pytest.fixture(scope="module")
def milvus(tmp_path_factory):
    """A world with an index of twelve photographs and a sentence in Milvus Lite, to be copied."""
    pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    world = make_world(tmp_path_factory.mktemp("milvus"), photos=12)
    (world / "lines.txt").write_text("a dog runs\n")
    with search_parts.create(world, engine="milvus") as made:
        made.add(world / "photos")
        made.add_sentences(world / "lines.txt")
    return world


def answers(index):
    """Open an index anew; return all it says, by both ways of ranking, with regions."""
    with search_parts.reopen(index.parent) as opened:
        ways = ({"exhaustive": True, "rank_by": "reranker"}, {})
        found = [opened.search(QUERY, k=12, **way).hits for way in ways]
        told = [(hit.path, hit.score) for hits in found for hit in hits]
        return told, [opened.kept.regions(int(uid)) for uid in opened.kept.uids]


def tables(index):
    """Return the files in which LanceDB keeps photographs."""
    return sorted((index / "database" / "photos.lance" / "data").glob("*.lance"))


def refusal(index):
    """Return why an index is refused, in one line; nothing where it answers."""
    try:
        answers(index)
    except InputError as error:
        said = str(error)
    else:
        said = ""
    assert "\n" not in said
    return said


def flip(path, bit):
    """Flip a bit of a file; return what the file was."""
    before = path.read_bytes()
    damaged = bytearray(before)
    damaged[bit // 8] ^= 1 << bit % 8
    path.write_bytes(damaged)
    return before


def test_files_that_were_cut_off_are_refused_by_name(index):
    good = answers(index)
    store = index / "regions-1"
    assert {path.stem for path in store.glob("*.bin")} == set(REGIONS)
    files = {path: path.name for path in store.glob("*.bin")}
    files |= dict.fromkeys(tables(index), "photos.lance: LanceDB cannot work with it")
    for path, said in files.items():
        before = path.read_bytes()
        for left in (len(before) - 1, len(before) // 2, 0):
            path.write_bytes(before[:left])
            assert said in refusal(index), (path.name, left)
        path.write_bytes(before)
    assert answers(index) == good


@pytest.mark.parametrize("name", REGIONS)
def test_flipped_bits_of_regions_are_found_by_verify(index, name, capsys):
    """A search reads no checksums: it refuses what cannot be, or goes on; `verify` finds all."""
    path, rng = index / "regions-1" / f"{name}.bin", random.Random(name)
    for bit in rng.sample(range(8 * path.stat().st_size), 4):
        before = flip(path, bit)
        refusal(index)
        (problem,) = verify(index / "regions-1").problems[:1]
        assert str(index / "regions-1") in problem
        path.write_bytes(before)
    assert verify(index / "regions-1").sound
    before = flip(path, 0)
    code, out, err = run(capsys, "store", "verify", index / "regions-1")
    path.write_bytes(before)
    assert code == 1
    assert f"{name}.bin" in out + err


def test_impossible_numbers_of_regions_are_refused(index):
    counts = index / "regions-1" / "counts.bin"
    for bit in (7, 31):  # of the first photograph's: above a hundred, below zero
        before = flip(counts, bit)
        said = refusal(index)
        assert str(counts) in said
        assert "wanted 1 to 4" in said
        counts.write_bytes(before)


@pytest.mark.parametrize(
    ("name", "what", "rows"),
    [("features", "similarities", 12), ("features", "similarities", 1), ("boxes", "boxes", 1)],
)
def test_regions_that_are_no_numbers_are_refused_and_never_ranked(index, name, what, rows):
    path = index / "regions-1" / f"{name}.bin"
    before = path.read_bytes()
    size = rows * len(before) // 12
    damaged = random.Random(0).randbytes(size) if rows == 12 else b"\xff" * size
    path.write_bytes(before[:-size] + damaged)
    said = refusal(index)
    path.write_bytes(before)
    assert f"{index}/regions-1: is damaged: " in said
    assert what in said.partition(" are not numbers; ")[0]
    assert f"crossgaze store verify {index}/regions-1" in said
    assert "move it away and index" in said


@pytest.mark.parametrize("way", [{"exhaustive": True}, {}, {"image": True}])
def test_vectors_that_are_no_numbers_are_refused_and_never_ranked(index, way, monkeypatch):
    """Whatever a database gives: LanceDB's own check of it comes first where all are in memory."""
    with search_parts.reopen(index.parent) as opened:
        table = opened.tables.photos
        search, vectors = table.search, table.vectors

        def spoilt(numbers):
            numbers = numbers.copy()
            numbers[3] = np.nan
            return numbers

        monkeypatch.setattr(table, "vectors", lambda uids: spoilt(vectors(uids)))
        monkeypatch.setattr(table, "search", lambda *a: (search(*a)[0], spoilt(search(*a)[1])))
        query = index.parent / "photos" / "000.png" if way.pop("image", False) else QUERY
        with pytest.raises(FileFormatError, match="database is damaged: the similarities that"):
            opened.search(query, **way)


@pytest.mark.parametrize("name", ["photos", "sentences"])
@pytest.mark.parametrize("how", ["junk", "half", "empty", "missing"])
def test_a_milvus_lite_without_its_list_of_files_is_refused_unopened(tmp_path, milvus, name, how):
    """Opened, it would delete the files that an older list does not name."""
    shutil.copytree(milvus, tmp_path, dirs_exist_ok=True)
    index = tmp_path / "index"
    good = answers(index)
    manifest = index / "milvus.db" / "collections" / f"crossgaze_{name}" / "manifest.json"
    before = manifest.read_bytes()
    damaged = {"junk": b"\xff" * 99, "half": before[: len(before) // 2], "empty": b""}
    manifest.write_bytes(damaged[how]) if how in damaged else manifest.unlink()
    files = {path: path.read_bytes() for path in index.rglob("*") if path.is_file()}
    assert f"{manifest}: is missing or damaged" in refusal(index)
    with pytest.raises(InputError, match="is missing or damaged, Milvus Lite's list"):
        move_index(index, tmp_path / "moved")
    now = {path: path.read_bytes() for path in index.rglob("*") if path.is_file()}
    assert {path: now.get(path) for path in files if path.name != LOCK} == {
        path: content for path, content in files.items() if path.name != LOCK
    }
    manifest.write_bytes(before)
    assert answers(index) == good


def test_flipped_bits_of_the_database_are_refused_or_unnoticed(index):
    """LanceDB refuses what it cannot read, and panics of its own are a line, too."""
    good = answers(index)
    versions = index / "database" / "photos.lance" / "_versions"
    rng, refused = random.Random(0), 0
    for path in (*tables(index), min(versions.glob("*.manifest"))):  # the least is the latest
        for bit in rng.sample(range(8 * path.stat().st_size), 20):
            before = flip(path, bit)
            said = refusal(index)
            assert not said or str(index) in said
            refused += bool(said)
            path.write_bytes(before)
    assert refused > 5
    assert answers(index) == good
