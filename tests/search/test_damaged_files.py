"""An index of which files were cut off or bits flipped, file by file."""

import random

import pytest

import search_parts
from command_line import run
from crossgaze.data.regions.verify import verify
from crossgaze.errors import InputError
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
