"""Boxes of a file for the photographs of a folder."""

import json
from pathlib import Path

import numpy as np
import pytest

from crossgaze.errors import InputError
from crossgaze.vision.photos import Photo, PhotoError
from crossgaze.vision.sources.box_files import BoxFile, ImageBoxes
from crossgaze.vision.sources.given import GivenBoxes, read_boxes

BOX = [[0, 0, 10, 10]]


def photo(width, height):
    return Photo(np.zeros((4, 4, 3), np.uint8), width, height)  # resized: the pixels say nothing


def given(images, names, most=100):
    """`images`: the file's name for an image -> its boxes, or (boxes, size)."""
    made = {}
    for name, content in images.items():
        boxes, size = content if isinstance(content, tuple) else (content, None)
        made[name] = ImageBoxes(np.array(boxes, np.float64).reshape(-1, 4), size)
    return GivenBoxes(BoxFile(Path("boxes.json"), made, "f"), names, most)


def test_pixels_become_shares_of_the_photographs_own_size(tmp_path):
    (tmp_path / "b.json").write_text(
        json.dumps([{"image_id": "a.jpg", "bbox": [100, 50, 200, 100], "score": 1}])
    )
    boxes = read_boxes(tmp_path / "b.json", ["a.jpg"])
    assert boxes(photo(400, 200), "a.jpg").tolist() == [[0.25, 0.25, 0.75, 0.75]]
    assert boxes(photo(1000, 1000), "a.jpg").tolist() == [
        pytest.approx([0.1, 0.05, 0.3, 0.15], abs=1e-6)
    ]


def test_a_size_in_the_file_is_what_its_pixels_are_of():
    """A smaller copy of the photograph has the same boxes, as shares."""
    boxes = given({"a.jpg": ([[100, 50, 300, 150]], (400, 200))}, ["a.jpg"])
    for size in ((400, 200), (200, 100), (401, 200)):
        boxes.require_fitting(photo(*size), "a.jpg")
        assert boxes(photo(*size), "a.jpg").tolist() == [[0.25, 0.25, 0.75, 0.75]]
    with pytest.raises(PhotoError, match=r"is 200 x 400 pixels upright.* are of 400 x 200"):
        boxes.require_fitting(photo(200, 400), "a.jpg")
    boxes.require_fitting(photo(9, 99), "unknown.jpg")


def test_boxes_are_cut_to_the_photograph_and_those_outside_are_left_out():
    boxes = given(
        {
            "a.jpg": [
                [-50, -50, 50, 50],
                [90, 40, 500, 500],
                [100, 0, 120, 50],  # outside
                [10, 10, 10, 30],  # a line
                [30, 30, 20, 40],  # ends before it begins
                [0, 0, 100, 50],
            ]
        },
        ["a.jpg"],
    )
    shares = [[0, 0, 0.5, 1], [0.9, 0.8, 1, 1], [0, 0, 1, 1]]
    np.testing.assert_allclose(boxes(photo(100, 50), "a.jpg"), shares, atol=1e-6)
    without, (said,) = boxes.unused(["a.jpg"], np.array([[100, 50]]))
    assert without == ()
    assert str(said) == "3 boxes outside their photograph or without an extent (a.jpg, ...)"


def test_photographs_without_a_box_are_said():
    names = ["a.jpg", "b.jpg", "c.jpg"]
    boxes = given({"a.jpg": BOX, "b.jpg": [[500, 500, 600, 600]]}, names)
    for name, count in zip(names, (1, 0, 0), strict=True):
        assert boxes(photo(100, 100), name).shape == (count, 4)
    without, (outside,) = boxes.unused(names, np.full((3, 2), 100))
    assert without == ("b.jpg", "c.jpg")
    assert outside.count == 1


def test_no_more_than_the_first_are_taken_and_the_rest_is_counted():
    many = [[n, 0, n + 1, 1] for n in range(120)]
    boxes = given({"a.jpg": many, "b.jpg": BOX}, ["a.jpg", "b.jpg"])
    assert boxes.regions == 100
    found = boxes(photo(200, 1), "a.jpg")
    np.testing.assert_allclose(found[:, 0], np.arange(100) / 200, atol=1e-6)
    _, (cut,) = boxes.unused(["a.jpg", "b.jpg"], np.array([[200, 1], [20, 20]]))
    assert str(cut) == "20 boxes past the first 100 of a photograph (a.jpg, ...)"
    assert given({"a.jpg": many[:37]}, ["a.jpg"]).regions == 37


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("a.jpg", "a.jpg"),
        ("set/a.jpg", "set/a.jpg"),
        ("a.jpg", "set/a.jpg"),
        ("train/a.jpg", "a.jpg"),
        ("a", "a.jpg"),
        ("a.jpg", "a.png"),
        ("a.v2", "a.v2.jpg"),
        ("391895", "COCO_val2014_000000391895.jpg"),
        ("391895", "000000391895.jpg"),
        ("42", "42.jpg"),
        ("0042", "42.jpg"),
        ("COCO_val2014_000000000042.jpg", "42.jpg"),
    ],
)
def test_what_a_photograph_may_be_called(image, name):
    assert len(given({image: BOX, "other": BOX}, [name, "none.jpg"])(photo(9, 9), name)) == 1


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("12", "1000_ab12.jpg"),  # the digits that end a Flickr name are no number of COCO's
        ("12", "photo_12.jpg"),
        ("b_12.jpg", "a_12.jpg"),
        ("A.jpg", "a.jpg"),
        ("a.jpg", "aa.jpg"),
        ("", "a.jpg"),
    ],
)
def test_what_it_may_not(image, name):
    boxes = given({image: BOX, "yes.jpg": BOX}, [name, "yes.jpg"])
    assert len(boxes(photo(9, 9), name)) == 0
    assert boxes.strangers[0].count == 1
    assert boxes.strangers[0].examples == (image,)


def test_the_surer_name_wins():
    one = [[0, 0, 1, 1]]
    names = ["a.jpg", "a.png", "set/a.jpg"]
    boxes = given({"a.jpg": BOX, "set/a.jpg": one, "a": BOX * 2}, names)
    assert [len(boxes(photo(10, 10), name)) for name in names] == [1, 2, 1]
    assert boxes(photo(10, 10), "set/a.jpg")[0, 2] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("images", "names"),
    [
        (["x.jpg"], ["a/x.jpg", "b/x.jpg"]),
        (["a/x.jpg", "b/x.jpg"], ["x.jpg"]),
        (["7"], ["7.jpg", "7.png"]),
        (["42"], ["COCO_val2014_000000000042.jpg", "COCO_train2014_000000000042.jpg"]),
    ],
)
def test_names_that_could_be_either_are_refused(images, names):
    with pytest.raises(InputError, match=r"boxes.json: .* could be .*; wanted the photographs'"):
        given(dict.fromkeys(images, BOX), names)


def test_a_file_for_other_photographs_is_refused():
    with pytest.raises(InputError, match=r"for none of the 2 photographs, such as 'a.jpg'; .*'x'"):
        given({"x": BOX, "y": BOX}, ["a.jpg", "b.jpg"])


def test_scores_stay_with_their_boxes(tmp_path):
    """The surest first; one outside the photograph takes its score with it."""
    found = [((10, 10, 10, 10), 0.3), ((500, 0, 10, 10), 0.8), ((0, 0, 50, 50), 0.9)]
    entries = [{"image_id": "a.jpg", "bbox": box, "score": score} for box, score in found]
    entries.append({"image_id": "b.jpg", "bbox": [0, 0, 5, 5]})
    (tmp_path / "b.json").write_text(json.dumps(entries))
    boxes = read_boxes(tmp_path / "b.json", ["a.jpg", "b.jpg", "c.jpg"])
    assert boxes.scored
    sure = boxes.confidence(photo(100, 100), "a.jpg")
    np.testing.assert_allclose(sure, [0.9, 0.3])
    np.testing.assert_allclose(boxes(photo(100, 100), "a.jpg")[:, 2], [0.5, 0.2])
    assert boxes.confidence(photo(100, 100), "b.jpg").tolist() == [0]
    assert boxes.confidence(photo(100, 100), "c.jpg").tolist() == []
    assert not given({"a.jpg": BOX}, ["a.jpg"]).scored
