"""Boxes as other people's detectors write them, in files written by hand."""

import base64
import json
import re
import struct

import pytest

from crossgaze.errors import FileFormatError, InputError
from crossgaze.vision.sources.box_files import read_box_file


def coco(tmp_path, content, name="boxes.json"):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def detection(image, bbox, **other):
    return {"image_id": image, "category_id": 1, "bbox": bbox} | other


def tsv_line(name, boxes, width=200, height=100, *, count=None, cell=None):
    """One line of bottom-up attention's TSV, packed number by number."""
    flat = [value for box in boxes for value in box]
    packed = base64.b64encode(struct.pack(f"<{len(flat)}f", *flat)).decode()
    features = base64.b64encode(struct.pack(f"<{2 * len(boxes)}f", *[0.5] * 2 * len(boxes)))
    cells = [name, width, height, count or len(boxes), cell or packed, features.decode()]
    return "\t".join(map(str, cells)) + "\n"


def test_cocos_detections_are_corner_and_extent_the_surest_first(tmp_path):
    found = read_box_file(
        coco(
            tmp_path,
            [
                detection(42, [10, 20, 30, 40], score=0.2),
                detection("a.jpg", [0, 0, 1, 1], score=0.9),
                detection(42, [1.5, 2, 3, 4], score=0.7),
                detection(42, [5, 5, 5, 5], score=0.2),
                detection(42, [5, 5, 5, 5], score=0.2),  # the same twice is twice a region
            ],
        )
    )
    assert list(found.images) == ["42", "a.jpg"]
    assert found.images["42"].boxes.tolist() == [
        [1.5, 2, 4.5, 6],
        [10, 20, 40, 60],
        [5, 5, 10, 10],
        [5, 5, 10, 10],
    ]
    assert found.images["42"].size is None


def test_cocos_annotations_are_named_by_their_images(tmp_path):
    found = read_box_file(
        coco(
            tmp_path,
            {
                "images": [
                    {"id": 7, "file_name": "val/a.jpg", "width": 640, "height": 480},
                    {"id": 8, "file_name": "b.jpg"},
                    {"id": 9, "file_name": "none.jpg"},
                ],
                "annotations": [detection(8, [1, 2, 3, 4]), detection(7, [0, 0, 640, 480])],
            },
        )
    )
    assert found.images["val/a.jpg"].size == (640, 480)
    assert found.images["b.jpg"].size is None
    assert found.images["b.jpg"].boxes.tolist() == [[1, 2, 4, 6]]
    assert found.images["none.jpg"].boxes.shape == (0, 4)


def test_tsv_boxes_are_corners_of_the_size_in_the_line(tmp_path):
    path = tmp_path / "b.tsv"
    path.write_text(
        tsv_line("42", [(10, 20, 30, 40), (0, 0, 200, 100)]) + tsv_line("7", [(1,) * 4])
    )
    found = read_box_file(path)
    assert found.images["42"].boxes.tolist() == [[10, 20, 30, 40], [0, 0, 200, 100]]
    assert found.images["42"].size == (200, 100)
    assert len(found.images["7"].boxes) == 1


def test_the_fingerprint_is_of_the_bytes(tmp_path):
    one = read_box_file(coco(tmp_path, [detection(1, [0, 0, 1, 1])]))
    same = read_box_file(coco(tmp_path, [detection(1, [0, 0, 1, 1])], "other.json"))
    other = read_box_file(coco(tmp_path, [detection(1, [0, 0, 1, 2])]))
    assert one.fingerprint == same.fingerprint != other.fingerprint


IMAGES = [{"id": 1, "file_name": "a.jpg"}]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("not json", "neither JSON nor named .tsv"),
        ("[" * 100_000, "neither JSON nor named .tsv"),
        ("3", "holds a int, wanted a list"),
        ("[]", "holds no box"),
        ({"annotations": []}, "has no list of images"),
        ({"images": IMAGES}, "has no list of annotations"),
        ({"images": IMAGES, "annotations": []}, "holds no box"),
        ({"images": IMAGES * 2, "annotations": []}, "images, entry 1: 'a.jpg' or its id is there"),
        ({"images": [{"id": 1}], "annotations": []}, "images, entry 0: has no file_name"),
        ({"images": [{"file_name": "a"}], "annotations": []}, "images, entry 0: has no id"),
        (
            {"images": [IMAGES[0] | {"width": 0, "height": 5}], "annotations": []},
            "images, entry 0: is 0 x 5 pixels",
        ),
        (
            {"images": IMAGES, "annotations": [detection(2, [0, 0, 1, 1])]},
            "entry 0: image_id 2 is not among the images",
        ),
        ([detection(1, [0, 0, 1, 1]), 5], "entry 1: wanted an image_id and a bbox"),
        ([{"image_id": 1}], "entry 0: wanted an image_id and a bbox"),
        ([{"bbox": [0, 0, 1, 1]}], "entry 0: wanted an image_id and a bbox"),
        ([detection(1, [0, 0, 1])], "entry 0: wanted an image_id and a bbox"),
        ([detection(1, [0, 0, 1, None])], "entry 0: wanted an image_id and a bbox"),
        ([detection([1], [0, 0, 1, 1])], "entry 0: wanted an image_id and a bbox"),
        ([detection(1, [0, 0, 10**400, 1])], "entry 0: wanted an image_id and a bbox"),
        ([detection(1, [0, 0, 1, 1], score="x")], "entry 0: wanted an image_id and a bbox"),
        ([detection(1, [0, 0, float("nan"), 1])], "entry 0: its box or score is not finite"),
        ([detection(1, [0, 0, 1, 1], score=float("inf"))], "its box or score is not finite"),
        ([detection(1, [9, 9, -3, 4])], "entry 0: is -3 x 4 pixels, wanted x, y, width, height"),
    ],
)
def test_json_that_holds_no_boxes_is_refused_by_entry(tmp_path, content, said):
    path = coco(tmp_path, content)
    with pytest.raises(FileFormatError) as caught:
        read_box_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


BOX = (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", "has no image in it"),
        ("a\tb\n", "line 1: has 2 tab-separated fields"),
        (tsv_line("a", [BOX], cell="AAAA"), "line 1: boxes are 3 bytes, wanted 16"),
        (tsv_line("a", [BOX], cell="!" * 24), "line 1: boxes"),
        (tsv_line("a", [BOX, BOX], count=3), "line 1: boxes are 32 bytes, wanted 48"),
        (tsv_line("a", [BOX]) + tsv_line("a", [BOX]), "line 2: image id 'a' was already given"),
        (tsv_line("a", [(1, 2, float("nan"), 4)]), "line 1: boxes are not all finite"),
        (tsv_line("a", [BOX], width=0), "line 1: image_w is '0'"),
        (tsv_line("a", [BOX]) + tsv_line("b", [BOX])[:-20], "line 2: has 5 tab"),
    ],
    ids=["empty", "fields", "cut", "signs", "count", "twice", "nan", "size", "truncated"],
)
def test_a_broken_tsv_is_refused_by_line(tmp_path, lines, said):
    path = tmp_path / "b.tsv"
    path.write_text(lines)
    with pytest.raises(FileFormatError, match=re.escape(said)) as caught:
        read_box_file(path)
    assert "\n" not in str(caught.value)


def test_no_file_is_said(tmp_path):
    with pytest.raises(InputError, match="no such file, wanted a file of boxes"):
        read_box_file(tmp_path / "nowhere.json")
