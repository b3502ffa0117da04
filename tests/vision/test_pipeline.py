"""The threads of an extraction."""

import threading
import time

import numpy as np
import pytest
import torch

from crossgaze.errors import InputError
from crossgaze.threads import cores
from crossgaze.vision.backbones.base import Backbone
from crossgaze.vision.photos import Photo, PhotoError
from crossgaze.vision.pipeline import PixelBudget, extract_groups
from crossgaze.vision.sources.grid import GridSource
from crossgaze.vision.sources.making import default_batch


class Mean(Backbone):
    """Gives each pixel back, and notes how it was called."""

    def __init__(self, wait=0.0, channels=3):
        super().__init__("mean", width=3, stride=1, mean=(0.0,) * 3, scale=(1.0,) * 3)
        self.wait, self.channels, self.threads, self.calls = wait, channels, set(), 0

    def features(self, x):
        self.calls += 1
        self.threads.add((threading.current_thread().name, torch.get_num_threads()))
        time.sleep(self.wait)
        return x[:, : self.channels]


def photo(value, height=2, width=2):
    return Photo(np.full((height, width, 3), value, np.uint8), width, height)


def groups(tmp_path, count, read, model=None, **options):
    names = [f"{number:03}" for number in range(count)]
    for name in names:
        (tmp_path / name).touch()
    source = GridSource(model or Mean(), 1, 2, options.pop("batch", 4))
    return extract_groups(tmp_path, names, read, source, **{"workers": 2} | options)


def read_number(path, budget):
    if path.name.endswith("7"):
        raise PhotoError(str(path), "is a seven")
    return photo(int(path.name))


def test_groups_come_in_order_whoever_is_first(tmp_path):
    def slow_start(path, budget):
        time.sleep(0.05 if path.name == "000" else 0)
        return read_number(path, budget)

    found = list(groups(tmp_path, 100, slow_start))
    names = [name for group in found for name in group.names]
    assert names == [f"{n:03}" for n in range(100) if n % 10 != 7]
    values = [int(v) for group in found for one in group.found for v in one.features[:, 0]]
    assert values == [int(name) for name in names]
    assert [name for group in found for name, _ in group.unreadable][:2] == ["007", "017"]


def test_each_thread_computes_alone_and_torch_gets_its_threads_back(tmp_path):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        model = Mean(wait=0.001)
        list(groups(tmp_path, 200, read_number, model, workers=3))
        assert {count for _, count in model.threads} == {1}
        assert 1 < len(model.threads) <= 3
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_no_more_is_read_than_the_threads_can_use(tmp_path):
    seen = []

    def read(path, budget):
        seen.append(path.name)
        return photo(1)

    stream = groups(tmp_path, 1000, read)
    next(stream)
    time.sleep(0.2)
    assert len(seen) <= 5 * 32
    stream.close()


def test_giving_up_stops_the_threads_between_photographs(tmp_path):
    def read(path, budget):
        time.sleep(0.02)
        return photo(1)

    stream = groups(tmp_path, 320, read)
    next(stream)
    started = time.monotonic()
    stream.close()
    assert time.monotonic() - started < 0.5  # a whole group would take 0.64 s and more


def test_giving_up_stops_the_network_between_batches():
    class GivenUpError(Exception):
        pass

    def give_up():
        if model.calls == 2:
            raise GivenUpError

    model = Mean()
    with pytest.raises(GivenUpError):
        GridSource(model, 1, 2, 1)([photo(1)] * 8, ["a"] * 8, give_up)
    assert model.calls == 2


def test_a_folder_that_goes_away_is_an_error_and_not_unreadable_photographs(tmp_path):
    folder = tmp_path / "share"
    folder.mkdir()

    def read(path, budget):
        if path.name == "005":
            folder.rename(tmp_path / "gone")
            raise PhotoError(str(path), "no such file")
        return photo(1)

    with pytest.raises(InputError, match="share: is gone"):
        list(groups(folder, 40, read))


def test_a_network_that_gives_other_channels_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"gave features of shape \(4, 1, 2, 2\), wanted \(4, 3"):
        list(groups(tmp_path, 8, lambda path, budget: photo(1), Mean(channels=1)))


def test_batches_hold_photographs_of_one_shape(tmp_path):
    def read(path, budget):
        return photo(1, height=1 + int(path.name) % 2)

    model = Mean()
    list(groups(tmp_path, 32, read, model, batch=8))
    assert model.calls == 4


def test_a_budget_is_shared_and_never_overdrawn():
    budget, now, most = PixelBudget(10), [], []

    def decode(pixels):
        with budget(pixels):
            now.append(pixels)
            most.append(sum(now))
            time.sleep(0.005)
            now.remove(pixels)

    threads = [threading.Thread(target=decode, args=(4,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 4 < max(most) <= 10
    with budget(1000):  # alone, anything goes
        pass


def test_batches_and_cores_by_the_machine(monkeypatch):
    assert default_batch(torch.device("cpu")) == 2
    assert default_batch(torch.device("meta")) == 32
    assert cores() >= 1
    monkeypatch.delattr("os.sched_getaffinity")
    assert cores() >= 1
