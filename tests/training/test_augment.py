"""What augmentation may change, and what it must leave alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.training.augment import (
    add_noise,
    augment,
    drop_features,
    drop_regions,
    drop_words,
)
from crossgaze.training.config import AugmentConfig


@given(st.integers(0, 99), st.floats(0, 0.99))
def test_words_dropped_are_never_start_end_or_padding(seed, share):
    ids = torch.arange(1, 31).reshape(3, 10)
    lengths = torch.tensor([10, 2, 6])
    found = drop_words(ids, lengths, share, 3, torch.Generator().manual_seed(seed))
    for row, count in enumerate(lengths.tolist()):
        for place in range(10):
            inner = 0 < place < count - 1
            allowed = {int(ids[row, place])} | ({3} if inner else set())
            assert int(found[row, place]) in allowed


def test_about_the_share_of_words_is_dropped():
    ids = torch.full((200, 52), 9)
    draws = torch.Generator().manual_seed(0)
    found = drop_words(ids, torch.full((200,), 52), 0.2, 3, draws)
    assert (found == 3).float().sum() / (200 * 50) == pytest.approx(0.2, abs=0.02)


@given(st.integers(0, 99), st.floats(0, 0.99))
def test_regions_left_are_some_of_the_real_ones_in_order(seed, share):
    torch.manual_seed(seed)
    counts = torch.tensor([5, 1, 3])
    regions = torch.arange(15.0).reshape(3, 5, 1)
    found, left = drop_regions(regions, counts, share)
    for row in range(3):
        kept = found[row, : left[row], 0].tolist()
        real = regions[row, : counts[row], 0].tolist()
        assert kept == [value for value in real if value in kept]
        assert len(kept) >= 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.floats(0, 0.99))
def test_the_share_of_each_images_regions_is_dropped(counts, share):
    regions, counts = torch.zeros(len(counts), 9, 1), torch.tensor(counts)
    found, left = drop_regions(regions, counts, share)
    assert left.tolist() == [max(round(one * (1 - share)), 1) for one in counts.tolist()]
    assert found.shape[1] == max(round(9 * (1 - share)), 1)


def test_every_region_is_as_likely_to_stay():
    torch.manual_seed(0)
    regions = torch.arange(10.0).repeat(4000, 1)[..., None]
    found, _ = drop_regions(regions, torch.full((4000,), 10), 0.3)
    assert found.flatten().long().bincount().tolist() == pytest.approx([2800] * 10, abs=120)


def test_noise_is_as_strong_as_each_numbers_deviation():
    torch.manual_seed(0)
    scale = torch.tensor([1.0, 10.0, 0.0])
    regions = torch.randn(200, 5, 3) * scale
    regions[:, 4] = 1e6  # padding must not shape the deviation
    changed = add_noise(regions, torch.full((200,), 4), 0.5) - regions
    assert changed[:, :4].std((0, 1)).tolist() == pytest.approx([0.5, 5.0, 0.0], rel=0.1)


def test_nothing_asked_changes_nothing_but_the_precision():
    regions = torch.rand(2, 3, 4).half()
    found, counts = augment(AugmentConfig(), regions, torch.tensor([3, 2]))
    assert torch.equal(found, regions.float())
    assert counts.tolist() == [3, 2]
    kept, _ = augment(AugmentConfig(features=0.5), regions, torch.tensor([3, 2]))
    assert set(torch.unique(kept / regions.float()).tolist()) <= {0.0, 2.0}


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_about_the_share_of_numbers_is_dropped_and_their_mean_stays(share):
    torch.manual_seed(0)
    found = drop_features(torch.ones(200, 3, 501), share)
    assert (found == 0).float().mean() == pytest.approx(share, abs=0.01)
    assert found.mean() == pytest.approx(1, rel=0.05)


def test_numbers_are_dropped_in_all_regions_of_an_image_and_in_each_image_by_itself():
    torch.manual_seed(0)
    dropped = drop_features(torch.ones(40, 5, 100), 0.5) == 0
    assert (dropped == dropped[:, :1]).all()
    assert torch.corrcoef(dropped[:, 0].double()).triu(1).abs().max() < 0.6
