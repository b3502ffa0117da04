"""From a recipe to data: features that lie in a `*_precomp` folder."""

import numpy as np
import pytest

from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import InputError
from crossgaze.training.prepare import prepare
from crossgaze.training.trainer import train
from training_parts import COLOURS, THINGS, settings, write_world

SIZES = {"train": 12, "dev": 4, "test": 3}


@pytest.fixture
def folder(tmp_path):
    """A *_precomp folder; dev's images are stored five times each, as some are."""
    place = tmp_path / "f30k_precomp"
    place.mkdir()
    rng = np.random.default_rng(0)
    for split, images in SIZES.items():
        words = [f"{COLOURS[n % 4]} {THINGS[n % 6]}" for n in range(images)]
        lines = [f"{start} {word}" for word in words for start in ("a", "the", "one", "my", "his")]
        (place / f"{split}_caps.txt").write_text("\n".join(lines) + "\n")
        features = rng.normal(size=(images, 3, 8)).astype(np.float32)
        np.save(place / f"{split}_ims.npy", features.repeat(5 if split == "dev" else 1, axis=0))
    return place


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_precomp_folder_brings_its_own_features(folder, in_memory):
    data = {"captions": str(folder), "regions": str(folder), "min_count": 1, "in_memory": in_memory}
    ready = prepare(settings((folder, folder), data=data))
    assert (len(ready.train.regions), len(ready.dev.regions)) == (12, 4)
    found, counts = ready.dev.regions.gather(np.array([3, 0]))
    stored = np.load(folder / "dev_ims.npy")
    np.testing.assert_array_equal(found, stored[[15, 0]])
    assert counts.tolist() == [3, 3]
    found, _ = ready.train.regions.gather(np.array([11]))
    np.testing.assert_array_equal(found, np.load(folder / "train_ims.npy")[[11]])
    assert ready.model.config.region_width == 8


def test_several_splits_are_learned_from_each_in_its_own_file(folder, tmp_path):
    data = {"captions": str(folder), "regions": str(folder), "min_count": 1}
    config = settings((folder, folder), data=data | {"train": ["train", "test"]})
    ready = prepare(config)
    assert len(ready.train.regions) == 15
    found, _ = ready.train.regions.gather(np.array([12, 3, 14]))
    files = {split: np.load(folder / f"{split}_ims.npy") for split in ("train", "test")}
    np.testing.assert_array_equal(found[[0, 2]], files["test"][[0, 2]])
    np.testing.assert_array_equal(found[1], files["train"][3])
    assert (ready.train.owners[-1], ready.train.texts[-1]) == (14, "his green car")
    summary = train(config, tmp_path / "run")
    assert summary["steps"] == 2 * 7  # 75 captions, 12 a batch


def test_features_that_were_replaced_are_told_apart(folder):
    def seen():
        return prepare(settings((folder, folder))).fingerprint

    first = seen()
    assert seen() == first
    array = np.load(folder / "train_ims.npy")
    np.save(folder / "train_ims.npy", array + 1)  # the same shape, so the same header
    assert seen() != first


def test_dev_may_be_cut_and_must_have_features(folder):
    data = {"captions": str(folder), "regions": str(folder), "min_count": 1}
    assert len(prepare(settings((folder, folder), data=data | {"dev_images": 3})).dev.regions) == 3
    (folder / "dev_ims.npy").unlink()
    with pytest.raises(InputError, match=r"has no dev_ims.npy, only captions"):
        prepare(settings((folder, folder), data=data))


def test_a_folder_of_other_images_is_refused_and_missing_ones_are_said(folder, tmp_path):
    _, regions = write_world(tmp_path)
    with pytest.raises(InputError, match=r"regions: has none of the 12 training images of .*f30k"):
        prepare(settings((folder, regions)))
    other = tmp_path / "more.jsonl"
    lines = (tmp_path / "captions.jsonl").read_text()
    other.write_text(lines + '{"image": "no.jpg", "caption": "a dog", "split": "train"}\n')
    ready = prepare(settings((other, regions)))
    assert any("1 training images are not in" in note for note in ready.notes)
    assert len(ready.train.regions) == 24


def test_a_model_remembers_how_its_regions_were_made(tmp_path):
    captions, plain = write_world(tmp_path)
    assert prepare(settings((captions, plain))).origin == {}  # the store does not say
    made = {"regions": "objects", "whole": True}
    old = RegionStore(plain)
    with RegionWriter(
        tmp_path / "told", 4, old.head.width, fields=["counts"], made_by=made
    ) as writer:
        writer.append(list(old.ids), np.array(old.features), counts=np.array(old.counts))
    assert prepare(settings((captions, tmp_path / "told"))).origin == {"regions": made}
