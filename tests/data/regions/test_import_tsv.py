"""Bottom-up attention's and LXMERT's TSV files."""

import os

import numpy as np
import pytest

from crossgaze.data.regions import import_tsv as module
from crossgaze.data.regions.import_report import read_import_report
from crossgaze.data.regions.import_tsv import import_tsv, is_tsv, tsv_files
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.verify import verify
from crossgaze.errors import FileFormatError, InputError
from feature_files import base64_of, lxmert_cells, lxmert_line, random_image, tsv_line


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
    again = import_tsv(str(tmp_path / "x.tsv"), tmp_path / "s", dtype="float32")
    assert len(again) == len(images)
    fewer = import_tsv(tmp_path / "x.tsv", tmp_path / "t", regions=2, dtype="float32")
    np.testing.assert_array_equal(fewer.features[2], images["902"][1][:2])


def test_what_is_cut_off_is_counted(tmp_path):
    text = "".join(tsv_line(i, *random_image(count)) for i, count in enumerate([3, 2, 5, 1]))
    (tmp_path / "x.tsv").write_text(text)
    for regions, cut, images in [(2, 4, 2), (4, 1, 1), (None, 0, 0)]:
        out = tmp_path / f"s{regions}"
        for _ in range(2):  # a second run, which has nothing to do, says the same
            import_tsv(tmp_path / "x.tsv", out, regions=regions)
            report = read_import_report(out)
            assert (report.regions_cut, report.images_cut) == (cut, images)
            assert (report.files, report.images, report.ignored) == (1, 4, ())
        assert verify(out).sound


@pytest.mark.parametrize("header", [False, True])
def test_lxmerts_ten_columns_fill_the_labels(tmp_path, header):
    images = {"a": random_image(3), "b": random_image(2)}
    text = "\t".join(module.LXMERT_FIELDS) + "\n" if header else ""
    text += "".join(lxmert_line(name, *image) for name, image in images.items())
    path = tmp_path / "karpathy_train_resnet101_faster_rcnn_genome.tsv.0"
    path.write_text(text)
    store = import_tsv(path, tmp_path / "s", dtype="float32")
    assert store.ids == ("a", "b")
    assert store.sizes.tolist() == [[640, 480]] * 2  # height stands first in the file
    np.testing.assert_array_equal(store.features[1, :2], images["b"][1])
    np.testing.assert_array_equal(store.boxes[0], images["a"][0])
    assert store.field("classes").tolist() == [[1000, 1001, 1002], [1000, 1001, 0]]
    assert store.field("attributes").tolist() == [[0, 3, 6], [0, 3, 0]]
    for name in ("confidence", "class_confidence"):
        assert store.field(name).tolist() == [[0.25, 0.375, 0.5], [0.25, 0.5, 0]]
    assert store.field("attribute_confidence").tolist() == [[0.125, 0.5625, 1], [0.125, 1, 0]]
    assert verify(tmp_path / "s").sound


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (["num_boxes"] * 1001, "has 1,001 tab-separated fields, wanted 1,000 at most"),
        (["num_boxes", "x" * 100_000], "has a header of 100,009 bytes, wanted 100,000 at most"),
    ],
)
def test_a_header_of_megabytes_is_refused(tmp_path, columns, says):
    (tmp_path / "x.tsv").write_text("\t".join(columns) + "\n")
    with pytest.raises(FileFormatError, match=rf"x.tsv, line 1: {says}"):
        import_tsv(tmp_path / "x.tsv", tmp_path / "s")


def test_a_header_may_name_other_columns_in_another_order(tmp_path):
    cells = {"model": "faster", **lxmert_cells("a", *random_image(2), width=7, height=9), "x": ""}
    columns = sorted(cells)
    lines = [columns, [str(cells[name]) for name in columns]]
    text = "\ufeff" + "".join("\t".join(line) + "\r\n" for line in lines)
    (tmp_path / "x.tsv").write_text(text, encoding="utf-8", newline="")
    store = import_tsv(tmp_path / "x.tsv", tmp_path / "s")
    assert (store.ids, store.sizes.tolist()) == (("a",), [[7, 9]])
    assert store.field("classes").tolist() == [[1000, 1001]]
    assert read_import_report(tmp_path / "s").ignored == ("model", "x")


def test_several_files_become_one_store(tmp_path):
    images = {f"{i}": random_image(2) for i in range(6)}
    lines = [tsv_line(name, *image) for name, image in images.items()]
    files = [tmp_path / f"x.tsv.{i}" for i in range(3)]
    for i, path in enumerate(files):
        path.write_text("".join(lines[2 * i : 2 * i + 2]))
    steps = []
    store = import_tsv(files, tmp_path / "s", on_progress=lambda *step: steps.append(step))
    assert store.ids == tuple(images)
    size = sum(map(len, lines))
    assert steps == [(sum(map(len, lines[: i + 1])), size) for i in range(6)]
    assert read_import_report(tmp_path / "s").files == 3
    assert store.head.made_by["files"] == [str(path) for path in files]
    files[1].write_text(lines[2] + lines[0])
    message = rf"x.tsv.1, line 2: image id '0' was already given by {files[0]}, line 1"
    with pytest.raises(FileFormatError, match=message):
        import_tsv(files, tmp_path / "t")
    files[1].write_text(lxmert_line("7", *random_image(2)))
    with pytest.raises(FileFormatError, match=r"x.tsv.1, line 1: classes must be in every file or"):
        import_tsv(files, tmp_path / "u")
    with pytest.raises(InputError, match="tsv: got no file, wanted at least one"):
        import_tsv([], tmp_path / "t")


def test_a_stopped_import_goes_on_unless_a_file_has_changed(tmp_path):
    lines = [tsv_line(i, *random_image(2)) for i in range(100)]
    path = tmp_path / "x.tsv"
    path.write_text("".join(lines))

    def stop(done, total):
        if done > total * 0.9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_tsv(path, tmp_path / "s", on_progress=stop)
    assert len(RegionStore(tmp_path / "s")) == 64
    assert not (tmp_path / "s" / "report.json").exists()
    stamp = path.stat().st_mtime_ns
    os.utime(path, ns=(0, stamp + 1))
    with pytest.raises(InputError, match="the store there was made with modified = "):
        import_tsv(path, tmp_path / "s")
    os.utime(path, ns=(0, stamp))
    assert import_tsv(path, tmp_path / "s").ids == tuple(map(str, range(100)))


GOOD = tsv_line("1", *random_image(2))
NAN = np.array([[1, 2], [3, np.nan]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no image in it"),
        ("\t".join(module.TSV_FIELDS), "has no image in it"),
        ("a\tb\n", r"line 1: has 2 tab-separated fields, wanted 6 \(image_id, .*or LXMERT's 10"),
        (GOOD + "a\tb\n", r"line 2: has 2 tab-separated fields, the first line has 6"),
        (GOOD + tsv_line("2", *random_image(2), count="x"), r"line 2: num_boxes is 'x', wanted"),
        (GOOD + tsv_line("2", *random_image(2), count=-1), r"line 2: num_boxes is '-1', wanted"),
        (GOOD + tsv_line("2", *random_image(2), count=10**8), r"line 2: boxes are 32 bytes, want"),
        (GOOD + tsv_line("2", *random_image(2), width="w"), r"line 2: image_w is 'w', wanted a wh"),
        (tsv_line("1", *random_image(2), width="0"), r"line 1: image_w is '0', wanted a whole num"),
        (
            tsv_line("1", *random_image(2), height=1_000_001),
            r"line 1: image_h is '1000001', wanted a whole number from 1 to 1,000,000",
        ),
        (GOOD.replace("\n", "!\n"), r"line 1: features is not base64: "),
        (GOOD[:-2] + "\n", r"line 1: features is not base64: "),
        (tsv_line("1", *random_image(2), count=3), r"line 1: boxes are 32 bytes, wanted 48 for 3"),
        (tsv_line("1", np.zeros((2, 4)), np.zeros(3)), r"line 1: features are 12 bytes"),
        (tsv_line("1", np.zeros((2, 4)), []), r"line 1: features are 0 bytes"),
        (tsv_line("1", np.zeros((2, 4)), NAN), r"line 1: features are not all finite as float16"),
        (tsv_line("1", np.full((2, 4), np.inf), np.ones(2)), r"line 1: boxes are not all finite"),
        (tsv_line("1", np.zeros((1, 4)), [70_000]), r"line 1: features are not all finite as fl"),
        (tsv_line("", *random_image(2)), r"line 1: image_id is '', wanted 1 to 1000 characters"),
        (GOOD + GOOD, r"line 2: image id '1' was already given by .*x.tsv, line 1"),
        (
            GOOD + tsv_line("2", *random_image(2, width=7)),
            r"line 2: features are 7 wide, those of .*x.tsv, line 1 6",
        ),
        ("num_boxes\timage_id\timg_id\n", "line 1: the header names image_id twice"),
        ("num_boxes\timage_id\n", "line 1: the header has no column image_w"),
        (
            lxmert_line("1", *random_image(2), objects_id=base64_of([-2, 1], "<i8")),
            "line 1: objects_id are -2 to 1, wanted -1 or more",
        ),
        (
            lxmert_line("1", *random_image(2), attrs_id=base64_of([0, 2**31], "<i8")),
            "line 1: attrs_id are 0 to 2147483648, wanted",
        ),
        (
            lxmert_line("1", *random_image(2), objects_id=base64_of([1, 1], "<i4")),
            "line 1: objects_id are 8 bytes, not 2 rows of 8-byte numbers",
        ),
        (
            lxmert_line("1", *random_image(2), attrs_conf=base64_of(np.zeros((2, 3)))),
            "line 1: attrs_conf has 3 numbers a region, wanted one",
        ),
        (
            lxmert_line("1", *random_image(2), objects_conf=base64_of([0, np.inf])),
            "line 1: confidence are not all finite",
        ),
    ],
)
def test_a_bad_tsv_is_named_by_line(tmp_path, text, message):
    (tmp_path / "x.tsv").write_text(text)
    with pytest.raises(FileFormatError, match=rf"x\.tsv(, |: ){message}"):
        import_tsv(tmp_path / "x.tsv", tmp_path / "s")


def test_bytes_that_are_no_text_and_lines_without_end(tmp_path, monkeypatch):
    (tmp_path / "x.tsv").write_bytes(b"caf\xe9" + GOOD.encode())
    with pytest.raises(
        FileFormatError, match=r"line 1: image_id is b'caf\\xe91', which is not UTF"
    ):
        import_tsv(tmp_path / "x.tsv", tmp_path / "s")
    monkeypatch.setattr(module, "MAX_LINE", 100)
    (tmp_path / "x.tsv").write_bytes(bytes(101))
    with pytest.raises(FileFormatError, match=r"x.tsv, line 1: has more than 100 bytes"):
        import_tsv(tmp_path / "x.tsv", tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_a_name_that_is_not_utf8_is_refused_before_writing(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.tsv")
    path.write_text(GOOD)
    with pytest.raises(InputError, match=r"caf\\udce9.tsv': is not a name in UTF-8"):
        import_tsv(path, tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_the_files_of_a_folder_in_order(tmp_path):
    names = ["a.tsv", "b.tsv.0", "b.tsv.2", "b.tsv.10", "C.TSV"]
    for name in [*names, "notes.txt"]:
        (tmp_path / name).touch()
    assert {path.name for path in tmp_path.iterdir() if is_tsv(path)} == set(names)
    assert [path.name for path in tsv_files(tmp_path)] == ["C.TSV", *names[:-1]]
    (tmp_path / "b.tsv.gz").touch()
    with pytest.raises(InputError, match=r"b.tsv.gz: wanted .tsv files or numbered parts"):
        tsv_files(tmp_path)
