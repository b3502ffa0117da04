"""Tiles: every image once, nothing padded, nothing larger than asked, from any parts."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.models.encoded import Encoded
from crossgaze.scoring.tiles import make_tiles
from scoring_parts import side

counts = st.lists(st.integers(1, 5), min_size=1, max_size=12)


def parts_of(encoded, sizes):
    """Cut a side into parts of these sizes and one of the rest."""
    start = 0
    for size in sizes:
        yield encoded[start : start + size]
        start += size
    yield encoded[start:]


def check(tiles, whole, fragments):
    seen = torch.cat([tile.rows for tile in tiles])
    assert sorted(seen.tolist()) == list(range(len(whole)))
    for tile in tiles:
        items = len(tile.rows)
        assert items == 1 or items * tile.count <= fragments
        assert tile.side.fragments.shape[:2] == (items, tile.count)
        assert tile.side.counts.tolist() == [tile.count] * items
        assert tile.side.features is None
        for place, row in enumerate(tile.rows.tolist()):
            assert torch.equal(tile.side.fragments[place], whole.fragments[row, : tile.count])
            assert torch.equal(tile.side.vectors[place], whole.vectors[row])


@settings(max_examples=60)
@given(counts, st.integers(1, 20), st.lists(st.integers(0, 4), max_size=4))
def test_tiles_hold_every_row_once_and_no_padding(counts, fragments, sizes):
    whole = side(counts)  # NaN in the padding, which equals nothing
    check(list(make_tiles(whole, fragments)), whole, fragments)
    for items_first in (True, False):
        parts = parts_of(whole, sizes)
        check(list(make_tiles(parts, fragments, items_first=items_first)), whole, fragments)


def test_parts_may_be_padded_to_different_widths():
    one, other = side([2, 1]), side([5, 2], seed=1)
    tiles = list(make_tiles([one, other], 100))
    found = {tile.count: tile.rows.tolist() for tile in tiles}
    assert found == {1: [1], 2: [0, 3], 5: [2]}
    pair = next(tile.side.fragments for tile in tiles if tile.count == 2)
    assert torch.equal(pair, torch.stack([one.fragments[0, :2], other.fragments[1, :2]]))


def test_few_tiles_are_made():
    """Rows of one count that come apart in the side or in its parts are still one tile."""
    assert len(list(make_tiles(side([1, 2] * 10), 20))) == 2
    assert len(list(make_tiles([side([2])] * 10, 20))) == 1
    assert len(list(make_tiles([side([2])] * 11, 20))) == 2


def test_parts_are_taken_one_by_one():
    taken = []

    def stream():
        for number in range(6):
            taken.append(number)
            yield side([2, 2])

    tiles = make_tiles(stream(), 4)
    next(tiles)
    assert taken == [0]


def test_rows_that_follow_each_other_are_not_copied():
    whole = side([3, 3, 3, 2])
    first = next(tile for tile in make_tiles(whole, 9) if tile.count == 3)
    assert first.side.fragments.data_ptr() == whole.fragments.data_ptr()


def test_vectors_alone_make_tiles_of_one_fragment():
    vectors = torch.randn(5, 3)
    whole = Encoded(vectors, None, torch.tensor([4, 2, 4, 1, 2]))
    tiles = list(make_tiles([whole[:3], whole[3:]], 2))
    assert [tile.count for tile in tiles] == [1] * len(tiles)
    assert sorted(torch.cat([tile.rows for tile in tiles]).tolist()) == [0, 1, 2, 3, 4]
    for tile in tiles:
        assert len(tile.rows) <= 2
        assert torch.equal(tile.side.vectors, vectors[tile.rows])


@pytest.mark.parametrize("bare", [True, False])
def test_no_rows_make_no_tiles(bare):
    none = side([])
    none = Encoded(none.vectors, None, none.counts) if bare else none
    assert list(make_tiles(none, 5)) == []
    assert list(make_tiles([], 5)) == []
    assert list(make_tiles([none, none], 5)) == []
