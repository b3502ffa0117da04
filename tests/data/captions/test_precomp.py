import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.data.captions.precomp import precomp_layout, read_precomp
from crossgaze.errors import FileFormatError, InputError
from support import SHARED, needs_shared


def captions(split, images):
    return [f"{split} {i} caption {k}" for i in range(images) for k in range(5)]


def write(folder, split, images, rows=None, ids=None, dtype=np.float32):
    (folder / f"{split}_caps.txt").write_text("\n".join(captions(split, images)) + "\n")
    if rows is not None:
        np.save(folder / f"{split}_ims.npy", np.zeros((rows, 3, 4), dtype))
    if ids is not None:
        (folder / f"{split}_ids.txt").write_text("".join(f"{line}\n" for line in ids))


def test_five_captions_an_image_in_order(tmp_path):
    write(tmp_path, "train", 3, rows=3)
    write(tmp_path, "dev", 2, rows=10)
    found = read_precomp(tmp_path)
    assert found.name == tmp_path.name
    assert found.images == ("train/0", "train/1", "train/2", "dev/0", "dev/1")
    assert found.splits == ("train",) * 3 + ("dev",) * 2
    assert found.captions == tuple(captions("train", 3) + captions("dev", 2))
    assert found.image_of.tolist() == [i for i in range(5) for _ in range(5)]
    assert (found.left_out, found.folder) == ((), None)
    assert found.notes == (
        f"{tmp_path / 'dev_ims.npy'}: each image is stored five times; every fifth row is used",
    )


@given(st.integers(1, 6), st.sampled_from([1, 5]), st.sampled_from(["<f2", "<f4", ">f8"]))
def test_layout_finds_each_image_its_row(tmp_path_factory, images, step, dtype):
    folder = tmp_path_factory.mktemp("precomp")
    write(folder, "test", images)
    stored = np.repeat(np.arange(images, dtype=dtype), step).reshape(-1, 1, 1)
    np.save(folder / "test_ims.npy", np.broadcast_to(stored, (images * step, 2, 3)))
    layout = precomp_layout(folder, "test")
    assert (layout.images, layout.captions, layout.rows) == (images, 5 * images, images * step)
    assert (layout.row_step, layout.shape) == (step, (images * step, 2, 3))
    assert layout.dtype == np.dtype(dtype)
    features = np.load(layout.features)
    assert [features[i * layout.row_step, 0, 0] for i in range(images)] == list(range(images))


def test_features_are_never_loaded(tmp_path):
    write(tmp_path, "train", 4)
    shape = (4, 36, 1 << 17)  # 75 MB, a hole in the file that takes no room on disk
    np.lib.format.open_memmap(tmp_path / "train_ims.npy", "w+", np.float32, shape)
    tracemalloc.start()
    layout = precomp_layout(tmp_path, "train")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert layout.shape == shape
    assert peak < 1_000_000


@pytest.mark.parametrize("shape", [(3, 4), (4,)], ids=["regions", "one vector"])
@pytest.mark.parametrize(("images", "row"), [(1, 4), (3, 6), (500, 3), (500, 2499)])
def test_a_row_a_caption_must_be_each_image_five_times(tmp_path, shape, images, row):
    write(tmp_path, "test", images)
    stored = np.random.default_rng(1).normal(size=(images, *shape)).astype(np.float32)
    stored[0].flat[0] = np.nan  # equal to itself all the same
    rows = stored.repeat(5, axis=0)
    np.save(tmp_path / "test_ims.npy", rows)
    assert len(read_precomp(tmp_path)) == images
    rows[row].flat[-1] += 1
    np.save(tmp_path / "test_ims.npy", rows)
    start = row // 5 * 5
    message = f"test_ims.npy: has a row for each caption, but rows {start} and {row} differ; wanted"
    for read in (read_precomp, lambda folder: precomp_layout(folder, "test")):
        with pytest.raises(FileFormatError, match=message):
            read(tmp_path)


def test_only_some_rows_are_compared(tmp_path):
    write(tmp_path, "train", 2_000)
    rows = np.zeros((10_000, 1, 2), np.float32)
    np.save(tmp_path / "train_ims.npy", rows)
    assert precomp_layout(tmp_path, "train").row_step == 5
    opened = np.load(tmp_path / "train_ims.npy", mmap_mode="r+")
    for image in range(5):  # wherever they are spread, five neighbours are not all looked at
        opened[(1_001 + image) * 5] = image + 1
        assert precomp_layout(tmp_path, "train").row_step == 5
    for image in range(200):  # but a long stretch of the file is
        opened[(1_001 + image) * 5] = 1
    with pytest.raises(FileFormatError, match="differ"):
        precomp_layout(tmp_path, "train")


def test_testall_beside_test_is_said(tmp_path):
    for split in ("test", "testall"):
        write(tmp_path, split, 1, rows=1)
    assert read_precomp(tmp_path).notes == (
        f"{tmp_path}: testall was left out, for MS-COCO's contains test; ask for it with "
        "splits='testall', or name the file testall_caps.txt",
    )
    assert read_precomp(tmp_path, "testall").notes == ()
    assert read_precomp(tmp_path, "test").notes == ()


def test_features_without_captions_are_counted_or_refused(tmp_path):
    write(tmp_path, "train", 1, rows=1)
    for split in ("dev", "extra"):
        np.save(tmp_path / f"{split}_ims.npy", np.zeros((1, 3, 4), np.float32))
    assert [str(left) for left in read_precomp(tmp_path).left_out] == [
        "2 feature files without a file of captions (dev_ims.npy, extra_ims.npy)"
    ]
    assert read_precomp(tmp_path, "train").left_out == ()
    with pytest.raises(InputError, match=r"no dev_caps.txt \(its dev_ims.npy has no captions\)"):
        read_precomp(tmp_path, "dev")


def test_without_features_it_says_what_it_assumes(tmp_path):
    write(tmp_path, "test", 4)
    found = read_precomp(tmp_path)
    assert len(found) == 4
    assert found.notes == (
        f"{tmp_path} has no test_ims.npy, so test is taken to have five captions an image: "
        "4 images",
    )
    layout = precomp_layout(tmp_path, "test")
    assert (layout.images, layout.rows, layout.row_step, layout.features) == (4, 0, 1, None)
    with (tmp_path / "test_caps.txt").open("a") as file:
        file.write("one more\n")
    with pytest.raises(FileFormatError, match="has 21 captions, wanted a multiple of 5"):
        read_precomp(tmp_path)


@pytest.mark.parametrize(
    ("there", "default"),
    [
        (("train", "dev", "test", "testall"), ("train", "dev", "test")),
        (("train", "testall"), ("train", "testall")),
        (("testall",), ("testall",)),
    ],
)
def test_default_splits_never_read_test_twice(tmp_path, there, default):
    for split in there:
        write(tmp_path, split, 1, rows=1)
    assert read_precomp(tmp_path).splits == default
    assert read_precomp(tmp_path, there).splits == there
    assert read_precomp(tmp_path, there[-1]).splits == there[-1:]


def test_first_cuts_dev_and_test_only(tmp_path):
    for split in ("train", "dev", "test", "testall"):
        write(tmp_path, split, 4, rows=4)
    found = read_precomp(tmp_path, ("train", "dev", "test", "testall"), first=3)
    sizes = {split: found.splits.count(split) for split in ("train", "dev", "test", "testall")}
    assert sizes == {"train": 4, "dev": 3, "test": 3, "testall": 4}
    assert found.captions_of(4) == tuple(captions("dev", 1))
    assert [str(left) for left in found.left_out] == [
        "2 images past the first 3 of their split (dev/3, test/3)"
    ]
    with pytest.raises(InputError, match="first is 0, wanted at least 1"):
        read_precomp(tmp_path, first=0)


@pytest.mark.parametrize("repeat", [1, 5])
def test_ids_one_an_image_or_one_a_caption(tmp_path, repeat):
    write(tmp_path, "dev", 3, rows=3, ids=[i for i in (99, 7, 12) for _ in range(repeat)])
    found = read_precomp(tmp_path)
    assert found.images == ("99", "7", "12")
    assert found.captions_of(1) == tuple(captions("dev", 2)[5:])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2], "has 2 ids, wanted one for each of the 3 images or one for each of the 15 capti"),
        ([1, 2, 1], "line 3: the id '1' was already given on line 1"),
        ([1] * 10 + [2] * 5, "line 6: the id '1' was already given on line 1"),
        ([1] * 5 + [2] * 4 + [3] * 6, "line 10: is '3', but its image has '2'"),
        ([1, "", 3], "line 2: the id is blank"),
        ([1, "../x", 3], "line 2: the id is '../x', which leads out"),
    ],
)
def test_bad_ids(tmp_path, ids, message):
    write(tmp_path, "dev", 3, rows=3, ids=ids)
    with pytest.raises(FileFormatError) as caught:
        read_precomp(tmp_path)
    assert "dev_ids.txt" in str(caught.value)
    assert message in str(caught.value)


def test_the_same_id_in_two_splits(tmp_path):
    write(tmp_path, "test", 1, ids=[5])
    write(tmp_path, "testall", 2, ids=[4, 5])
    with pytest.raises(InputError, match="image '5' is in test and in testall, read one of"):
        read_precomp(tmp_path, ("test", "testall"))


@pytest.mark.parametrize("rows", [1, 4, 7, 15, 50])
def test_rows_that_fit_no_layout(tmp_path, rows):
    write(tmp_path, "dev", 2, rows=rows)
    message = f"dev_ims.npy: has {rows} rows for the 10 captions of dev_caps.txt, wanted one row"
    with pytest.raises(FileFormatError, match=message):
        read_precomp(tmp_path)


def test_as_many_rows_as_captions_must_be_blocks_of_five(tmp_path):
    (tmp_path / "dev_caps.txt").write_text("x\n" * 7)
    np.save(tmp_path / "dev_ims.npy", np.zeros((7, 3, 4), np.float32))
    with pytest.raises(FileFormatError, match="has 7 rows for the 7 captions"):
        read_precomp(tmp_path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 3, 4), np.int64), r"holds int64 of shape \(2, 3, 4\), wanted floating"),
        (np.zeros(2, np.float32), r"holds float32 of shape \(2,\), wanted"),
        (np.array([["a"], [None]], object), "is not a whole .npy file: Array can't be memory-mapp"),
    ],
)
def test_arrays_that_are_no_features(tmp_path, array, message):
    write(tmp_path, "dev", 2)
    np.save(tmp_path / "dev_ims.npy", array)
    with pytest.raises(FileFormatError, match=message):
        precomp_layout(tmp_path, "dev")


def test_a_features_file_that_is_no_npy(tmp_path):
    write(tmp_path, "dev", 2)
    (tmp_path / "dev_ims.npy").write_bytes(b"PK")
    with pytest.raises(FileFormatError, match=r"dev_ims.npy: is not a whole .npy file: ."):
        precomp_layout(tmp_path, "dev")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\nb\n\nd\ne\n", "line 3: the caption is blank, and leaving it out would shift all"),
        ("a\nb\nc\nd\ne\n\n", "line 6: the caption is blank"),
        ("a\nb\nc\nd\n" + "e" * 100_001, "line 5: the caption has 100,001 characters"),
        ("", "dev_caps.txt: holds no caption"),
    ],
)
def test_bad_captions(tmp_path, text, message):
    (tmp_path / "dev_caps.txt").write_text(text)
    with pytest.raises(FileFormatError) as caught:
        read_precomp(tmp_path)
    assert message in str(caught.value)


def test_bad_arguments(tmp_path):
    with pytest.raises(InputError, match=r"has none of train_caps.txt, dev_caps.txt, test_caps.tx"):
        read_precomp(tmp_path)
    write(tmp_path, "train", 1)
    with pytest.raises(InputError, match=r"no tran_caps.txt \(did you mean 'train'\?\), it has"):
        read_precomp(tmp_path, "tran")
    with pytest.raises(InputError, match=r"no dev_caps.txt, it has the splits"):
        precomp_layout(tmp_path, "dev")
    for splits in ((), ("train", "train")):
        with pytest.raises(InputError, match="wanted at least one and each once"):
            read_precomp(tmp_path, splits)


@needs_shared
def test_the_real_flickr30k_captions():
    folder = SHARED / "data/f30k_precomp"
    found = read_precomp(folder)
    assert found.describe()["splits"] == {
        "dev": {"images": 1_014, "captions": 5_070},
        "test": {"images": 1_000, "captions": 5_000},
    }
    assert len(found.notes) == 2
    lines = (folder / "dev_caps.txt").read_text(encoding="utf-8").splitlines()
    assert found.split("dev").captions == tuple(line.strip() for line in lines)
    cut = read_precomp(folder, first=1_000)
    assert [cut.splits.count(split) for split in ("dev", "test")] == [1_000, 1_000]
    assert [left.count for left in cut.left_out] == [14]
