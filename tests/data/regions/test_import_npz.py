"""A folder with one `.npz` an image."""

import io
import os
import zipfile

import numpy as np
import pytest

from crossgaze.data.regions.import_npz import import_npz
from crossgaze.data.regions.import_report import read_import_report
from crossgaze.data.regions.verify import verify
from crossgaze.errors import FileFormatError, InputError
from feature_files import random_image

SIZE = {"image_w": 640, "image_h": 480}
LABELS = {
    "objects_id": np.array([5, 6, -1]),
    "objects_conf": np.array([0.25, 0.5, 0.75]),
    "attrs_id": np.array([1, 2, 3], np.uint8),
    "attrs_conf": np.array([0.5, 0.5, 1], np.float32),
    "conf": np.array([1, 0, 1]),
}


def test_npz_files_one_an_image(tmp_path):
    folder = tmp_path / "n"
    folder.mkdir()
    boxes, features = random_image(3)
    np.savez(folder / "a.npz", features=features, boxes=boxes, **SIZE)
    np.savez(folder / "b.npz", x=features[:2].T, bbox=boxes[:2], **SIZE)  # (d, n), as some do
    store = import_npz(folder, tmp_path / "s", dtype="float32")
    assert store.ids == ("a", "b")
    assert store.counts.tolist() == [3, 2]
    assert store.sizes.tolist() == [[640, 480]] * 2
    np.testing.assert_array_equal(store.features[0], features)
    np.testing.assert_array_equal(store.features[1, :2], features[:2])
    np.testing.assert_array_equal(store.boxes[1, :2], boxes[:2])
    assert len(import_npz(folder, tmp_path / "s", dtype="float32")) == 2  # nothing to do
    np.savez(folder / "c.npz", feat=features)
    with pytest.raises(InputError, match="the store there was made with files = 2, now it is 3"):
        import_npz(folder, tmp_path / "s", dtype="float32")
    message = r"c.npz: boxes must be in every file or in none, .*a.npz has such"
    with pytest.raises(FileFormatError, match=message):
        import_npz(folder, tmp_path / "t", dtype="float32")


def test_npz_files_without_boxes(tmp_path):
    np.savez(tmp_path / "a.npz", feat=np.ones((2, 3)), image_w=np.array("wide"))
    store = import_npz(tmp_path, tmp_path / "s")
    assert store.boxes is None
    assert store.counts.tolist() == [2]
    assert read_import_report(tmp_path / "s").ignored == ("image_w",)


@pytest.mark.parametrize("theirs", [True, False])
def test_labels_where_every_file_has_them(tmp_path, theirs):
    boxes, features = random_image(3)
    ours = ("classes", "class_confidence", "attributes", "attribute_confidence", "confidence")
    labels = LABELS if theirs else dict(zip(ours, LABELS.values(), strict=True))
    folder = tmp_path / "n"
    folder.mkdir()
    whole = {"x": features, "bbox": boxes, "num_bbox": 3, "info": np.array([{}]), **SIZE, **labels}
    np.savez(folder / "a.npz", **whole)
    np.savez(folder / "b.npz", **whole, other=np.zeros(1))
    store = import_npz(folder, tmp_path / "s")
    for name, values in zip(ours, LABELS.values(), strict=True):
        assert store.field(name).tolist() == [values.tolist()] * 2
    assert verify(tmp_path / "s").sound
    assert read_import_report(tmp_path / "s").ignored == ("info", "num_bbox", "other")
    cut = import_npz(folder, tmp_path / "t", regions=1)
    assert cut.field("classes").tolist() == [[5], [5]]
    report = read_import_report(tmp_path / "t")
    assert (report.source, report.files, report.images) == ("npz", 2, 2)
    assert (report.regions_cut, report.images_cut) == (4, 2)
    np.savez(folder / "c.npz", **{k: v for k, v in whole.items() if k not in labels})
    with pytest.raises(FileFormatError, match=r"c.npz: confidence must be in every file or in non"):
        import_npz(folder, tmp_path / "u")
    np.savez(folder / "0.npz", **{k: v for k, v in whole.items() if k not in labels})
    with pytest.raises(FileFormatError, match=r"a.npz: confidence must be .*0.npz has no such"):
        import_npz(folder, tmp_path / "v")


BOXED = {"x": np.zeros((2, 3)), "bbox": np.zeros((2, 4)), "width": 1, "height": 1}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"other": np.zeros(3)}, r"has none of features, x, feat; it holds \['other'\]"),
        ({"x": np.zeros((2, 3)), "bbox": np.zeros((2, 4))}, "has boxes but none of image_w, width"),
        ({"x": np.zeros(3)}, r"has features of shape \(3,\)"),
        ({"x": np.zeros((0, 3))}, r"has features of shape \(0, 3\)"),
        (BOXED | {"bbox": np.zeros((5, 4))}, r"has features \(2, 3\), boxes \(5, 4\)"),
        ({"x": np.array([{}])}, "does not read as an image's regions: Object arrays cannot be"),
        ({"x": np.array([["a", "b"]])}, "has features of type <U1, wanted numbers"),
        ({"x": np.ones((2, 3), complex)}, "has features of type complex128, wanted numbers"),
        ({"x": np.array([[1, np.inf]])}, "features are not all finite as float16"),
        ({"x": np.array([[1, np.nan]])}, "features are not all finite as float16"),
        ({"x": np.array([[1, 1e300]])}, "features are not all finite as float16"),
        ({"x": np.array([[1, 70_000]])}, "features are not all finite as float16"),
        (BOXED | {"bbox": np.full((2, 4), -np.inf)}, "boxes are not all finite as float32"),
        (BOXED | {"bbox": np.full((2, 4), "b")}, "has boxes of type <U1, wanted numbers"),
        (BOXED | {"width": np.inf}, "width is inf, wanted a whole number from 1 to 1,000,000"),
        (BOXED | {"width": np.nan}, "width is nan, wanted"),
        (BOXED | {"width": 1.5}, "width is 1.5, wanted"),
        (BOXED | {"height": 0}, "height is 0, wanted a whole number from 1"),
        (BOXED | {"height": 1_000_001}, "height is 1000001, wanted a whole number from 1"),
        (BOXED | {"height": [1, 2]}, r"height is \[1 2\], wanted"),
        (BOXED | {"height": "tall"}, "has height of type <U4, wanted numbers"),
        (BOXED | {"conf": np.zeros(3)}, r"has confidence of shape \(3,\), wanted \(2,\)"),
        (BOXED | {"conf": [0, np.nan]}, "confidence are not all finite"),
        (BOXED | {"classes": [0.5, 1]}, "has classes of type float64, wanted whole numbers"),
        (BOXED | {"classes": [-2, 1]}, "classes are -2 to 1, wanted -1 or more"),
        (BOXED | {"attrs_id": [0, 2**31]}, "attributes are 0 to 2147483648, wanted -1 or more"),
    ],
)
def test_a_bad_npz_is_named(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(FileFormatError, match=rf"a\.npz: {message}"):
        import_npz(tmp_path, tmp_path / "s")


def member(array):
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def packed(content, how=zipfile.ZIP_DEFLATED):
    """Return a zip file with the one member x.npy."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        archive.writestr("x.npy", content)
    return bytearray(file.getvalue())


def with_flag(zipped, offset, value):
    """Set a 16-bit number in both of a member's headers (the second has two bytes more before)."""
    central = zipped.index(b"PK\x01\x02")
    for start in (offset, central + offset + 2):
        zipped[start : start + 2] = value.to_bytes(2, "little")
    return zipped


def scrambled(zipped):
    """Spoil what is packed, behind the first header (30 bytes and the name)."""
    zipped[35:60] = b"\xff" * 25
    return zipped


FEATURES = member(np.random.default_rng(0).normal(size=(2, 30)))
HUGE = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d, 3)}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (scrambled(packed(FEATURES)), "Error -3 while decompressing"),
        (scrambled(packed(FEATURES, zipfile.ZIP_STORED)), "."),
        (with_flag(packed(FEATURES), 6, 1), "encrypted"),
        (packed(FEATURES[:-100]), "."),
        (packed(FEATURES[:20]), "."),
        (packed(b"\x93NUMPY\x01\x00\x07\x00((((((\n"), "."),
        (packed(b"\x93NUMPY\x01\x00" + bytes([len(HUGE % 10**13), 0]) + HUGE % 10**13), "."),
        (packed(b"\x93NUMPY\x01\x00" + bytes([len(HUGE % 10**30), 0]) + HUGE % 10**30), "."),
    ],
)
def test_damaged_archives_are_named_in_one_line(tmp_path, content, message):
    (tmp_path / "a.npz").write_bytes(content)
    expected = rf"a\.npz: does not read as an image's regions: .*{message}"
    with pytest.raises(FileFormatError, match=expected) as caught:
        import_npz(tmp_path, tmp_path / "s")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "s").exists()


def test_an_archive_of_thousands_of_arrays_is_refused_unread(tmp_path):
    arrays = {str(number): np.ones(1) for number in range(1001)}
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(FileFormatError, match=r"a\.npz: has 1,001 members, wanted 1,000 at most"):
        import_npz(tmp_path, tmp_path / "store")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no zip", "is not a readable zip file: it has no end"),
        (b"", "is not a readable zip file: it has no end"),
        (with_flag(packed(FEATURES), 8, 97), "has 'x.npy' packed by method 97, wanted stored or d"),
        (packed(FEATURES, zipfile.ZIP_LZMA), "has 'x.npy' packed by LZMA, wanted stored or defl"),
        (packed(FEATURES, zipfile.ZIP_BZIP2), "has 'x.npy' packed by bzip2, wanted stored or d"),
    ],
)
def test_what_is_no_archive_or_packed_as_none_is_refused_unread(tmp_path, content, message):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(FileFormatError, match=rf"a\.npz: {message}"):
        import_npz(tmp_path, tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_a_python_2_header_is_read_quietly(tmp_path):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L)}\n"
    content = b"\x93NUMPY\x01\x00" + bytes([len(header), 0]) + header + bytes(24)
    (tmp_path / "a.npz").write_bytes(packed(content))
    assert import_npz(tmp_path, tmp_path / "s").features.shape == (1, 2, 3)


def test_an_npz_bomb_is_refused_before_it_unpacks(tmp_path):
    zipped = packed(FEATURES)
    size = zipped.index(b"PK\x01\x02") + 24  # in the list of members, how much it unpacks to
    zipped[size : size + 4] = (1_090_519_040).to_bytes(4, "little")
    (tmp_path / "a.npz").write_bytes(zipped)
    with pytest.raises(FileFormatError, match=r"unpacks to 1,090,519,040 bytes"):
        import_npz(tmp_path, tmp_path / "s")


def test_folders_and_names_that_will_not_do(tmp_path):
    with pytest.raises(InputError, match=r"has no .npz file"):
        import_npz(tmp_path, tmp_path / "s")
    np.savez(tmp_path / os.fsdecode(b"caf\xe9.npz"), x=np.ones((2, 3)))
    with pytest.raises(InputError, match=r"caf\\udce9.npz': is not a name in UTF-8"):
        import_npz(tmp_path, tmp_path / "s")
    assert not (tmp_path / "s").exists()
