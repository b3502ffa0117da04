"""Batches against the plainest way to read the same rows."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import InputError
from crossgaze.training.batches import CaptionSet, ImageRegions, Sentences
from training_parts import write_world


@given(st.lists(st.lists(st.integers(1, 50), min_size=1, max_size=6), min_size=1, max_size=9))
def test_sentences_come_back_padded(rows):
    sentences = Sentences(rows)
    order = np.arange(len(rows))[::-1].copy()
    width = max(map(len, rows)) + 1
    found = sentences.padded(order, width)
    assert found.tolist() == [rows[i] + [0] * (width - len(rows[i])) for i in order]
    assert sentences.lengths.tolist() == [len(row) for row in rows]


@pytest.fixture
def stores(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    return [
        RegionStore(write_world(tmp_path / "a", images=6, dev=0, seed=1)[1]),
        RegionStore(write_world(tmp_path / "b", images=5, dev=0, seed=2, dtype="float32")[1]),
    ]


@pytest.mark.parametrize("in_memory", [False, True])
def test_regions_of_two_stores_are_numbered_through(stores, in_memory):
    names = [["003.jpg", "001.jpg"], ["004.jpg", "000.jpg", "002.jpg"]]
    regions = ImageRegions(stores, names, in_memory=in_memory)
    assert len(regions) == 5
    asked = np.array([4, 0, 2, 0, 3])
    features, counts = regions.gather(asked)
    plain = [(stores[0], "003.jpg"), (stores[0], "001.jpg")]
    plain += [(stores[1], name) for name in names[1]]
    for row, number in enumerate(asked):
        store, name = plain[number]
        wanted = store.read([name])
        assert torch.equal(features[row].double(), torch.from_numpy(wanted.features[0]).double())
        assert counts[row] == wanted.counts[0]


@pytest.mark.parametrize("in_memory", [False, True])
def test_one_store_keeps_half_precision_and_order(stores, in_memory):
    regions = ImageRegions(stores[:1], [["005.jpg", "000.jpg"]], in_memory=in_memory)
    features, _ = regions.gather(np.array([1, 0, 1]))
    assert features.dtype == torch.float16
    wanted = stores[0].read(["000.jpg", "005.jpg", "000.jpg"]).features
    assert np.array_equal(features.numpy(), wanted)


def test_stores_of_two_widths_are_refused(stores, tmp_path):
    from crossgaze.data.regions.writer import RegionWriter

    with RegionWriter(tmp_path / "c", 4, 7, fields=[]) as writer:
        writer.append(["x"], np.ones((1, 4, 7)))
    with pytest.raises(InputError, match="wanted region stores of one width"):
        ImageRegions([stores[0], RegionStore(tmp_path / "c")], [["000.jpg"], ["x"]])


@pytest.fixture
def captions(stores):
    regions = ImageRegions(stores[:1], [[f"{n:03}.jpg" for n in range(6)]])
    rows = [[1, *range(5, 5 + n % 4), 2] for n in range(23)]
    return CaptionSet(Sentences(rows), np.arange(23) % 6, regions, ("",) * 23, None)


def test_an_epoch_is_every_caption_once_in_batches_of_like_size(captions):
    order = captions.order(3, 0, 5)
    assert sorted(np.concatenate(order)) == list(range(23))
    assert {len(batch) for batch in order} == {4, 5}
    again, later, other = (captions.order(s, e, 5) for s, e in ((3, 0), (3, 1), (4, 0)))
    assert np.array_equal(np.concatenate(order), np.concatenate(again))
    assert not np.array_equal(np.concatenate(order), np.concatenate(later))
    assert not np.array_equal(np.concatenate(order), np.concatenate(other))


def test_ranks_have_the_parts_of_one_batch(captions):
    rows = np.array([7, 3, 22, 0, 11])
    whole = captions.read(rows)
    parts = [captions.read(rows, rank, 2) for rank in range(2)]
    for name in ("captions", "regions", "counts", "ids", "lengths"):
        together = torch.cat([getattr(part, name) for part in parts])
        assert torch.equal(together, getattr(whole, name)), name
    for part in parts:
        assert part.sizes == (3, 2)
        assert torch.equal(part.owners, torch.from_numpy(rows % 6))
        assert torch.equal(part.all_lengths, whole.lengths)


def test_batches_begin_where_a_run_stopped(captions):
    order = captions.order(0, 0, 5)
    late = list(captions.batches(order, first=3))
    assert [batch.captions.tolist() for batch in late] == [part.tolist() for part in order[3:]]
