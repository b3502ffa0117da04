"""Coverage, on a case worked out by hand."""

import numpy as np
import pytest

from crossgaze.data.entities.annotations import EntityImage, parse_sentence
from crossgaze.errors import InputError
from crossgaze.evaluation.coverage import Coverage, annotated, box_iou, measure

# A photograph of 100 x 200 pixels. Entity 1 has two boxes side by side, one of which is also all
# that entity 2 has; entity 3 is a scene, 4 has no box, 0 is not visual.
BOXES = {
    "1": np.array([[0, 0, 20, 40], [20, 0, 40, 40]], np.float32),
    "2": np.array([[20, 0, 40, 40]], np.float32),
    "5": np.array([[50, 100, 100, 200]], np.float32),
}
LINES = (
    "[/EN#1/people Two men] and [/EN#2/people one man] on [/EN#3/scene a beach] .",
    "[/EN#5/animals A dog] by [/EN#1/people men] in [/EN#0/notvisual front] of [/EN#4/other it] .",
)


def image():
    sentences = tuple(parse_sentence(line) for line in LINES)
    return EntityImage("1", 100, 200, sentences, BOXES, frozenset("3"), frozenset("4"))


def test_what_an_image_asks_for():
    found = annotated(image())
    assert found.boxes.tolist() == [
        pytest.approx(box) for box in ([0, 0, 0.2, 0.2], [0.2, 0, 0.4, 0.2], [0.5, 0.5, 1, 1])
    ]
    assert found.box_types == (("people",), ("people",), ("animals",))
    assert found.texts == ("Two men", "one man", "A dog", "men")
    assert found.members == ((0, 1), (1,), (2,), (0, 1))
    np.testing.assert_allclose(found.phrases[0], [0, 0, 0.4, 0.2])
    assert found.scenes == ("a beach",)


def test_a_case_by_hand():
    """One region is the left man, one the dog with IoU 0.64; none is the right man or both."""
    regions = [[0, 0, 0.2, 0.2], [0.5, 0.5, 0.9, 0.9]]
    found = measure([(annotated(image()), regions)])
    assert found.share("boxes", 0.5) == pytest.approx(100 * 2 / 3)
    assert found.share("boxes", 0.7) == pytest.approx(100 / 3)
    # The hull of both men has IoU 0.5 with the left one: covered, both times it is named.
    assert found.share("phrases", 0.5) == pytest.approx(100 * 3 / 4)
    assert found.share("phrases", 0.7) == 0
    shares = found.shares()
    assert shares["images"] == 1
    half = {"covered at 0.5": 1, "IoU 0.5": 50.0, "covered at 0.7": 1, "IoU 0.7": 50.0}
    assert shares["boxes"]["by type"]["people"] == {"count": 2, **half}
    assert shares["boxes"]["by size"]["01-5 %"]["count"] == 2
    assert shares["boxes"]["by size"]["20-100 %"]["count"] == 1


def test_perfect_and_hopeless():
    wanted = annotated(image())
    everything = np.concatenate([wanted.boxes, wanted.phrases])
    assert measure([(wanted, everything)]).share("phrases", 0.7) == 100
    assert measure([(wanted, [[0.9, 0, 1, 0.1]])]).share("boxes", 0.5) == 0


def test_an_image_without_boxes_counts_as_an_image_only():
    bare = annotated(EntityImage("1", 9, 9, (), {}, frozenset(), frozenset()))
    found = measure([(bare, [[0, 0, 1, 1]])])
    assert (found.images, found.share("boxes", 0.5)) == (1, 0.0)


@pytest.mark.parametrize(
    ("regions", "message"),
    [
        (np.empty((0, 4)), "wanted"),
        ([[0, 0, 1]], "wanted"),
        ([[0, 0, 1, 1.2]], "0 to 1"),
        ([[0, 0, np.nan, 1]], "finite"),
    ],
)
def test_regions_that_are_none(regions, message):
    with pytest.raises(InputError, match=message):
        Coverage().add(annotated(image()), regions)


def test_overlap_by_hand():
    np.testing.assert_allclose(
        box_iou([[0, 0, 2, 2]], [[1, 1, 3, 3], [0, 0, 1, 2]]), [[1 / 7, 0.5]]
    )
