"""The last batches of a store can be taken back, and a kill meanwhile does no harm."""

import os

import numpy as np
import pytest

from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.verify import verify
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import InputError

BOXES = np.zeros((2, 3, 4), np.float32)
SIZES = np.ones((2, 2), np.int32)


def fill(folder, batches=3):
    with RegionWriter(folder, 3, 2) as writer:
        for number in range(batches):
            names = [f"{number}a", f"{number}é"]
            features = np.full((2, 3, 2), number, np.float32)
            writer.append(names, features, boxes=BOXES, sizes=SIZES)


def test_batches_go_whole_and_others_come_in_their_place(tmp_path):
    fill(tmp_path / "store")
    with RegionWriter(tmp_path / "store", 3, 2) as writer:
        for rows in (1, 7, -1):
            with pytest.raises(InputError, match=f"rows: got {rows}, wanted the end of a batch"):
                writer.cut(rows)
        writer.cut(6)
        assert len(writer) == 6
        writer.cut(2)
        assert writer.ids == {"0a", "0é"}
        writer.append(["1a", "z"], np.full((2, 3, 2), 9.0), boxes=BOXES, sizes=SIZES)
    store = RegionStore(tmp_path / "store")
    assert store.ids == ("0a", "0é", "1a", "z")
    assert store.features[:, 0, 0].tolist() == [0, 0, 9, 9]
    assert verify(tmp_path / "store").sound
    with RegionWriter(tmp_path / "store", 3, 2) as writer:
        writer.cut(0)
    assert len(RegionStore(tmp_path / "store")) == 0
    with pytest.raises(InputError, match="was closed"):
        writer.cut(0)


@pytest.mark.parametrize("step", range(10))
def test_ended_at_any_step_the_store_is_the_old_or_the_new(tmp_path, monkeypatch, step):
    fill(tmp_path / "store")
    left = [step]

    class Gone(BaseException):
        pass

    def until(call):
        def counted(*args):
            if left[0] == 0:
                raise Gone
            left[0] -= 1
            return call(*args)

        return counted

    with RegionWriter(tmp_path / "store", 3, 2) as writer:
        for name in ("truncate", "pwrite", "fsync"):
            monkeypatch.setattr(os, name, until(getattr(os, name)))
        ended = False
        try:
            writer.cut(2)
        except Gone:
            ended = True
        monkeypatch.undo()
    assert ended == (step < 9)
    with RegionWriter(tmp_path / "store", 3, 2) as writer:
        assert len(writer) in (2, 6)
        writer.cut(2)
    assert RegionStore(tmp_path / "store").ids == ("0a", "0é")
    assert verify(tmp_path / "store").sound
