"""Photographs to a store by every source of regions, bad photographs and bad boxes included."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from command_line import run
from crossgaze.data.regions.merge import merge_stores
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.verify import verify
from crossgaze.errors import InputError
from crossgaze.vision.backbones import load_backbone
from crossgaze.vision.extract import ExtractConfig, Shard, extract
from crossgaze.vision.objects.detector import load_detector
from crossgaze.vision.objects.selection import choose
from crossgaze.vision.photos import read_photo
from photo_files import smooth

WORDS = ("confidence", "classes", "class_confidence", "attributes", "attribute_confidence")


@pytest.fixture(scope="module")
def detector():
    return load_detector()


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for name, shape in (("a.png", (90, 120)), ("b.png", (200, 100)), ("c.png", (64, 64))):
        Image.fromarray(smooth(*shape)).save(folder / name)
    return folder


@pytest.fixture
def boxes(tmp_path):
    """Two boxes for a.png (120 x 90), none for b.png, one outside c.png; one image more."""
    path = tmp_path / "boxes.json"
    found = [
        {"image_id": "a.png", "bbox": [30, 45, 60, 45], "score": 0.3},
        {"image_id": "a.png", "bbox": [0, 0, 12, 9], "score": 0.8},
        {"image_id": "c.png", "bbox": [64, 64, 10, 10], "score": 0.5},
        {"image_id": "zebra.png", "bbox": [0, 0, 10, 10], "score": 0.5},
    ]
    path.write_text(json.dumps(found))
    return path


def require_sound(store, most=36):
    """Assert between 1 and `most` finite regions, inside each photograph."""
    assert verify(store.folder).sound
    for row, count in enumerate(store.counts.tolist()):
        assert 1 <= count <= most
        boxes, (width, height) = store.boxes[row, :count], store.sizes[row].tolist()
        assert np.isfinite(store.features[row]).all()
        assert np.isfinite(boxes).all()
        assert (boxes[:, 2:] > boxes[:, :2]).all()
        assert boxes.min() >= 0
        assert (boxes[:, 2:] <= [width, height]).all()
        assert np.abs(store.features[row, :count]).sum(axis=1).min() > 0
        assert not np.asarray(store.features[row, count:]).any()


def test_objects_are_written_with_their_words_and_read_back(tmp_path, photos, detector):
    report = extract(photos, tmp_path / "s", ExtractConfig(dtype="float32", whole=False))
    store = RegionStore(tmp_path / "s")
    assert (report.extracted, report.without_boxes) == (3, ())
    assert store.features.shape == (3, 36, detector.width)
    require_sound(store)
    assert tuple(store.head.labels["classes"]) == detector.nouns
    assert tuple(store.head.labels["attributes"]) == detector.attributes
    read = store.read(["b.png", "a.png"])
    assert set(read.other) == {*WORDS, "stamps"}
    for row, name in enumerate(["b.png", "a.png"]):
        photo = read_photo(photos / name, detector.size)
        (alone,) = detector(torch.from_numpy(photo.pixels).unsqueeze(0))
        count = int(read.counts[row])
        assert count == len(alone)
        size = np.array([photo.width, photo.height] * 2)
        np.testing.assert_allclose(read.boxes[row, :count], alone.boxes * size, atol=0.02)
        np.testing.assert_allclose(read.features[row, :count], alone.features, atol=1e-2)
        wanted = (alone.confidence, alone.nouns, alone.noun_probability)
        wanted += (alone.attributes, alone.attribute_probability)
        for field, values in zip(WORDS, wanted, strict=True):
            np.testing.assert_allclose(read.other[field][row, :count], values, atol=1e-3)
            assert not read.other[field][row, count:].any()


@pytest.mark.parametrize("whole", [False, True])
def test_fewer_regions_than_there_is_room_for(tmp_path, photos, monkeypatch, whole):
    def three(*given):
        number, gain, real = choose(*given)
        return number, gain, real & (torch.arange(real.shape[1]) < 3)

    monkeypatch.setattr("crossgaze.vision.objects.detector.choose", three)
    extract(photos, tmp_path / "s", ExtractConfig(whole=whole))
    store = RegionStore(tmp_path / "s")
    assert store.counts.tolist() == [3 + whole] * 3
    require_sound(store, most=4)
    assert store.head.regions == 36 + whole
    for field in WORDS:
        assert store.field(field)[:, :3].any()
        assert not store.field(field)[:, 3 + whole :].any()
    if whole:
        assert store.boxes[1, 3].tolist() == [0, 0, 100, 200]


def test_a_region_model_with_another_number_of_regions(tmp_path, photos):
    other = load_detector()
    other.selection = replace(other.selection, count=50)
    other.save(tmp_path / "model")
    extract(photos, tmp_path / "s", ExtractConfig(detector=str(tmp_path / "model")))
    store = RegionStore(tmp_path / "s")
    assert store.head.regions == 51
    require_sound(store, most=51)
    assert store.counts.max() > 36


def test_the_whole_image_is_there_by_default_where_regions_are_objects(boxes):
    assert ExtractConfig().with_whole
    assert not ExtractConfig(whole=False).with_whole
    assert not ExtractConfig(boxes=boxes).with_whole
    assert not ExtractConfig(regions="grid").with_whole
    assert ExtractConfig(regions="grid", whole=True).with_whole


@pytest.mark.parametrize("kind", ["objects", "grid", "selective-search"])
def test_the_whole_image_is_one_more_region(capsys, tmp_path, photos, kind):
    if kind == "selective-search":
        pytest.importorskip("cv2.ximgproc", reason="needs opencv-contrib-python-headless")
    words = ["extract", photos, tmp_path / "s", "--regions", kind, "--whole", "--json"]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    store = RegionStore(tmp_path / "s")
    assert store.head.regions == 37
    require_sound(store, most=37)
    for row, count in enumerate(store.counts.tolist()):
        assert count >= 2
        assert store.boxes[row, count - 1].tolist() == [0, 0, *store.sizes[row]]
    assert json.loads(out)["store"]["made_by"]["whole"] is True
    code, _, err = run(capsys, *words[:-2], "--no-whole")
    assert code == 2
    assert "made with whole = True, now it is False" in err


BAD = {
    "tiny.png": np.random.default_rng(0).integers(0, 256, (3, 5, 3), np.uint8),
    "black.png": np.zeros((200, 300, 3), np.uint8),
    "wide.png": np.random.default_rng(1).integers(0, 256, (10, 4000, 3), np.uint8),
    "high.jpg": np.random.default_rng(2).integers(0, 256, (4000, 10, 3), np.uint8),
    "dot.png": np.full((1, 1, 3), 255, np.uint8),
}


@pytest.mark.parametrize("kind", ["objects", "grid", "selective-search"])
def test_bad_photographs_have_between_1_and_37_regions_inside_them(capsys, tmp_path, kind):
    if kind == "selective-search":
        pytest.importorskip("cv2.ximgproc", reason="needs opencv-contrib-python-headless")
    folder = tmp_path / "p"
    folder.mkdir()
    for name, pixels in BAD.items():
        Image.fromarray(pixels).save(folder / name)
    code, out, err = run(
        capsys, "extract", folder, tmp_path / "s", "--regions", kind, "batch=5", "--json"
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["report"]["extracted"] == 5
    store = RegionStore(tmp_path / "s")
    require_sound(store, most=37)
    sizes = dict(zip(store.ids, store.sizes.tolist(), strict=True))
    assert (sizes["tiny.png"], sizes["wide.png"]) == ([5, 3], [4000, 10])


def test_a_broken_photograph_in_the_middle_of_a_batch(tmp_path, photos):
    whole = (photos / "b.png").read_bytes()
    extract(photos, tmp_path / "before", ExtractConfig(batch=3))
    (photos / "b.png").write_bytes(whole[: len(whole) // 2])
    report = extract(photos, tmp_path / "s", ExtractConfig(batch=3))
    ((name, reason),) = report.unreadable
    assert (name, report.extracted) == ("b.png", 2)
    assert "PNG" in reason
    before, store = RegionStore(tmp_path / "before"), RegionStore(tmp_path / "s")
    assert store.ids == ("a.png", "c.png")
    np.testing.assert_allclose(store.boxes, before.boxes[[0, 2]], atol=0.05)
    np.testing.assert_allclose(store.features, before.features[[0, 2]], atol=0.02)
    (photos / "b.png").write_bytes(whole)  # mended, the same command takes it
    assert extract(photos, tmp_path / "s", ExtractConfig(batch=3)).extracted == 1


def test_given_boxes_from_end_to_end(capsys, tmp_path, photos, boxes, detector):
    code, out, _ = run(capsys, "extract", photos, tmp_path / "s", "--boxes", boxes)
    assert code == 0
    assert "2 photographs have no box in" in out
    assert "1 images of" in out
    assert "that are no photograph (zebra.png)" in out
    assert "1 boxes outside their photograph or without an extent (c.png)" in out
    store = RegionStore(tmp_path / "s")
    require_sound(store, most=2)
    assert store.counts.tolist() == [2, 1, 1]
    np.testing.assert_allclose(store.boxes[0], [[0, 0, 12, 9], [30, 45, 90, 90]], atol=1e-3)
    np.testing.assert_allclose(store.field("confidence"), [[0.8, 0.3], [0, 0], [0, 0]])
    assert store.boxes[1, 0].tolist() == [0, 0, 100, 200]
    assert store.boxes[2, 0].tolist() == [0, 0, 64, 64]
    pixels = torch.from_numpy(read_photo(photos / "a.png", detector.size).pixels).unsqueeze(0)
    shares = np.array([[0, 0, 0.1, 0.1], [0.25, 0.5, 0.75, 1]])
    (features,) = detector.pool(pixels, [shares])
    np.testing.assert_allclose(store.features[0], features, atol=2e-2, rtol=2e-3)
    code, out, _ = run(capsys, "extract", photos, tmp_path / "s", "--boxes", boxes, "--json")
    report = json.loads(out)["report"]  # nothing was left to do, and it says the same
    assert (report["already"], report["without_boxes"]) == (3, ["b.png", "c.png"])


def test_boxes_of_a_photograph_of_another_shape_are_not_taken(tmp_path, photos):
    content = {
        "images": [
            {"id": 1, "file_name": "a.png", "width": 240, "height": 180},  # twice as large
            {"id": 2, "file_name": "b.png", "width": 200, "height": 100},  # lying
        ],
        "annotations": [
            {"image_id": 1, "bbox": [60, 90, 120, 90]},
            {"image_id": 2, "bbox": [0, 0, 50, 50]},
        ],
    }
    (tmp_path / "b.json").write_text(json.dumps(content))
    config = ExtractConfig(boxes=tmp_path / "b.json")
    report = extract(photos, tmp_path / "s", config)
    ((name, reason),) = report.unreadable
    assert name == "b.png"
    assert reason == "is 100 x 200 pixels upright, its boxes in b.json are of 200 x 100"
    store = RegionStore(tmp_path / "s")
    assert store.ids == ("a.png", "c.png")
    assert store.boxes[0].tolist() == [[30, 45, 90, 90]]


def test_shards_with_given_boxes_merge_to_the_whole(tmp_path, photos, boxes):
    config = ExtractConfig(boxes=boxes)
    whole = extract(photos, tmp_path / "whole", config)
    parts = [tmp_path / f"{number}" for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        extract(photos, part, config, shard=Shard(number, 2))
    merged = merge_stores(parts, tmp_path / "merged")
    np.testing.assert_array_equal(merged.boxes, RegionStore(tmp_path / "whole").boxes)
    saved = json.loads((tmp_path / "merged" / "report.json").read_text())
    assert sorted(saved["without_boxes"]) == list(whole.without_boxes)


def test_a_store_of_other_regions_is_not_continued(capsys, tmp_path, photos, boxes):
    extract(photos, tmp_path / "s")
    for words, said in (
        (["--regions", "grid"], "made with regions = 'objects', now it is 'grid'"),
        (["--boxes", boxes], "made with regions = 'objects', now it is 'given boxes'"),
        (["--no-whole"], "made with whole = True, now it is False"),
    ):
        code, _, err = run(capsys, "extract", photos, tmp_path / "s", *words)
        assert code == 2
        assert said in err
        assert err.count("\n") == 1
    other = load_detector()
    with torch.no_grad():
        next(other.network.parameters()).flatten()[0] += 1
    other.save(tmp_path / "other")
    words = ["--detector", tmp_path / "other"]
    code, _, err = run(capsys, "extract", photos, tmp_path / "s", *words)
    assert code == 2
    assert "made with detector = '" in err
    extract(photos, tmp_path / "t", ExtractConfig(boxes=boxes))
    boxes.write_text(boxes.read_text().replace("0.3", "0.4"))
    with pytest.raises(InputError, match=r"made with boxes = '\w+', now it is '\w+'"):
        extract(photos, tmp_path / "t", ExtractConfig(boxes=boxes))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"regions": "circles"}, "regions: got 'circles', wanted objects or grid or selective"),
        ({"grid": 7}, "grid: got 7, which has no effect on regions = 'objects'; wanted regions ="),
        ({"size": 64}, "size: got 64, which has no effect"),
        ({"fit": "keep"}, "fit: got 'keep', which has no effect"),
        ({"backbone": "vgg19"}, "backbone: got 'vgg19', which has no effect"),
        ({"regions": "selective-search", "grid": 7}, "no effect on regions = 'selective-search'"),
        ({"regions": "grid", "detector": "x"}, "detector: got 'x', which has no effect"),
        ({"regions": "grid", "boxes": "b"}, "boxes: come instead of regions = 'grid'"),
    ],
)
def test_settings_without_effect_are_refused(settings, said):
    with pytest.raises(InputError) as caught:
        ExtractConfig(**settings)
    assert said in str(caught.value)


def test_a_backbone_for_objects_is_refused(tmp_path, photos):
    with pytest.raises(InputError, match="backbone: is a grid's, and regions = 'objects'"):
        extract(photos, tmp_path / "s", backbone=load_backbone("efficientnet-lite2"))
    assert not (tmp_path / "s").exists()


def test_boxes_that_fit_no_photograph_leave_nothing_behind(capsys, tmp_path, photos):
    (tmp_path / "b.json").write_text('[{"image_id": "x.jpg", "bbox": [0, 0, 1, 1]}]')
    words = ["extract", photos, tmp_path / "s", "--boxes", tmp_path / "b.json"]
    code, _, err = run(capsys, *words)
    assert code == 2
    assert "has boxes for none of the 3 photographs, such as 'a.png'" in err
    assert not (tmp_path / "s").exists()
