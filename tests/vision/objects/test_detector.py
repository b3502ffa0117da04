"""The detector that ships, on good photographs and bad ones."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from crossgaze.errors import FileFormatError, InputError
from crossgaze.evaluation.coverage import box_iou
from crossgaze.vision.backbones.base import read_weights
from crossgaze.vision.objects.detector import ZOO, ObjectDetector, load_detector
from crossgaze.vision.objects.selection import choose
from crossgaze.vision.objects.words import Words


@pytest.fixture(scope="module")
def detector():
    return load_detector()


def require_sound(regions, detector, most=36):
    """Assert what holds for the regions of any photograph."""
    count = len(regions)
    assert 1 <= count <= most
    for name, shape in (
        ("boxes", (count, 4)),
        ("confidence", (count,)),
        ("nouns", (count,)),
        ("noun_probability", (count,)),
        ("attributes", (count,)),
        ("attribute_probability", (count,)),
        ("features", (count, detector.width)),
    ):
        array = getattr(regions, name)
        assert array.shape == shape
        assert np.isfinite(array).all()
    assert regions.boxes.min() >= 0
    assert regions.boxes.max() <= 1
    assert (regions.boxes[:, 2:] > regions.boxes[:, :2]).all()
    assert (np.diff(regions.confidence) <= 1e-6).all()
    for part in (regions.confidence, regions.noun_probability, regions.attribute_probability):
        assert part.min() >= 0
        assert part.max() <= 1
    assert 0 <= regions.nouns.min() <= regions.nouns.max() < len(detector.nouns)
    assert 0 <= regions.attributes.min() <= regions.attributes.max() < len(detector.attributes)


def noise(height, width):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (1, height, width, 3), generator=generator, dtype=torch.uint8)


@pytest.mark.parametrize(
    "pixels",
    [
        noise(1, 1),
        noise(5, 7),  # smaller than an anchor
        noise(3, 2000),  # extreme proportions
        noise(1500, 2),
        noise(320, 320),
        torch.zeros(1, 320, 320, 3, dtype=torch.uint8),
        torch.full((1, 320, 320, 3), 255, dtype=torch.uint8),
    ],
    ids=["1x1", "5x7", "3x2000", "1500x2", "noise", "black", "white"],
)
def test_any_photograph_has_between_1_and_36_regions_inside_it(detector, pixels):
    (regions,) = detector(pixels)
    require_sound(regions, detector)
    (same,) = detector.pool(pixels, [regions.boxes])
    np.testing.assert_allclose(same, regions.features, atol=1e-2)  # each feature is of its box


@pytest.mark.parametrize("pixels", [noise(5, 7), noise(320, 320)], ids=["5x7", "noise"])
def test_the_whole_image_is_one_more_region_the_last(detector, pixels):
    (regions,), (alone,) = detector(pixels, whole=True), detector(pixels)
    require_sound(regions, detector, most=37)
    assert len(regions) == len(alone) + 1
    assert regions.boxes[-1].tolist() == [0, 0, 1, 1]
    assert regions.confidence[-1] == 0


def test_the_best_is_kept_where_nothing_would_do(detector, monkeypatch):
    def nothing(*given):
        number, gain, real = choose(*given)
        return number, gain, torch.zeros_like(real)

    pixels = noise(320, 320)
    (before,) = detector(pixels)
    monkeypatch.setattr("crossgaze.vision.objects.detector.choose", nothing)
    (regions,) = detector(pixels)
    assert regions.boxes.tolist() == before.boxes[:1].tolist()


def test_an_astronaut(detector):
    """scikit-image ships a photograph of a woman in a space suit, her face at (175-275, 60-180)."""
    data = pytest.importorskip("skimage.data", reason="needs scikit-image")
    photo = torch.from_numpy(data.astronaut()).unsqueeze(0)  # (1, 512, 512, 3)
    (regions,) = detector(photo)
    require_sound(regions, detector)
    assert len(regions) == 36
    person = [0.05, 0.0, 0.9, 1.0]
    best = box_iou(regions.boxes, [person])[:, 0]
    assert best.max() > 0.6
    assert detector.nouns[regions.nouns[best.argmax()]] in {
        "person", "woman", "man", "girl", "boy", "child", "lady", "baby",
    }  # fmt: skip


def test_a_batch_is_its_photographs_one_by_one(detector):
    # Not one that is its own mirror image, such as a black one: there pairs of boxes tie.
    pixels = torch.cat([noise(320, 320), noise(320, 320).flip(1) // 2])
    for row, together in enumerate(detector(pixels)):
        (alone,) = detector(pixels[row : row + 1])
        np.testing.assert_allclose(together.boxes, alone.boxes, atol=1e-4)
        np.testing.assert_allclose(together.features, alone.features, atol=1e-3)


def test_pooling_a_region_gives_its_feature(detector):
    pixels = noise(320, 320)
    (regions,) = detector(pixels)
    (found,) = detector.pool(pixels, [regions.boxes])
    np.testing.assert_allclose(found, regions.features, atol=1e-4)


def test_given_boxes(detector):
    pixels = noise(320, 320).repeat(2, 1, 1, 1)
    boxes = [np.array([[0, 0, 1, 1], [-3, 0.5, 0.5, 9]]), np.empty((0, 4))]
    found = detector.pool(pixels, boxes)
    assert [array.shape for array in found] == [(2, detector.width), (0, detector.width)]
    assert np.isfinite(found[0]).all()
    with pytest.raises(InputError, match="photograph 0"):
        detector.pool(pixels[:1], [np.zeros((2, 5))])
    with pytest.raises(InputError, match="wanted 2"):
        detector.pool(pixels, boxes[:1])


@pytest.mark.parametrize(
    "pixels",
    [
        torch.zeros(320, 320, 3, dtype=torch.uint8),
        torch.zeros(1, 320, 320, 3),
        torch.zeros(1, 3, 320, 320, dtype=torch.uint8),
        torch.zeros(1, 0, 320, 3, dtype=torch.uint8),
    ],
)
def test_what_is_no_photograph(detector, pixels):
    with pytest.raises(InputError, match="pixels"):
        detector(pixels)


def test_what_ships_is_small_and_half_precision(detector):
    file = ZOO / "objects" / "weights.safetensors"
    assert file.stat().st_size < 8_000_000
    assert 1000 <= detector.width <= 2100
    assert not any(p.requires_grad for p in detector.parameters())
    assert len(detector.nouns) > 300
    assert len(detector.attributes) > 100
    assert {tensor.dtype for tensor in read_weights(file).values()} == {torch.float16}
    card = (ZOO / "objects" / "README.md").read_text("utf-8")
    assert "non-commercial research" in card


def test_the_card_prints_what_was_measured():
    results = Path(__file__).parents[3] / "results" / "coverage-flickr8k.json"
    if not results.is_file():
        pytest.skip("needs results/")
    found = json.loads(results.read_text("utf-8"))["rows"]["objects"]
    boxes, phrases = found["boxes"]["all"], found["phrases"]["all"]
    figures = (boxes["IoU 0.5"], phrases["IoU 0.5"], boxes["IoU 0.7"], phrases["IoU 0.7"])
    row = "| **these regions** | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |"
    assert row in (ZOO / "objects" / "README.md").read_text("utf-8")


def test_folders_that_hold_no_model(tmp_path):
    with pytest.raises(InputError, match="wanted 'objects' or a folder"):
        load_detector(tmp_path)
    config = json.loads((ZOO / "objects" / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(FileFormatError, match="does not describe"):
        load_detector(tmp_path)
    for change in ({"backbone": "owner/name"}, {"backbone": ["x"]}, {"version": 9}):
        (tmp_path / "config.json").write_text(json.dumps(config | change))
        with pytest.raises(FileFormatError, match=r"config.json: does not describe"):
            load_detector(tmp_path)
    for key, value in (("width", 1 << 30), ("sides", [[0.1]]), ("ratios", [0]), ("hidden", 0)):
        odd = config | {"network": config["network"] | {key: value}}
        (tmp_path / "config.json").write_text(json.dumps(odd))
        with pytest.raises(
            InputError, match=rf"config.json: .*{'sides' if key == 'ratios' else key}"
        ):
            load_detector(tmp_path)
    config["network"]["width"] += 8
    (tmp_path / "config.json").write_text(json.dumps(config))
    shutil.copy(ZOO / "objects" / "weights.safetensors", tmp_path)
    with pytest.raises(FileFormatError, match="does not fit"):
        load_detector(tmp_path)


def test_words_must_be_as_many_as_the_heads(detector):
    with pytest.raises(InputError, match="nouns"):
        ObjectDetector(detector.taps.backbone, detector.network, Words(("dog",), ()))


def test_with_the_mirror_image_a_photograph_and_its_mirror_image_have_the_same_regions(detector):
    both = ObjectDetector(
        detector.taps.backbone,
        detector.network,
        detector.words,
        replace(detector.selection, mirror=True),
    )
    skimage = pytest.importorskip("skimage.data", reason="scikit-image ships the photograph")
    pixels = torch.from_numpy(skimage.astronaut()).unsqueeze(0)[:, :320, :320]
    (one,), (other,) = both(pixels), both(pixels.flip(2))
    count = min(len(one), 10)
    turned = other.boxes[:, [2, 1, 0, 3]] * [-1, 1, -1, 1] + [1, 0, 1, 0]
    np.testing.assert_allclose(one.boxes[:count], turned[:count], atol=1e-3)
    settings = replace(detector.selection, mirror=False)
    (alone,) = ObjectDetector(detector.taps.backbone, detector.network, detector.words, settings)(
        pixels
    )
    assert np.abs(alone.boxes[:count] - one.boxes[:count]).max() > 1e-3  # it changes something


def test_a_choice_or_a_network_that_cannot_be(detector):
    with pytest.raises(InputError, match=r"count: got 0"):
        replace(detector.selection, count=0)
    with pytest.raises(InputError, match=r"weights: got \(0, 0, 0\)"):
        replace(detector.selection, weights=(0, 0, 0))
    with pytest.raises(InputError, match=r"size: got 100"):
        replace(detector.network.config, size=100)
    pixels = torch.zeros(1, 320, 320, 3, dtype=torch.uint8)
    with pytest.raises(InputError, match="wanted x1 < x2"):
        detector.pool(pixels, [torch.tensor([[0.9, 0.9, 0.1, 0.1]])])
