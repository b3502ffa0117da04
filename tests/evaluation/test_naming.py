"""Whether regions are called what people call them, worked by hand."""

import numpy as np

from crossgaze.evaluation.coverage import Annotated
from crossgaze.evaluation.naming import Naming
from crossgaze.vision.objects.words import Words

WORDS = Words(nouns=("dog", "man", "hat"), attributes=("brown", "old"))
LEFT, RIGHT, SMALL = [0, 0, 0.5, 1], [0.5, 0, 1, 1], [0.9, 0.9, 1, 1]


def image(boxes, members, texts):
    boxes = np.array(boxes, np.float32).reshape(-1, 4)
    kinds = (("other",),)
    around = boxes[[one[0] for one in members]]
    return Annotated(
        boxes, kinds * len(boxes), around, kinds * len(texts), tuple(members), tuple(texts), ()
    )


def test_by_hand():
    said = image(
        [LEFT, RIGHT, SMALL],
        [(0,), (0,), (1,), (2,)],
        ["a brown dog", "an old dog", "a man", "a hat"],
    )
    naming = Naming(WORDS)
    # The left box is right by "dog" and "old"; the right one is called a hat; nothing covers the
    # small one; nobody describes the man, so that only one box asks for an attribute.
    boxes = [[0, 0, 0.5, 0.9], [0.4, 0, 1, 1], LEFT]
    naming.add(said, boxes, np.array([1, 2, 0]), np.array([0, 0, 1]))
    naming.add(image(np.empty((0, 4)), [], []), [LEFT], np.array([0]), np.array([0]))
    assert naming.shares() == {
        "nouns": {"boxes": 2, "right": 50.0, "oftenest": "dog", "oftenest right": 50.0},
        "attributes": {"boxes": 1, "right": 100.0, "oftenest": "brown", "oftenest right": 100.0},
    }


def test_nothing_to_ask():
    assert Naming(WORDS).shares()["nouns"] == {
        "boxes": 0, "right": 0.0, "oftenest": "", "oftenest right": 0.0,
    }  # fmt: skip
