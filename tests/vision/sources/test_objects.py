"""Regions of the region model, and its features for boxes from elsewhere."""

import numpy as np
import pytest
import torch

from crossgaze.vision.objects.detector import load_detector
from crossgaze.vision.objects.selection import SelectionConfig
from crossgaze.vision.photos import Photo
from crossgaze.vision.sources.objects import BoxSource, ObjectSource

RNG = np.random.default_rng(5)
PHOTOS = [
    Photo(RNG.integers(0, 256, (*shape, 3), np.uint8), 640, 480)
    for shape in ((320, 320), (64, 320), (320, 320), (320, 320))
]
NAMES = ["a", "b", "c", "d"]
BOXES = {
    "a": [[0.1, 0.2, 0.5, 0.9], [0, 0, 1, 1], [0.4, 0.4, 0.6, 0.6]],
    "b": [[0.5, 0, 1, 0.5]],
    "c": [],
    "d": [[0.2, 0.2, 0.3, 0.3], [0.2, 0.2, 0.3, 0.3]],  # twice is two regions
}


@pytest.fixture(scope="module")
def detector():
    return load_detector()


def never():
    """Nobody gives up."""


def boxes_of(photo, name):
    return np.array(BOXES[name], np.float32).reshape(-1, 4)


def pixels(photo):
    return torch.from_numpy(photo.pixels).unsqueeze(0)


def test_given_boxes_have_the_features_of_pooling_them_alone(detector):
    source = BoxSource(detector, boxes_of, 3, {"regions": "test"}, batch=2)
    found = source(PHOTOS, NAMES, never)
    assert (source.regions, source.width, source.fields) == (3, detector.width, ())
    assert [len(one.boxes) for one in found] == [3, 1, 1, 2]
    for photo, name, one in zip(PHOTOS, NAMES, found, strict=True):
        expected = BOXES[name] or [[0, 0, 1, 1]]  # no box: the whole image
        np.testing.assert_array_equal(one.boxes, np.array(expected, np.float32))
        for box, feature in zip(expected, one.features, strict=True):
            (alone,) = detector.pool(pixels(photo), [np.array([box])])
            np.testing.assert_allclose(feature, alone[0], atol=1e-3)
    # A test that could not fail if features were all the same.
    assert np.abs(found[0].features[0] - found[0].features[2]).max() > 0.1


def test_the_whole_image_comes_last_and_once(detector):
    source = BoxSource(detector, boxes_of, 3, {}, batch=4, whole=True)
    assert source.regions == 4
    found = source(PHOTOS, NAMES, never)
    assert [len(one.boxes) for one in found] == [4, 2, 1, 3]
    for photo, one in zip(PHOTOS, found, strict=True):
        assert one.boxes[-1].tolist() == [0, 0, 1, 1]
        (alone,) = detector.pool(pixels(photo), [np.array([[0, 0, 1, 1.0]])])
        np.testing.assert_allclose(one.features[-1], alone[0], atol=1e-3)


def test_objects_are_what_the_detector_finds_photograph_by_photograph(detector):
    found = ObjectSource(detector, batch=2)(PHOTOS[:3], NAMES[:3], never)
    for photo, one in zip(PHOTOS[:3], found, strict=True):
        (alone,) = detector(pixels(photo))
        np.testing.assert_allclose(one.boxes, alone.boxes, atol=1e-4)
        np.testing.assert_allclose(one.features, alone.features, atol=1e-2)
        expected = {
            "confidence": alone.confidence,
            "classes": alone.nouns,
            "class_confidence": alone.noun_probability,
            "attributes": alone.attributes,
            "attribute_confidence": alone.attribute_probability,
        }
        assert set(one.fields) == set(ObjectSource.fields) == set(expected)
        for name, values in expected.items():
            np.testing.assert_allclose(one.fields[name], values, atol=1e-3)


def test_objects_and_the_whole_image(detector):
    photo = PHOTOS[0]
    source = ObjectSource(detector, batch=2, whole=True)
    (found,) = source([photo], ["a"], never)
    (alone,) = detector(pixels(photo))
    assert source.regions == 37
    assert len(found.boxes) == len(alone) + 1
    np.testing.assert_allclose(found.boxes[:-1], alone.boxes, atol=1e-5)
    np.testing.assert_allclose(found.features[:-1], alone.features, atol=1e-3)
    assert found.boxes[-1].tolist() == [0, 0, 1, 1]
    assert found.fields["confidence"][-1] == 0
    (whole,) = detector.pool(pixels(photo), [np.array([[0, 0, 1, 1.0]])])
    np.testing.assert_allclose(found.features[-1], whole[0], atol=1e-3)


def test_giving_up_stops_between_batches(detector):
    class GivenUpError(Exception):
        pass

    calls = []

    def give_up():
        calls.append(1)
        if len(calls) == 2:
            raise GivenUpError

    for source in (ObjectSource(detector, 1), BoxSource(detector, boxes_of, 3, {}, 1)):
        calls.clear()
        with pytest.raises(GivenUpError):
            source(PHOTOS, NAMES, give_up)
        assert len(calls) == 2


def test_no_photograph_gives_no_regions(detector):
    assert ObjectSource(detector, 2)([], [], never) == []
    assert BoxSource(detector, boxes_of, 3, {}, 2)([], [], never) == []


def test_another_model_or_another_choice_has_another_stamp():
    one, same, chosen, trained = (load_detector() for _ in range(4))
    chosen.selection = SelectionConfig(count=12)
    with torch.no_grad():
        next(trained.network.parameters()).flatten()[0] += 1
    stamps = [ObjectSource(model, 1).made_by["detector"] for model in (one, same, chosen, trained)]
    assert stamps[0] == stamps[1]
    assert len(set(stamps)) == 3
    assert ObjectSource(one, 1).made_by != ObjectSource(one, 1, whole=True).made_by
