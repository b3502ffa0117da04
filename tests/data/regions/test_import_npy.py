"""`*_ims.npy` files, mapped or copied."""

import os
import time

import numpy as np
import pytest

from crossgaze.data.regions.import_npy import import_npy
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.verify import verify
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import FileFormatError, InputError
from feature_files import RNG, save


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_plain_file_is_mapped_and_not_copied(tmp_path, dtype):
    array = RNG.normal(size=(6, 3, 4)).astype(dtype)
    npy = save(tmp_path / "test_ims.npy", array)
    store = import_npy(npy, tmp_path / "s")
    np.testing.assert_array_equal(store.features, array)
    assert store.features.base is not None
    assert sum(path.stat().st_size for path in (tmp_path / "s").iterdir()) < 1000
    np.save(npy, array + 1)  # the store is a view of the file itself
    np.testing.assert_array_equal(RegionStore(tmp_path / "s").features, array + 1)
    found = verify(tmp_path / "s")
    assert found.sound
    assert "no checksums" in found.notes[0]
    with pytest.raises(InputError, match="somebody else's file and cannot grow"):
        RegionWriter(tmp_path / "s", 3, 4)
    with pytest.raises(InputError, match="is a region store already"):
        import_npy(npy, tmp_path / "s")


def test_a_mapped_file_that_is_replaced_by_another_is_noticed(tmp_path):
    npy = save(tmp_path / "x.npy", np.zeros((6, 3, 4), np.float32))
    import_npy(npy, tmp_path / "s")
    np.save(npy, np.zeros((6, 4, 3), np.float32))  # as many bytes, other regions
    with pytest.raises(FileFormatError, match=r"x.npy: is another file than was imported"):
        RegionStore(tmp_path / "s")


def test_images_stored_five_times_are_read_once(tmp_path):
    array = RNG.normal(size=(4, 3, 2)).astype(np.float32)
    npy = save(tmp_path / "x.npy", array.repeat(5, axis=0))
    for number, dtype in enumerate([None, "float16"]):
        store = import_npy(npy, tmp_path / f"{number}", ids=list("abcd"), row_step=5, dtype=dtype)
        np.testing.assert_allclose(store.features, array, atol=0 if dtype is None else 2e-3)
        np.testing.assert_allclose(store.read(["c"]).features[0], array[2], atol=2e-3)


@pytest.mark.parametrize(
    "array",
    [
        RNG.normal(size=(70, 3, 2)),  # float64, and more than one batch
        np.asfortranarray(RNG.normal(size=(5, 3, 2)).astype(np.float32)),
        RNG.normal(size=(5, 3, 2)).astype(">f4"),
    ],
)
def test_other_layouts_are_copied(tmp_path, array):
    steps = []
    npy = save(tmp_path / "x.npy", array)
    store = import_npy(npy, tmp_path / "s", on_progress=lambda *s: steps.append(s))
    np.testing.assert_array_equal(store.features, array.astype(np.float32))
    assert steps[-1] == (len(array), len(array))
    assert verify(tmp_path / "s").sound
    import_npy(npy, tmp_path / "s")  # again: nothing to do


@pytest.mark.parametrize("change", ["bytes", "modified"])
def test_a_copy_does_not_go_on_from_a_changed_file(tmp_path, change):
    array = RNG.normal(size=(5, 3, 2))
    npy = save(tmp_path / "x.npy", array)
    store = import_npy(npy, tmp_path / "s")
    assert store.head.made_by["bytes"] == npy.stat().st_size
    assert store.head.made_by["modified"] == npy.stat().st_mtime_ns
    if change == "bytes":
        np.save(npy, np.concatenate([array, array]))
        os.utime(npy, ns=(time.time_ns(), store.head.made_by["modified"]))
    else:
        os.utime(npy, (1, 1))
    with pytest.raises(InputError, match=f"the store there was made with {change} = "):
        import_npy(npy, tmp_path / "s")


def test_part_of_a_batch_is_not_ours(tmp_path):
    npy = save(tmp_path / "x.npy", RNG.normal(size=(5, 3, 2)))
    made_by = import_npy(npy, tmp_path / "s").head.made_by
    with RegionWriter(tmp_path / "t", 3, 2, dtype="float32", fields=[], made_by=made_by) as writer:
        writer.append(["0"], np.zeros((1, 3, 2)))
    with pytest.raises(InputError, match="t: holds part of a batch"):
        import_npy(npy, tmp_path / "t")


def test_one_vector_an_image_is_one_region(tmp_path):
    array = RNG.normal(size=(5, 7)).astype(np.float32)
    store = import_npy(save(tmp_path / "x.npy", array), tmp_path / "s")
    assert store.features.shape == (5, 1, 7)
    np.testing.assert_array_equal(store.features[:, 0], array)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["mapped", "copied"])
def test_a_folder_of_other_things_is_left_alone(tmp_path, dtype):
    npy = save(tmp_path / "x.npy", np.zeros((2, 2, 2), dtype))
    out = tmp_path / "holiday"
    out.mkdir()
    (out / "photo.jpg").write_bytes(b"mine")
    with pytest.raises(InputError, match=r"holiday: is not empty and not a region store \(it hol"):
        import_npy(npy, out)
    assert [path.name for path in out.iterdir()] == ["photo.jpg"]
    with pytest.raises(InputError, match=r"photo.jpg: is a file, wanted a folder"):
        import_npy(npy, out / "photo.jpg")


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["mapped", "copied"])
def test_a_name_that_is_not_utf8_is_refused_before_writing(tmp_path, dtype):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    npy = save(folder / "x.npy", np.zeros((2, 2, 2), dtype))
    with pytest.raises(InputError, match=r"caf\\udce9/x.npy': is not a name in UTF-8"):
        import_npy(npy, tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("array", "options", "message"),
    [
        (np.zeros(3, np.float32), {}, r"float32 of shape \(3,\), wanted floats"),
        (np.zeros((3, 2, 2), int), {}, r"int64 of shape"),
        (np.zeros((0, 2, 2)), {}, r"of shape \(0, 2, 2\)"),
        (np.array([{}]), {}, "is not a whole .npy file: Array can't be memory-mapped"),
        (np.zeros((6, 2, 2)), {"row_step": 5}, "6 rows, wanted a multiple of 5"),
        (np.zeros((2, 2, 2)), {"ids": ["a"]}, "has 2 images, but 1 ids"),
        (np.zeros((2, 2, 2)), {"ids": ["a", "a"]}, "1 of the 2 ids repeat"),
    ],
)
def test_files_that_are_not_features_are_refused(tmp_path, array, options, message):
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    with pytest.raises(InputError, match=message):
        import_npy(tmp_path / "x.npy", tmp_path / "s", **options)
    assert not (tmp_path / "s").exists()


def test_a_truncated_or_foreign_npy_is_named(tmp_path):
    npy = save(tmp_path / "x.npy", np.zeros((4, 3, 2), np.float32))
    npy.write_bytes(npy.read_bytes()[:-8])
    with pytest.raises(FileFormatError, match=r"x.npy: is not a whole .npy file"):
        import_npy(npy, tmp_path / "s")
    np.savez(tmp_path / "y.npz", a=np.zeros(3))
    with pytest.raises(FileFormatError, match=r"y.npz: is not a whole .npy file"):
        import_npy(tmp_path / "y.npz", tmp_path / "s")
    with pytest.raises(InputError, match="no such file"):
        import_npy(tmp_path / "no.npy", tmp_path / "s")
