"""Blocks and parts against the whole order at once."""

import io

import numpy as np
import pytest

import search_parts
from crossgaze.errors import InputError
from crossgaze.search import paging
from crossgaze.search.filters import Where
from crossgaze.search.paging import (
    Block,
    candidates,
    rank_part,
    read_photograph,
    read_picture,
    read_sentence,
    sentences_for,
)
from crossgaze.vision.photos import PhotoError

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
QUERY = "a red dog in the snow"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    search_parts.save_models(folder)
    for number in range(9):
        search_parts.make_photo(folder / "photos" / f"{number}.png", number)
    index = search_parts.create(folder)
    index.add(folder / "photos")
    (folder / "lines.txt").write_text("a dog runs\nthe blue dog\na cat in the snow\n")
    index.add_sentences(folder / "lines.txt")
    return folder, index


def ranked(index, query, block):
    while not block.done:
        block = rank_part(index, query, block)
    return block.order()


@pytest.mark.parametrize("part", [1, 4, 100])
def test_one_block_in_parts_is_the_whole_search(world, monkeypatch, part):
    monkeypatch.setattr(paging, "PART", part)
    index = world[1]
    query = read_sentence(index, QUERY)
    uids, scores = ranked(index, query, candidates(index, query, 0))
    found = index.search(QUERY, k=9)
    assert uids.tolist() == [hit.uid for hit in found.hits]
    assert scores.tolist() == pytest.approx([hit.score for hit in found.hits], abs=1e-5)


def test_blocks_part_the_candidates_and_end(world, monkeypatch):
    monkeypatch.setattr(paging, "CANDIDATES", 4)
    index = world[1]
    query = read_sentence(index, QUERY)
    blocks = [candidates(index, query, number) for number in range(4)]
    assert [len(block.uids) for block in blocks] == [4, 4, 1, 0]
    assert [block.first for block in blocks] == [0, 4, 8, 12]
    assert blocks[3].done
    whole, _ = index.tables.photos.search(query.vector, 9, None)
    assert np.concatenate([block.uids for block in blocks]).tolist() == whole.tolist()
    best = index.search(QUERY, k=4, candidates=4).hits
    assert ranked(index, query, blocks[0])[0].tolist() == [hit.uid for hit in best]
    few = candidates(index, query, 0, Where.of(path="[0-3].png"))
    assert len(few.uids) == 0


def test_a_picture_and_a_photograph_of_the_index(world):
    folder, index = world
    path = folder / "photos" / "5.png"
    found = index.search(path, k=9)
    query = read_picture(index, io.BytesIO(path.read_bytes()), max_pixels=256)
    uids, scores = ranked(index, query, candidates(index, query, 0))
    assert uids.tolist() == [hit.uid for hit in found.hits]
    assert scores.tolist() == pytest.approx([hit.score for hit in found.hits], abs=1e-5)
    assert [one.text for one in sentences_for(index, query, 3)] == [
        one.text for one in found.sentences
    ]
    same = read_photograph(index, found.hits[0].uid)
    assert ranked(index, same, candidates(index, same, 0))[0].tolist() == uids.tolist()
    # What is kept is float16, so scores differ in the third place at most.
    assert [one.score for one in sentences_for(index, same, 3)] == pytest.approx(
        [one.score for one in found.sentences], abs=2e-3
    )
    with pytest.raises(PhotoError, match="wanted at most 255"):
        read_picture(index, io.BytesIO(path.read_bytes()), max_pixels=255)
    with pytest.raises(InputError, match="photograph 77: is not in the index"):
        read_photograph(index, 77)


def test_the_order_so_far():
    block = Block(np.array([7, 3, 9, 1]), np.float32([0.1, 0.9, 0.5, 0.4]), ranked=2)
    uids, scores = block.order()
    assert uids.tolist() == [3, 7, 9, 1]
    assert scores.tolist() == pytest.approx([0.9, 0.1, 0.5, 0.4])
    assert not block.done
