"""Regions in another order: everything of a region goes with it, padding stays last."""

import numpy as np
import pytest

from crossgaze.data.regions.sort import sort_regions
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import InputError

BOXES = [
    [[0, 0, 2, 2], [0, 0, 4, 4], [0, 0, 3, 3], [0, 0, 0, 0]],  # 4, 16, 9, padding
    [[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 5, 1], [0, 0, 2, 2]],  # 1, 1, 5, 4
]
SURE = [[0.2, 0.1, 0.9, 0.0], [0.5, 0.6, 0.1, 0.7]]
COUNTS = [3, 4]


@pytest.fixture
def store(tmp_path):
    fields = ["counts", "boxes", "sizes", "confidence"]
    with RegionWriter(tmp_path / "store", 4, 2, fields=fields, made_by={"from": "us"}) as writer:
        features = np.arange(16).reshape(2, 4, 2) + 1.0
        features[0, 3] = 0
        sizes = np.array([[9, 8], [7, 6]])
        rest = {"counts": np.array(COUNTS), "boxes": np.array(BOXES), "sizes": sizes}
        writer.append(["a", "b"], features, confidence=np.array(SURE), **rest)
    return tmp_path / "store"


@pytest.mark.parametrize(
    ("by", "orders"),
    [("area", [[1, 2, 0, 3], [2, 3, 0, 1]]), ("confidence", [[2, 0, 1, 3], [3, 1, 0, 2]])],
)
def test_regions_are_sorted_with_all_that_is_theirs(store, tmp_path, by, orders):
    steps = []
    found = sort_regions(store, tmp_path / "out", by, on_progress=lambda *s: steps.append(s))
    before = RegionStore(store)
    assert found.ids == before.ids
    for row, order in enumerate(orders):
        np.testing.assert_array_equal(found.features[row], before.features[row][order])
        np.testing.assert_array_equal(found.boxes[row], before.boxes[row][order])
        np.testing.assert_array_equal(
            found.field("confidence")[row], before.field("confidence")[row][order]
        )
    np.testing.assert_array_equal(found.sizes, before.sizes)
    np.testing.assert_array_equal(found.counts, COUNTS)
    assert found.head.made_by == {"from": "us", "sorted by": by}
    assert steps == [(2, 2)]


def test_a_random_order_is_the_seeds_and_keeps_padding_last(store, tmp_path):
    made = [sort_regions(store, tmp_path / str(s), "random", seed=s) for s in range(12)]
    again = sort_regions(store, tmp_path / "again", "random", seed=3)
    np.testing.assert_array_equal(again.features, made[3].features)
    before = RegionStore(store)
    for one in made:
        assert not one.features[0, 3].any()
        for row in range(2):
            assert sorted(one.features[row, :, 0]) == sorted(before.features[row, :, 0])
    assert len({one.features.tobytes() for one in made}) > 4


def test_a_run_that_was_stopped_goes_on(store, tmp_path, monkeypatch):
    monkeypatch.setattr("crossgaze.data.regions.sort.BATCH", 1)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sort_regions(store, tmp_path / "out", "random", on_progress=stop)
    assert len(RegionStore(tmp_path / "out")) == 1
    found = sort_regions(store, tmp_path / "out", "random")
    whole = sort_regions(store, tmp_path / "whole", "random")
    np.testing.assert_array_equal(found.features, whole.features)


def test_what_cannot_be_sorted_is_said(store, tmp_path):
    with RegionWriter(tmp_path / "bare", 2, 2, fields=[]) as writer:
        writer.append(["a"], np.ones((1, 2, 2)))
    with pytest.raises(InputError, match=r"bare: has no boxes, wanted them to sort by area"):
        sort_regions(tmp_path / "bare", tmp_path / "out", "area")
    with pytest.raises(InputError, match=r"is the store itself"):
        sort_regions(store, store, "area")
    with pytest.raises(InputError, match=r"by: got 'size'"):
        sort_regions(store, tmp_path / "out", "size")
    sort_regions(tmp_path / "bare", tmp_path / "other", "random")
    with pytest.raises(InputError, match=r"other"):
        sort_regions(store, tmp_path / "other", "random")
