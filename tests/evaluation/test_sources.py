"""Where captions and regions come from."""

import numpy as np
import pytest

import evaluation_parts as parts
from crossgaze.errors import InputError
from crossgaze.evaluation.sources import open_regions, read_split


@pytest.fixture
def precomp(tmp_path):
    """Return a folder with 4 images in test, stored five times, and 10 in testall."""
    random = np.random.default_rng(0)
    folder = tmp_path / "coco_precomp"
    folder.mkdir()
    for split, images, times in (("test", 4, 5), ("testall", 10, 1)):
        captions = (f"{split} {i} {k}" for i in range(images) for k in range(5))
        (folder / f"{split}_caps.txt").write_text("".join(f"{c}\n" for c in captions))
        features = random.normal(size=(images, 3, 6)).astype(np.float32)
        np.save(folder / f"{split}_ims.npy", np.repeat(features, times, axis=0))
    return folder


def test_precomp_folders_bring_their_own_features(precomp):
    captioned = read_split(precomp)
    regions = open_regions(captioned, precomp)
    assert len(regions) == len(captioned) == 4
    assert regions.width == 6
    stored = np.load(precomp / "test_ims.npy")
    features, counts = regions.read([2, 0])
    assert np.array_equal(features, stored[[10, 0]])
    assert counts is None
    assert np.array_equal(regions.read(slice(1, 3))[0], stored[[5, 10]])
    first = captioned.first(2)
    assert len(open_regions(first, precomp)) == 2


@pytest.mark.parametrize("name", ["folder", "file"])
def test_testall_is_read_where_it_is_asked_for(precomp, name):
    data, split = (precomp, "testall") if name == "folder" else (precomp / "testall_caps.txt", None)
    captioned = read_split(data, split)
    assert len(captioned) == 10
    assert captioned.captions[5] == "testall 1 0"
    assert np.array_equal(
        open_regions(captioned, data).read([9])[0], np.load(precomp / "testall_ims.npy")[[9]]
    )


def test_features_of_one_region_are_taken(precomp):
    np.save(precomp / "test_ims.npy", np.load(precomp / "test_ims.npy")[:, 0])
    regions = open_regions(read_split(precomp), precomp)
    assert regions.read([0])[0].shape == (1, 1, 6)


def test_a_store_gives_rows_in_the_order_of_the_captions(tmp_path):
    captioned = parts.captioned()
    store = parts.write_store(tmp_path / "regions", captioned.images)
    regions = open_regions(captioned, tmp_path, store)
    assert regions.rows.tolist() == list(range(10))[::-1]
    features, counts = regions.read([3])
    assert features.shape == (1, 4, 6)
    assert counts.shape == (1,)
    assert regions.sizes.shape == (10, 2)


def test_images_that_the_store_has_not_are_named(tmp_path):
    captioned = parts.captioned()
    store = parts.write_store(tmp_path / "regions", captioned.images[1:])
    with pytest.raises(InputError, match=r"1 of the 10 asked images .* '0_x.jpg'"):
        open_regions(captioned, tmp_path, store)


def test_without_features_a_store_is_asked_for(precomp, tmp_path):
    (precomp / "test_ims.npy").unlink()
    with pytest.raises(InputError, match=r"no region features of its own; give .* --store"):
        open_regions(read_split(precomp), precomp)
    data = parts.write_flickr8k(tmp_path / "flickr8k")
    with pytest.raises(InputError, match="--store"):
        open_regions(read_split(data), data)


def test_a_set_without_splits_is_taken_whole(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("image,caption\na.jpg,a cat\nb.jpg,a dog\n")
    assert len(read_split(path)) == 2
    with pytest.raises(InputError, match="no split 'test'"):
        read_split(path, "test")


def test_questions_are_refused(tmp_path):
    (tmp_path / "all_qa_pairs.txt").write_text("what is in the image1 ?\ncup\n")
    (tmp_path / "train_images_list.txt").write_text("image1\n")
    (tmp_path / "test_images_list.txt").write_text("image1\n")
    with pytest.raises(InputError, match="holds questions, wanted captioned images"):
        read_split(tmp_path)
