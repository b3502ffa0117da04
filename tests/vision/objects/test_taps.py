"""The cache of feature maps."""

import numpy as np
import pytest
import torch

from crossgaze.errors import FileFormatError
from crossgaze.vision.backbones.efficientnet_lite import EfficientNetLite
from crossgaze.vision.objects.taps import TapCache, Taps, cache_taps


@pytest.fixture(scope="module")
def taps():
    torch.manual_seed(0)
    return Taps(EfficientNetLite("efficientnet-lite2").eval())


def some_views(count):
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (64, 64, 3), dtype=np.uint8) for _ in range(count)]


def test_what_is_cached_is_what_the_network_gives(taps, tmp_path):
    views, steps = some_views(5), []
    progress = lambda done, total: steps.append((done, total))  # noqa: E731
    cache = cache_taps(taps, views, 5, tmp_path, on_progress=progress)
    assert len(cache) == 5
    assert steps == [(2, 5), (4, 5), (5, 5)]
    found = cache.batch([4, 1], torch.device("cpu"))
    with torch.inference_mode():
        expected = taps(torch.from_numpy(np.stack([views[4], views[1]])))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-2, rtol=2e-3)


def test_a_finished_cache_is_kept_and_another_length_is_not(taps, tmp_path):
    cache_taps(taps, some_views(2), 2, tmp_path)

    def never():
        raise AssertionError("read again")
        yield

    assert len(cache_taps(taps, never(), 2, tmp_path)) == 2
    assert len(cache_taps(taps, some_views(3), 3, tmp_path)) == 3


def test_a_cache_of_other_views_is_made_anew(taps, tmp_path):
    views = some_views(4)
    cache_taps(taps, views[:2], 2, tmp_path, stamp="a")
    there = cache_taps(taps, iter(()), 2, tmp_path, stamp="a").levels[0].copy()
    again = cache_taps(taps, views[2:], 2, tmp_path, stamp="b").levels[0]
    assert (there != again).any()


def test_half_a_cache_is_none(taps, tmp_path):
    def broken():
        yield from some_views(2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache_taps(taps, broken(), 4, tmp_path)
    with pytest.raises(FileFormatError, match="no finished cache"):
        TapCache.open(tmp_path)
