"""Reading and writing region stores."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from crossgaze.data.regions.store import RegionStore, read_log
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import FileFormatError, InputError
from reliability_parts import record

RNG = np.random.default_rng(0)


def features(images, regions=3, width=4):
    return RNG.normal(size=(images, regions, width)).astype(np.float32)


def write(folder, names, array, **options):
    fields = options.pop("fields", ["counts"])
    with RegionWriter(folder, 3, 4, dtype="float32", fields=fields, **options) as writer:
        writer.append(names, array)


def test_what_is_written_is_read_back(tmp_path):
    first, second = features(2), features(3)
    boxes = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    with RegionWriter(tmp_path / "s", 3, 4, dtype="float32", fields=["boxes", "sizes"]) as writer:
        writer.append(["a", "b"], first, boxes=boxes, sizes=[[10, 20], [30, 40]])
        writer.append(list("cde"), second, boxes=np.zeros((3, 3, 4)), sizes=np.ones((3, 2)))
        assert len(writer) == 5
        assert "d" in writer
    store = RegionStore(tmp_path / "s")
    assert store.ids == ("a", "b", "c", "d", "e")
    assert isinstance(store.features, np.memmap)
    np.testing.assert_array_equal(store.features, np.concatenate([first, second]))
    np.testing.assert_array_equal(store.boxes[:2], boxes)
    assert store.counts.tolist() == [3] * 5
    read = store.read(["c", "a"])
    assert read.ids == ("c", "a")
    np.testing.assert_array_equal(read.features, np.stack([second[0], first[0]]))
    np.testing.assert_array_equal(read.sizes, [[1, 1], [10, 20]])
    np.testing.assert_array_equal(store.read(np.array([1])).features[0], first[1])


@settings(max_examples=30, deadline=None)
@given(
    data=st.data(),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    dtype=st.sampled_from(["float16", "float32"]),
)
def test_any_batches_with_any_counts_come_back_padded_with_zeros(
    tmp_path_factory, data, sizes, dtype
):
    folder = tmp_path_factory.mktemp("s") / "store"
    expected, counts, start = [], [], 0
    with RegionWriter(folder, 4, 2, dtype=dtype, fields=["counts", "confidence"]) as writer:
        for size in sizes:
            regions = data.draw(st.integers(1, 4))
            array = data.draw(
                hnp.arrays(np.float32, (size, regions, 2), elements=st.floats(-9, 9, width=16))
            )
            count = data.draw(hnp.arrays(np.int32, (size,), elements=st.integers(1, regions)))
            names = [f"{start + i}" for i in range(size)]
            writer.append(names, array, counts=count, confidence=array[..., 0])
            start += size
            for row in range(size):  # the oracle: a zero matrix, filled region by region
                plain = np.zeros((4, 2))
                for region in range(count[row]):
                    plain[region] = array[row, region]
                expected.append(plain)
                counts.append(int(count[row]))
    store = RegionStore(folder)
    np.testing.assert_array_equal(store.features.astype(np.float64), np.array(expected))
    np.testing.assert_array_equal(store.field("confidence"), np.array(expected)[..., 0])
    assert store.counts.tolist() == counts


def test_a_store_goes_on_where_it_was(tmp_path):
    write(tmp_path / "s", ["a"], features(1))
    write(tmp_path / "s", ["b"], features(1))
    assert RegionStore(tmp_path / "s").ids == ("a", "b")


def test_an_unfinished_batch_is_cut_off_by_the_next_writer(tmp_path):
    folder = tmp_path / "s"
    kept, late = features(2), features(1)
    write(folder, ["a", "b"], kept)
    (folder / "state").write_text(f"{2:020} {1:020}\n")  # one more was on its way
    with (folder / "features.bin").open("ab") as file:
        file.write(b"half a row")
    with (folder / "log.jsonl").open("ab") as file:
        file.write(b'0badc0de {"ids": ["c' + b"c" * 200)
    assert RegionStore(folder).ids == ("a", "b")
    write(folder, ["c"], late)
    store = RegionStore(folder)
    assert store.ids == ("a", "b", "c")
    np.testing.assert_array_equal(store.features, np.concatenate([kept, late]))
    assert (folder / "features.bin").stat().st_size == 3 * 3 * 4 * 4
    assert (folder / "log.jsonl").read_bytes().count(b"c") < 20


def test_a_store_that_lost_its_head_is_not_emptied(tmp_path):
    folder = tmp_path / "s"
    write(folder, ["a"], features(1))
    (folder / "head.json").unlink()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match=r"holds 'counts.bin' but no head.json"):
        write(folder, ["b"], features(1))
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_writer_that_died_before_the_head_is_begun_again(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    for name in ("features.bin", "log.jsonl", ".head.json.77.partial"):
        (folder / name).touch()
    write(folder, ["a"], features(1))
    assert RegionStore(folder).ids == ("a",)


def test_a_closed_writer_writes_nothing(tmp_path):
    writer = RegionWriter(tmp_path / "s", 3, 4, fields=[])
    writer.close()
    writer.close()
    with pytest.raises(InputError, match="this writer was closed"):
        writer.append(["a"], features(1))


def test_everything_is_synced_and_the_log_last(tmp_path, monkeypatch):
    """What `append` returned from must survive a power cut: data first, then the log line."""
    synced = []
    with RegionWriter(tmp_path / "s", 3, 4, fields=["counts"]) as writer:
        real = os.fsync
        target = "/proc/self/fd/{}"

        def fsync(handle):
            synced.append(os.path.basename(os.readlink(target.format(handle))))  # noqa: PTH119, PTH115
            real(handle)

        monkeypatch.setattr(os, "fsync", fsync)
        writer.append(["a"], features(1))
    assert synced == ["state", "features.bin", "counts.bin", "log.jsonl"]


def test_a_damaged_line_in_the_middle_of_the_log_is_an_error(tmp_path):
    folder = tmp_path / "s"
    for name in "abc":
        write(folder, [name], features(1))
    log = folder / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(lines[0] + lines[1].replace(b"b", b"x", 1) + lines[2])
    with pytest.raises(FileFormatError, match=r"log.jsonl, line 2: is damaged"):
        RegionStore(folder)


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_last_line_that_is_not_whole_is_not_counted(tmp_path, cut):
    folder = tmp_path / "s"
    for name in "abc":
        write(folder, [name], features(1))
    log = (folder / "log.jsonl").read_bytes()
    (folder / "log.jsonl").write_bytes(log[:-cut])
    assert RegionStore(folder).ids == ("a", "b")


def test_a_truncated_array_is_named(tmp_path):
    folder = tmp_path / "s"
    write(folder, ["a", "b"], features(2))
    os.truncate(folder / "features.bin", 50)
    with pytest.raises(FileFormatError, match=r"features.bin: is truncated: 50 bytes, wanted 96"):
        RegionStore(folder)
    with pytest.raises(FileFormatError, match="truncated"):
        write(folder, ["c"], features(1))


def test_a_missing_array_and_a_missing_log_are_named(tmp_path):
    folder = tmp_path / "s"
    write(folder, ["a"], features(1))
    (folder / "features.bin").rename(folder / "gone")
    with pytest.raises(FileFormatError, match=r"features.bin: is missing"):
        RegionStore(folder)
    (folder / "log.jsonl").unlink()
    with pytest.raises(FileFormatError, match=r"log.jsonl: is missing"):
        read_log(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"regions": 5}, "made with field features"),
        ({"made_by": {"grid": 7}}, r"made with grid = 6, now it is 7"),
        ({"fields": ["counts", "boxes"]}, r"made with field boxes = None"),
        ({"labels": {"classes": ["cat"]}}, r"made with labels"),
        ({"dtype": "float16"}, r"made with field features = \('<f4'"),
    ],
)
def test_a_store_made_another_way_is_not_continued(tmp_path, change, message):
    options = {"regions": 3, "width": 4, "dtype": "float32", "fields": ["counts"]}
    options |= {"made_by": {"grid": 6}}
    RegionWriter(tmp_path / "s", **options).close()
    RegionWriter(tmp_path / "s", **options).close()  # the same way is fine
    with pytest.raises(InputError, match=message):
        RegionWriter(tmp_path / "s", **(options | change))


@pytest.mark.parametrize(
    ("names", "array", "columns", "message"),
    [
        (["a"], np.zeros((1, 3, 5)), {}, r"features: got shape \(1, 3, 5\), wanted \(1, n, 4\)"),
        (["a"], np.zeros((1, 4, 4)), {}, r"features: got 4 regions, wanted 1 to 3"),
        (["a"], np.zeros((1, 0, 4)), {}, r"features: got 0 regions"),
        (["a", "a"], np.zeros((2, 3, 4)), {}, r"'a' occurs twice in one batch"),
        (["old"], np.zeros((1, 3, 4)), {}, r"'old' is already in the store"),
        (["a"], np.zeros((1, 3, 4)), {"counts": [4]}, r"counts: got \[4\]"),
        (["a"], np.zeros((1, 3, 4)), {"counts": [0]}, r"counts: got \[0\]"),
        (["a"], np.zeros((1, 3, 4)), {"counts": [2.5]}, r"counts: got \[2.5\]"),
        ("ab", np.zeros((2, 3, 4)), {}, r"ids: got 'ab', wanted a list of texts"),
        ([None], np.zeros((1, 3, 4)), {}, r"ids: got '\[None\]', wanted a list of texts"),
        (["a"], np.full((1, 3, 4), np.nan), {}, r"features of image 'a': not finite"),
        (["b"], np.full((1, 3, 4), 1e6), {}, r"'b': not finite as float16 .*1e\+06"),
        (["a"], np.zeros((1, 3, 4)), {"sizes": [[1, 1]]}, r"does not keep the field 'sizes'"),
        (["a"], np.zeros((1, 3, 4)), {"boxes": np.zeros((1, 3, 3))}, r"boxes: got shape"),
    ],
)
def test_a_bad_batch_is_refused_and_changes_nothing(tmp_path, names, array, columns, message):
    folder = tmp_path / "s"
    boxes = {"boxes": np.zeros((1, 3, 4))}
    with RegionWriter(folder, 3, 4, fields=["counts", "boxes"]) as writer:
        writer.append(["old"], np.ones((1, 3, 4)), **boxes)
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        columns = {"boxes": np.zeros((len(names), 3, 4))} | columns
        with pytest.raises(InputError, match=message):
            writer.append(names, array, **columns)
        assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
        writer.append(["new"], np.ones((1, 3, 4)), **boxes)
    assert RegionStore(folder).ids == ("old", "new")


def test_numbers_that_do_not_fit_are_named(tmp_path):
    with (
        RegionWriter(tmp_path / "s", 3, 4, fields=["sizes"]) as writer,
        pytest.raises(InputError, match=r"sizes of image 'a': \[5000000000, 1\] does not fit"),
    ):
        writer.append(["a"], features(1), sizes=[[5_000_000_000, 1]])


def test_a_field_that_was_left_out_is_named(tmp_path):
    with (
        RegionWriter(tmp_path / "s", 3, 4, fields=["boxes"]) as writer,
        pytest.raises(InputError, match=r"lacks the field 'boxes'"),
    ):
        writer.append(["a"], features(1))


def test_a_store_without_counts_wants_every_region(tmp_path):
    with RegionWriter(tmp_path / "s", 3, 4, fields=[]) as writer:
        writer.append(["a"], features(1))
        with pytest.raises(InputError, match="every image needs all regions"):
            writer.append(["b"], features(1, regions=2))
    assert RegionStore(tmp_path / "s").counts.tolist() == [3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float64"}, "dtype: got 'float64', wanted float16 or float32"),
        ({"regions": 0}, "both must be at least 1"),
        ({"fields": ["box"]}, r"unknown field 'box' \(did you mean 'boxes'\?\)"),
    ],
)
def test_a_store_that_cannot_be_is_refused(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        RegionWriter(tmp_path / "s", **({"regions": 3, "width": 4} | options))
    assert not (tmp_path / "s").exists()


def test_a_second_writer_is_refused_and_readers_are_not(tmp_path):
    with RegionWriter(tmp_path / "s", 3, 4, fields=[]) as writer:
        writer.append(["a"], features(1))
        with pytest.raises(InputError, match=rf"another process \(pid {os.getpid()}\)"):
            RegionWriter(tmp_path / "s", 3, 4, fields=[])
        assert len(RegionStore(tmp_path / "s")) == 1
    RegionWriter(tmp_path / "s", 3, 4, fields=[]).close()


def test_the_other_fields_come_with_a_batch(tmp_path):
    with RegionWriter(tmp_path / "s", 3, 4, fields=["confidence", "classes"]) as writer:
        writer.append(["a"], features(1), confidence=[[0.5, 0.25, 0.125]], classes=[[1, 2, 3]])
    other = RegionStore(tmp_path / "s").read(["a"]).other
    assert other["confidence"].tolist() == [[0.5, 0.25, 0.125]]
    assert other["classes"].tolist() == [[1, 2, 3]]


def test_asking_for_what_is_not_there_is_named(tmp_path):
    write(tmp_path / "s", ["a"], features(1))
    store = RegionStore(tmp_path / "s")
    assert "a" in store
    assert "b" not in store
    assert "1 images, 3 regions of 4 float32" in repr(store)
    with pytest.raises(InputError, match=r"1 of the 2 asked images .* first is 'b'"):
        store.read(["a", "b"])
    with pytest.raises(InputError, match=r"rows go from 0 to 1, the store has 1"):
        store.read(np.array([0, 1]))
    assert store.boxes is None
    assert store.read(["a"]).boxes is None


def test_an_empty_store_is_a_store(tmp_path):
    RegionWriter(tmp_path / "s", 3, 4).close()
    store = RegionStore(tmp_path / "s")
    assert store.features.shape == (0, 3, 4)
    assert store.read([]).features.shape == (0, 3, 4)


def test_a_full_disk_leaves_the_store_as_it_was(tmp_path, monkeypatch):
    """Each place where a write can fail; then the same writer goes on once there is room."""
    real = os.pwrite
    for fail_at in range(3):
        folder = tmp_path / f"s{fail_at}"
        with RegionWriter(folder, 3, 4, fields=["counts"]) as writer:
            writer.append(["a"], features(1))
            calls = iter(range(100))

            def pwrite(handle, data, offset, calls=calls, fail_at=fail_at):
                if next(calls) == fail_at + 1:  # the first is the state
                    real(handle, bytes(data)[: len(data) // 2], offset)
                    raise OSError(28, "No space left on device")
                return real(handle, data, offset)

            monkeypatch.setattr(os, "pwrite", pwrite)
            with pytest.raises(OSError, match="No space left") as caught:
                writer.append(["a long name that fills the log " * 9], features(1))
            names = ("features.bin", "counts.bin", "log.jsonl")
            assert caught.value.filename == str(folder / names[fail_at])
            monkeypatch.setattr(os, "pwrite", real)
            assert RegionStore(folder).ids == ("a",)
            writer.append(["c"], features(1))
        assert RegionStore(folder).ids == ("a", "c")


@pytest.mark.parametrize("name", ["state", "features.bin", "counts.bin", "log.jsonl"])
def test_a_disk_that_does_not_take_what_was_written_is_named(tmp_path, monkeypatch, name):
    folder, real = tmp_path / "s", os.fsync
    with RegionWriter(folder, 3, 4, fields=["counts"]) as writer:

        def fsync(handle):
            if Path(f"/proc/self/fd/{handle}").readlink().name == name:
                raise OSError(5, "Input/output error")
            real(handle)

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(OSError, match="Input/output error") as caught:
            writer.append(["a"], features(1))
        assert caught.value.filename == str(folder / name)
        monkeypatch.undo()
        writer.append(["a"], features(1))
    assert RegionStore(folder).ids == ("a",)


WRITER = """
    import sys
    import numpy as np
    from crossgaze.data.regions.writer import RegionWriter
    with RegionWriter(sys.argv[1], 36, 64, fields=["counts", "boxes"]) as writer:
        while True:
            n = len(writer)
            names = [str(n + i) for i in range(8)]
            array = np.full((8, 36, 64), n % 100)
            writer.append(names, array, boxes=np.zeros((8, 36, 4)))
            print(n + 8, flush=True)
"""


def kill_while_writing(folder, seconds):
    """Start a writer, kill it with SIGKILL, and return the last count that it acknowledged."""
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        first = child.stdout.readline()
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        lines = [first, *child.stdout.read().splitlines(keepends=True)]
    assert child.returncode == -signal.SIGKILL  # and not by an error of its own
    return int([line for line in lines if line.endswith("\n")][-1])


def check_after_kill(folder, acknowledged):
    store = RegionStore(folder)
    assert len(store) >= acknowledged
    assert len(store) % 8 == 0
    for start in range(0, len(store), 8):  # every batch whole, and the one it should be
        assert (store.features[start : start + 8] == start % 100).all()


def test_sigkill_while_writing_loses_nothing_acknowledged(tmp_path):
    acknowledged = 0
    for seconds in (0.0, 0.013, 0.101):
        acknowledged = kill_while_writing(tmp_path / "s", seconds)
        check_after_kill(tmp_path / "s", acknowledged)
    assert acknowledged > 16  # the later runs went on, they did not begin again


@pytest.mark.slow
def test_sigkill_at_fifty_random_moments(request, tmp_path):
    for seconds in np.random.default_rng(7).uniform(0, 0.2, 50):
        check_after_kill(tmp_path / "s", kill_while_writing(tmp_path / "s", seconds))
    record(request, kills=50)


@pytest.mark.parametrize("count", [0, -1, 4, 1 << 30])
def test_a_damaged_number_of_regions_is_named_when_it_is_read(tmp_path, count):
    with RegionWriter(tmp_path / "s", 3, 4, fields=["counts"]) as writer:
        writer.append(["a", "b"], np.ones((2, 3, 4)), counts=np.array([3, 3]))
    np.array([3, count], "<i4").tofile(tmp_path / "s" / "counts.bin")
    store = RegionStore(tmp_path / "s")
    assert store.read(["a"]).counts.tolist() == [3]
    with pytest.raises(
        FileFormatError, match=rf"counts.bin: is damaged: an image has {count} regi"
    ):
        store.read(["a", "b"])
