"""Features that users already have."""

import base64
import zipfile

import numpy as np
import pytest

from crossgaze.data.captions.precomp import read_precomp
from crossgaze.data.regions.import_npy import import_npy
from crossgaze.data.regions.import_npz import import_npz
from crossgaze.data.regions.import_tsv import import_tsv
from crossgaze.data.regions.importing import import_regions
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.verify import verify
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import FileFormatError, InputError

RNG = np.random.default_rng(3)


def save(path, array):
    np.save(path, array)
    return path


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


def test_one_vector_an_image_is_one_region(tmp_path):
    array = RNG.normal(size=(5, 7)).astype(np.float32)
    store = import_npy(save(tmp_path / "x.npy", array), tmp_path / "s")
    assert store.features.shape == (5, 1, 7)
    np.testing.assert_array_equal(store.features[:, 0], array)


@pytest.mark.parametrize(
    ("array", "options", "message"),
    [
        (np.zeros(3, np.float32), {}, r"float32 of shape \(3,\), wanted floats"),
        (np.zeros((3, 2, 2), int), {}, r"int64 of shape"),
        (np.zeros((0, 2, 2)), {}, r"of shape \(0, 2, 2\)"),
        (np.array([{}]), {}, "does not read as a NumPy array"),
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
    with pytest.raises(FileFormatError, match=r"x.npy: does not read as a NumPy array"):
        import_npy(npy, tmp_path / "s")
    np.savez(tmp_path / "y.npz", a=np.zeros(3))
    with pytest.raises(FileFormatError, match="is not one NumPy array"):
        import_npy(tmp_path / "y.npz", tmp_path / "s")
    with pytest.raises(InputError, match="no such file"):
        import_npy(tmp_path / "no.npy", tmp_path / "s")


def test_a_precomp_split_has_the_ids_of_its_captions(tmp_path):
    folder = tmp_path / "x_precomp"
    folder.mkdir()
    array = RNG.normal(size=(3, 2, 4)).astype(np.float32)
    np.save(folder / "test_ims.npy", array.repeat(5, axis=0))
    (folder / "test_caps.txt").write_text("".join(f"caption {i}\n" for i in range(15)))
    store = import_regions(folder, tmp_path / "s", split="test")
    captioned = read_precomp(folder)
    assert store.ids == captioned.images
    np.testing.assert_array_equal(store.read(captioned.images).features, array)
    with pytest.raises(InputError, match="split: wanted one of test"):
        import_regions(folder, tmp_path / "t")
    (folder / "dev_caps.txt").write_text("caption\n" * 5)
    with pytest.raises(InputError, match=r"has no dev_ims.npy"):
        import_regions(folder, tmp_path / "t", split="dev")


def tsv_line(name, boxes, features, width=640, height=480, count=None):
    cells = [base64.b64encode(np.asarray(x, "<f4").tobytes()).decode() for x in (boxes, features)]
    return "\t".join([str(name), str(width), str(height), str(count or len(boxes)), *cells]) + "\n"


def random_image(count, width=6):
    corner = RNG.uniform(0, 100, (count, 2))
    boxes = np.concatenate([corner, corner + RNG.uniform(1, 50, (count, 2))], axis=1)
    return boxes.astype(np.float32), RNG.normal(size=(count, width)).astype(np.float32)


@pytest.mark.parametrize("header", [False, True])
def test_a_bottom_up_tsv_comes_with_boxes(tmp_path, header):
    images = {f"{900 + i}": random_image(count) for i, count in enumerate([3, 1, 5] + [2] * 70)}
    text = "image_id\timage_w\timage_h\tnum_boxes\tboxes\tfeatures\n" if header else ""
    text += "".join(tsv_line(name, *image) for name, image in images.items())
    (tmp_path / "x.tsv").write_text(text)
    steps = []
    store = import_tsv(
        tmp_path / "x.tsv", tmp_path / "s", dtype="float32", on_progress=lambda *s: steps.append(s)
    )
    assert store.ids == tuple(images)
    assert store.head.regions == 5
    for row, (boxes, features) in enumerate(images.values()):
        count = len(boxes)
        assert store.counts[row] == count
        np.testing.assert_array_equal(store.features[row, :count], features)
        np.testing.assert_array_equal(store.boxes[row, :count], boxes)
        assert not store.features[row, count:].any()
    assert store.sizes[0].tolist() == [640, 480]
    assert steps[-1] == (len(text), len(text))
    assert verify(tmp_path / "s").sound
    again = import_regions(tmp_path / "x.tsv", tmp_path / "s", dtype="float32")
    assert len(again) == len(images)
    fewer = import_tsv(tmp_path / "x.tsv", tmp_path / "t", regions=2, dtype="float32")
    np.testing.assert_array_equal(fewer.features[2], images["902"][1][:2])


GOOD = tsv_line("1", *random_image(2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no image in it"),
        ("a\tb\n", r"line 1: has 2 tab-separated fields, wanted 6"),
        (GOOD + tsv_line("2", *random_image(2), count="x"), r"line 2: num_boxes is b'x'"),
        (GOOD + tsv_line("2", *random_image(2), width="w"), r"line 2: does not parse"),
        (GOOD.replace("\n", "!\n"), r"line 1: does not parse"),
        (tsv_line("1", *random_image(2), count=3), r"line 1: boxes are 32 bytes, wanted 48"),
        (tsv_line("1", np.zeros((2, 4)), np.zeros(3)), r"line 1: features are 12 bytes"),
        (GOOD + GOOD, r"image id '1' occurs twice"),
        (GOOD + tsv_line("2", *random_image(2, width=7)), r"'2': features are 7 wide"),
    ],
)
def test_a_bad_tsv_is_named_by_line(tmp_path, text, message):
    (tmp_path / "x.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        import_tsv(tmp_path / "x.tsv", tmp_path / "s")


def test_npz_files_one_an_image(tmp_path):
    folder = tmp_path / "n"
    folder.mkdir()
    boxes, features = random_image(3)
    size = {"image_w": 640, "image_h": 480}
    np.savez(folder / "a.npz", features=features, boxes=boxes, **size)
    np.savez(folder / "b.npz", x=features[:2].T, bbox=boxes[:2], **size)  # (d, n), as some do
    store = import_regions(folder, tmp_path / "s", dtype="float32")
    assert store.ids == ("a", "b")
    assert store.counts.tolist() == [3, 2]
    np.testing.assert_array_equal(store.features[0], features)
    np.testing.assert_array_equal(store.features[1, :2], features[:2])
    np.testing.assert_array_equal(store.boxes[1, :2], boxes[:2])
    np.savez(folder / "c.npz", feat=features)
    with pytest.raises(InputError, match="'c': boxes must be in every file or in none"):
        import_npz(folder, tmp_path / "s", dtype="float32")


def test_npz_files_without_boxes(tmp_path):
    np.savez(tmp_path / "a.npz", feat=np.ones((2, 3)))
    store = import_npz(tmp_path, tmp_path / "s")
    assert store.boxes is None
    assert store.counts.tolist() == [2]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"other": np.zeros(3)}, r"has none of features, x, feat; it holds \['other'\]"),
        ({"x": np.zeros((2, 3)), "bbox": np.zeros((2, 4))}, "has none of image_w, width"),
        ({"x": np.zeros(3)}, r"features of shape \(3,\)"),
        (
            {"x": np.zeros((2, 3)), "bbox": np.zeros((5, 4)), "width": 1, "height": 1},
            r"has features \(2, 3\), boxes \(5, 4\)",
        ),
        ({"x": np.array([{}])}, "does not read as an image's regions"),
    ],
)
def test_a_bad_npz_is_named(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(FileFormatError, match=message):
        import_npz(tmp_path, tmp_path / "s")


def test_an_npz_bomb_is_refused_before_it_unpacks(tmp_path):
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w", force_zip64=True) as member,
    ):
        for _ in range(1040):
            member.write(bytes(1 << 20))
    with pytest.raises(FileFormatError, match=r"unpacks to 1,090,519,040 bytes"):
        import_npz(tmp_path, tmp_path / "s")
    (tmp_path / "a.npz").write_bytes(b"no zip")
    with pytest.raises(FileFormatError, match=r"a.npz"):
        import_npz(tmp_path, tmp_path / "s")


def test_sources_that_are_nothing_are_named(tmp_path):
    (tmp_path / "x.txt").write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"x.txt: wanted a folder with"):
        import_regions(tmp_path / "x.txt", tmp_path / "s")
    with pytest.raises(InputError, match="no such file or folder"):
        import_regions(tmp_path / "no", tmp_path / "s")
    with pytest.raises(InputError, match=r"has no .npz file"):
        import_npz(tmp_path / "empty", tmp_path / "s")
