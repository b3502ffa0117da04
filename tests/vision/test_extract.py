"""A folder of photographs to a region store."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from PIL import Image

from crossgaze.data.regions.merge import merge_stores
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.verify import verify
from crossgaze.errors import InputError
from crossgaze.vision.backbones import load_backbone
from crossgaze.vision.backbones.base import Backbone
from crossgaze.vision.extract import ExtractConfig, Shard, extract
from crossgaze.vision.grid import grid_boxes, pool_grid
from crossgaze.vision.photos import read_photo
from support import SHARED, needs_shared


class Shrink(Backbone):
    """A 'network' that averages 32 x 32 pixels: fast, and a hand can check what it gives."""

    def __init__(self):
        super().__init__("shrink", width=3, stride=32, mean=(0.0,) * 3, scale=(1.0,) * 3)
        self.seen = []

    def features(self, x):
        self.seen.append(tuple(x.shape))
        return torch.nn.functional.avg_pool2d(x, 32)


def cells(**settings):
    """Settings for a grid, whose features a hand can check."""
    return ExtractConfig(regions="grid", **settings)


@pytest.fixture
def photos(tmp_path):
    """Twelve photographs of one colour each, in two folders and several formats."""
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    for number in range(12):
        ending = ("jpg", "png", "webp", "gif")[number % 4]
        name = f"more/{number:02}.{ending}" if number % 3 else f"{number:02}.{ending}"
        Image.new("RGB", (40 + number, 30), (number * 20, 100, 50)).save(folder / name, quality=95)
    return folder


def test_each_region_is_what_the_network_saw_in_its_box(tmp_path):
    """Left half red, right half blue: a 2 x 2 grid must say so, box by box."""
    pixels = np.zeros((100, 200, 3), np.uint8)
    pixels[:, :100, 0], pixels[:, 100:, 2] = 200, 100
    (tmp_path / "p").mkdir()
    Image.fromarray(pixels).save(tmp_path / "p" / "a.png")
    config = cells(grid=2, size=64, dtype="float32")
    report = extract(tmp_path / "p", tmp_path / "s", config, backbone=Shrink())
    store = RegionStore(tmp_path / "s")
    assert report.extracted == 1
    assert store.sizes.tolist() == [[200, 100]]
    np.testing.assert_array_equal(store.boxes[0], grid_boxes(2, 200, 100))
    expected = [[200, 0, 0], [0, 0, 100]] * 2
    np.testing.assert_allclose(store.features[0], expected, atol=3)  # the resize blurs the seam


def test_every_format_in_order_and_with_its_stamp(tmp_path, photos):
    steps = []
    report = extract(
        photos,
        tmp_path / "s",
        cells(grid=1, batch=5),
        backbone=Shrink(),
        on_progress=lambda *step: steps.append(step),
    )
    store = RegionStore(tmp_path / "s")
    assert (report.photos, report.extracted, report.unreadable) == (12, 12, ())
    assert list(store.ids) == sorted(store.ids)
    assert steps == [(0, 12), (12, 12)]
    for row, name in enumerate(store.ids):
        number = int(name[-6:-4] if "webp" not in name else name[-7:-5])
        assert store.features[row, 0].tolist() == pytest.approx([number * 20, 100, 50], abs=6)
        status = (photos / name).stat()
        assert store.field("stamps")[row].tolist() == [status.st_size, status.st_mtime_ns]
    assert verify(tmp_path / "s").sound
    saved = json.loads((tmp_path / "s" / "report.json").read_text())
    assert saved["finished"]
    assert saved["config"]["grid"] == 1
    assert saved["extracted"] == 12


def test_unreadable_photographs_are_listed_and_the_rest_goes_on(tmp_path, photos):
    (photos / "05-broken.jpg").write_bytes(b"\xff\xd8\xff nonsense")
    (photos / "06-empty.png").write_bytes(b"")
    (photos / "notes.txt").write_text("x")
    report = extract(photos, tmp_path / "s", cells(grid=1), backbone=Shrink())
    assert report.extracted == 12
    assert [name for name, _ in report.unreadable] == ["05-broken.jpg", "06-empty.png"]
    assert all(reason for _, reason in report.unreadable)
    assert report.left_out[0].count == 1
    saved = json.loads((tmp_path / "s" / "report.json").read_text())
    assert [name for name, _ in saved["unreadable"]] == ["05-broken.jpg", "06-empty.png"]


def test_a_second_run_does_only_what_is_new(tmp_path, photos):
    config = cells(grid=1)
    extract(photos, tmp_path / "s", config, backbone=Shrink())
    (photos / "00.jpg").unlink()
    Image.new("RGB", (9, 9), "white").save(photos / "99.png")
    network = Shrink()
    report = extract(photos, tmp_path / "s", config, backbone=network)
    assert (report.photos, report.already, report.extracted, report.gone) == (12, 11, 1, 1)
    assert len(network.seen) == 1
    assert RegionStore(tmp_path / "s").ids[-1] == "99.png"


def test_photographs_that_changed_are_said(tmp_path, photos):
    name = sorted(p.name for p in photos.glob("*.*"))[0]
    extract(photos, tmp_path / "s", cells(grid=1), backbone=Shrink())
    Image.new("RGB", (9, 9)).save(photos / name)
    report = extract(photos, tmp_path / "s", cells(grid=1), backbone=Shrink())
    assert report.changed == (name,)


def test_shards_merge_to_the_bytes_of_an_unsharded_run(tmp_path, photos):
    config = cells(grid=2)
    extract(photos, tmp_path / "whole", config, backbone=Shrink())
    parts = []
    for number in (1, 2, 3):
        shard = Shard.parse(f"{number}/3")
        report = extract(photos, tmp_path / f"{number}", config, shard=shard, backbone=Shrink())
        assert report.photos == report.extracted
        parts.append(tmp_path / f"{number}")
    assert sum(len(RegionStore(part)) for part in parts) == 12
    merge_stores(parts, tmp_path / "merged")
    for name in ("features.bin", "boxes.bin", "sizes.bin", "counts.bin", "stamps.bin", "head.json"):
        assert (tmp_path / "merged" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert RegionStore(tmp_path / "merged").ids == RegionStore(tmp_path / "whole").ids


@pytest.mark.parametrize("text", ["0/4", "5/4", "4", "a/b", "1/", "-1/4", "1/0", ""])
def test_shards_that_are_none_are_refused(text):
    with pytest.raises(InputError, match=r"shard: got .*, wanted i/n"):
        Shard.parse(text)


def test_keeping_proportions_batches_by_shape(tmp_path):
    (tmp_path / "p").mkdir()
    for number, size in enumerate([(640, 320), (320, 640), (1280, 640), (64, 32)]):
        Image.new("RGB", size, (number * 60, 0, 0)).save(tmp_path / "p" / f"{number}.png")
    network = Shrink()
    config = cells(grid=1, size=128, fit="keep", batch=2)
    extract(tmp_path / "p", tmp_path / "s", config, backbone=network)
    assert sorted(network.seen) == [(1, 3, 64, 128), (1, 3, 128, 64), (2, 3, 64, 128)]
    store = RegionStore(tmp_path / "s")
    assert store.features[:, 0, 0].tolist() == [0, 60, 120, 180]
    assert store.sizes.tolist() == [[640, 320], [320, 640], [1280, 640], [64, 32]]


def test_a_grid_of_the_default_network_from_end_to_end(tmp_path, photos):
    """Against the parts put together by hand: read, forward, pool, one photograph at a time."""
    extract(photos, tmp_path / "s", cells())
    store = RegionStore(tmp_path / "s")
    assert store.features.shape == (12, 36, 1280)
    model = load_backbone("efficientnet-lite2")
    for row, name in list(enumerate(store.ids))[::5]:
        pixels = torch.from_numpy(read_photo(photos / name, 256).pixels)[None]
        with torch.no_grad():
            expected = pool_grid(model(pixels), 6)[0].numpy()
        np.testing.assert_allclose(store.features[row], expected, atol=4e-3, rtol=2e-3)


@pytest.mark.parametrize(("grid", "side"), [(6, 8), (7, 7), (8, 8), (14, 14), (1, 8)])
def test_the_input_size_follows_the_grid(tmp_path, grid, side):
    (tmp_path / "p").mkdir()
    Image.new("RGB", (20, 20)).save(tmp_path / "p" / "a.png")
    network = Shrink()
    extract(tmp_path / "p", tmp_path / "s", cells(grid=grid), backbone=network)
    assert network.seen == [(1, 3, 32 * side, 32 * side)]
    assert RegionStore(tmp_path / "s").features.shape == (1, grid * grid, 3)


def test_bad_input_is_named(tmp_path, photos):
    network = Shrink()
    with pytest.raises(InputError, match="grid: got 0, wanted 1 to 64"):
        cells(grid=0)
    with pytest.raises(InputError, match="device: 'nonsense' cannot be used here"):
        extract(photos, tmp_path / "s", cells(device="nonsense"), backbone=network)
    with pytest.raises(InputError, match="nowhere"):
        extract(tmp_path / "nowhere", tmp_path / "s", cells(), backbone=network)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "a.jpg").write_bytes(b"no")
    with pytest.raises(InputError, match=r"none of the 1 photographs could be read; a.jpg"):
        extract(broken, tmp_path / "t", cells(grid=1), backbone=network)
    extract(photos, tmp_path / "s", cells(grid=1), backbone=network)
    with pytest.raises(InputError, match="made with grid = 1, now it is 2"):
        extract(photos, tmp_path / "s", cells(grid=2), backbone=network)


def test_a_failing_disk_is_an_error_and_the_store_stays_whole(tmp_path, photos, monkeypatch):
    extract(photos / "more", tmp_path / "s", cells(grid=1), backbone=Shrink())
    before = len(RegionStore(tmp_path / "s"))
    for number in range(70):
        Image.new("RGB", (8, 8)).save(photos / "more" / f"x{number}.png")

    real = os.pwrite

    def full(handle, data, offset):
        if len(data) > 100:  # the note of what is being written still fits
            raise OSError(28, "No space left on device")
        return real(handle, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space left"):
        extract(photos / "more", tmp_path / "s", cells(grid=1), backbone=Shrink())
    monkeypatch.undo()
    assert len(RegionStore(tmp_path / "s")) == before
    assert not json.loads((tmp_path / "s" / "report.json").read_text())["finished"]
    extract(photos / "more", tmp_path / "s", cells(grid=1), backbone=Shrink())
    assert len(RegionStore(tmp_path / "s")) == before + 70


@pytest.mark.slow
def test_a_killed_extraction_goes_on_to_the_same_store(tmp_path):
    """SIGKILL once the first window is acknowledged; the second run ends as if nothing was."""
    folder = tmp_path / "p"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(200):
        Image.fromarray(rng.integers(0, 255, (40, 40, 3), np.uint8)).save(folder / f"{number}.png")
    command = [sys.executable, "-m", "crossgaze", "extract", str(folder), str(tmp_path / "s")]
    command += ["regions=grid", "backbone=efficientnet-lite0", "size=64", "grid=2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        log = tmp_path / "s" / "log.jsonl"
        while child.poll() is None and not (log.exists() and log.stat().st_size):
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
    killed = len(RegionStore(tmp_path / "s"))
    assert 0 < killed < 200
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["report"]["already"] == killed
    config = cells(backbone="efficientnet-lite0", size=64, grid=2)
    extract(folder, tmp_path / "whole", config)
    ours, whole = RegionStore(tmp_path / "s"), RegionStore(tmp_path / "whole")
    assert ours.ids == whole.ids
    np.testing.assert_allclose(ours.features, whole.features, atol=2e-3)
    assert verify(tmp_path / "s").sound


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 64}, "made with size = 256, now it is 64"),
        ({"fit": "keep"}, "made with fit = 'stretch', now it is 'keep'"),
    ],
)
def test_another_way_is_refused(tmp_path, photos, change, message):
    extract(photos, tmp_path / "s", cells(grid=1), backbone=Shrink())
    with pytest.raises(InputError, match=message):
        extract(photos, tmp_path / "s", cells(grid=1, **change), backbone=Shrink())


def test_another_backbone_or_preprocessing_is_refused(tmp_path, photos):
    extract(photos, tmp_path / "s", cells(grid=1), backbone=Shrink())
    other = Shrink()
    other.name = "other"
    with pytest.raises(InputError, match="made with backbone = 'shrink', now it is 'other'"):
        extract(photos, tmp_path / "s", cells(grid=1), backbone=other)
    other = Shrink()
    other.mean += 1
    with pytest.raises(InputError, match="made with weights = "):
        extract(photos, tmp_path / "s", cells(grid=1), backbone=other)


def test_sizes_off_the_stride_are_refused(tmp_path, photos):
    with pytest.raises(InputError, match="size: got 260, wanted a multiple of 32 for shrink"):
        extract(photos, tmp_path / "s", cells(size=260), backbone=Shrink())
    assert not (tmp_path / "s").exists()


def test_choices_that_are_none_are_refused():
    with pytest.raises(InputError, match="fit: got 'bogus', wanted stretch or keep"):
        cells(fit="bogus")
    with pytest.raises(InputError, match="dtype: got 'float64', wanted float16 or float32"):
        cells(dtype="float64")


def test_another_shard_of_the_same_folder_is_refused(tmp_path, photos):
    config = cells(grid=1)
    extract(photos, tmp_path / "s", config, shard=Shard(1, 3), backbone=Shrink())
    with pytest.raises(InputError, match="holds shard 1/3, now it is 2/3"):
        extract(photos, tmp_path / "s", config, shard=Shard(2, 3), backbone=Shrink())
    with pytest.raises(InputError, match="holds shard 1/3, now it is 1/1"):
        extract(photos, tmp_path / "s", config, backbone=Shrink())


def test_settings_reach_the_photographs(tmp_path, photos):
    (tmp_path / "outside.png").write_bytes((photos / "more" / "01.png").read_bytes())
    (photos / "link.png").symlink_to(tmp_path / "outside.png")
    config = cells(grid=1, follow_links=True, max_pixels=45 * 30)
    report = extract(photos, tmp_path / "s", config, backbone=Shrink())
    assert report.photos == 13
    assert len(report.unreadable) == 6  # those that are more than 45 pixels wide
    assert "wanted at most 1,350" in report.unreadable[0][1]


def test_a_backbone_in_training_mode_is_not_trained(tmp_path, photos):
    network = Shrink().train()
    extract(photos, tmp_path / "s", cells(grid=1), backbone=network)
    assert not network.training


def test_the_report_of_a_stopped_run_says_what_was_done(tmp_path, photos):
    for number in range(70):
        Image.new("RGB", (8, 8)).save(photos / f"x{number}.png")

    def stop(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(photos, tmp_path / "s", cells(grid=1), backbone=Shrink(), on_progress=stop)
    saved = json.loads((tmp_path / "s" / "report.json").read_text())
    assert saved["extracted"] == len(RegionStore(tmp_path / "s")) == 32
    assert not saved["finished"]


@needs_shared
def test_real_photographs(tmp_path):
    folder = tmp_path / "p"
    folder.mkdir()
    for path in sorted((SHARED / "data" / "flickr8k" / "images").iterdir())[:20]:
        (folder / path.name).write_bytes(path.read_bytes())
    report = extract(folder, tmp_path / "s", cells(grid=7, batch=4))
    store = RegionStore(tmp_path / "s")
    assert report.extracted == 20
    means = np.asarray(store.features, np.float32).mean(1)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    # Photographs of different things: alike in being photographs, but not the same.
    off = (means @ means.T)[~np.eye(20, dtype=bool)]
    assert 0.05 < off.mean() < 0.8
