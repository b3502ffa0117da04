"""Joining shards."""

import json
import resource
from pathlib import Path

import numpy as np
import pytest

from crossgaze.data.regions.merge import merge_stores
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import FileFormatError, InputError


def make(folder, names, report=None, **options):
    options = {"fields": ["counts", "sizes"], "made_by": {"grid": 2}} | options
    with RegionWriter(folder, 4, 2, **options) as writer:
        for name in names:  # a feature that says whose it is
            array = np.full((1, 4, 2), float(name))
            writer.append(
                [name],
                array,
                **({"sizes": [[1, int(name)]]} if "sizes" in options["fields"] else {}),
            )
    if report is not None:
        (folder / "report.json").write_text(json.dumps(report))
    return folder


def shard(text, finished=True):
    return {"shard": text, "finished": finished}


def test_shards_come_out_as_one_store_sorted_by_id(tmp_path):
    parts = [make(tmp_path / "1", ["30", "10"]), make(tmp_path / "2", ["20"])]
    steps = []
    merged = merge_stores(parts, tmp_path / "all", on_progress=lambda *s: steps.append(s))
    assert merged.ids == ("10", "20", "30")
    assert merged.features[:, 0, 0].tolist() == [10, 20, 30]
    assert merged.sizes.tolist() == [[1, 10], [1, 20], [1, 30]]
    assert merged.head.made_by == {"grid": 2}
    assert steps == [(3, 3)]


def test_a_merge_that_was_stopped_goes_on(tmp_path):
    parts = [make(tmp_path / "1", ["1", "3"]), make(tmp_path / "2", ["2"])]
    make(tmp_path / "all", ["1"])
    assert merge_stores(parts, tmp_path / "all").ids == ("1", "2", "3")
    assert merge_stores(parts, tmp_path / "all").ids == ("1", "2", "3")


def test_what_cannot_be_joined_is_named(tmp_path):
    one = make(tmp_path / "1", ["1"])
    with pytest.raises(InputError, match=r"'1' is in .*1 and in .*2"):
        merge_stores([one, make(tmp_path / "2", ["1"])], tmp_path / "all")
    with pytest.raises(InputError, match="made_by is"):
        merge_stores([one, make(tmp_path / "3", ["3"], made_by={})], tmp_path / "all")
    with pytest.raises(InputError, match="fields are"):
        merge_stores([one, make(tmp_path / "4", ["4"], fields=["counts"])], tmp_path / "all")
    with pytest.raises(InputError, match="got no store"):
        merge_stores([], tmp_path / "all")
    with pytest.raises(InputError, match="was made of other stores"):
        merge_stores([one], make(tmp_path / "5", ["9"]))


def test_missing_and_unfinished_shards_are_refused(tmp_path):
    one = make(tmp_path / "1", ["1"], shard("1/3"))
    three = make(tmp_path / "3", ["3"], shard("3/3"))
    two = make(tmp_path / "2", ["2"], shard("2/3", finished=False))
    other = make(tmp_path / "4", ["4"], shard("2/2"))
    with pytest.raises(InputError, match="shard 2/3 is not among the 2 stores"):
        merge_stores([one, three], tmp_path / "all")
    with pytest.raises(InputError, match=r"2 \(shard 2/3\) was not finished"):
        merge_stores([one, two, three], tmp_path / "all")
    for parts in ([one, other], [other, one]):
        with pytest.raises(InputError, match="are shards of 2 and of 3, wanted those of one"):
            merge_stores(parts, tmp_path / "all")
    assert not (tmp_path / "all").exists()
    assert len(merge_stores([one, three], tmp_path / "all", partial=True)) == 2
    with pytest.raises(InputError, match="was made of other stores, wanted a new folder"):
        merge_stores([one, two, three], tmp_path / "all", partial=True)
    bad = make(tmp_path / "5", ["5"], {"shard": "1/1"})
    with pytest.raises(FileFormatError, match="does not read as a report"):
        merge_stores([bad], tmp_path / "other")
    assert RegionStore(tmp_path / "all").ids == ("1", "3")


def test_the_reports_of_the_shards_are_joined(tmp_path):
    reports = [
        {"shard": f"{n}/2", "finished": True, "photos": 3, "unreadable": [[f"{n}.jpg", "bad"]]}
        for n in (1, 2)
    ]
    parts = [make(tmp_path / f"{n}", [f"{n}"], reports[n - 1]) for n in (1, 2)]
    merge_stores(parts, tmp_path / "all")
    joined = json.loads((tmp_path / "all" / "report.json").read_text())
    assert joined["photos"] == 6
    assert joined["unreadable"] == [["1.jpg", "bad"], ["2.jpg", "bad"]]
    assert joined["finished"]
    assert joined["shard"] == ""


def test_a_damaged_part_and_a_part_as_the_whole_are_refused(tmp_path):
    one, two = make(tmp_path / "1", ["1"]), make(tmp_path / "2", ["2"])
    with pytest.raises(InputError, match="is to be the whole, and is among the parts"):
        merge_stores([one, two], two)
    data = bytearray((two / "features.bin").read_bytes())
    data[3] ^= 4
    (two / "features.bin").write_bytes(data)
    with pytest.raises(InputError, match=r"2 is damaged: .*features.bin"):
        merge_stores([one, two], tmp_path / "all")


def test_more_shards_than_files_may_be_open(tmp_path):
    parts = [make(tmp_path / f"{n}", [f"{n}"]) for n in range(60)]
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 40, limits[1]))
    try:
        merged = merge_stores(parts, tmp_path / "all")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len(merged) == 60
