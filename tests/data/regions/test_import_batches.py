"""What importers share."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.data.regions.import_batches import (
    ImageRegions,
    import_images,
    require_utf8_names,
    stamps,
)
from crossgaze.data.regions.import_report import read_import_report
from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import InputError
from feature_files import random_image


def images(tmp_path, counts):
    for number, count in enumerate(counts):
        boxes, features = random_image(count)
        labels = {"confidence": np.arange(count, dtype=np.float32)}
        path, ignored = tmp_path / "x", frozenset([f"i{number % 3}"])
        image = ImageRegions(
            f"{number}", features, path, number, boxes, (5, 6), labels, ignored=ignored
        )
        yield image, number + 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=140), st.integers(1, 6))
def test_every_image_comes_back_cut_to_the_regions_kept(tmp_path_factory, counts, regions):
    folder = tmp_path_factory.mktemp("s")
    made = list(images(folder, counts))
    steps = []
    store = import_images(
        iter(made), len(counts), folder, regions, "float32", {"from": "x"}, 7,
        lambda *step: steps.append(step),
    )  # fmt: skip
    assert steps == [(i + 1, len(counts)) for i in range(len(counts))]
    for row, (image, _) in enumerate(made):
        kept = min(len(image.features), regions)
        read = store.read([image.id])
        assert read.counts.tolist() == [kept]
        np.testing.assert_array_equal(read.features[0, :kept], image.features[:kept])
        np.testing.assert_array_equal(read.boxes[0, :kept], image.boxes[:kept])
        assert store.field("confidence")[row, :kept].tolist() == list(range(kept))
        assert not read.features[0, kept:].any()
    report = read_import_report(folder)
    assert report.regions_cut == sum(max(0, count - regions) for count in counts)
    assert report.images_cut == sum(count > regions for count in counts)
    assert (report.files, report.images) == (7, len(counts))
    assert report.ignored == tuple(f"i{i}" for i in range(min(3, len(counts))))


def test_values_that_are_cut_off_may_be_anything(tmp_path):
    features = np.array([[1, 2], [np.nan, np.inf]], np.float32)
    image = ImageRegions("a", features, tmp_path / "x")
    store = import_images(
        iter([(image, 1)]), 1, tmp_path / "s", 1, "float16", {"from": "x"}, 1, None
    )
    assert store.features.tolist() == [[[1, 2]]]
    with pytest.raises(InputError, match="x: features are not all finite as float16"):
        import_images(iter([(image, 1)]), 1, tmp_path / "t", 2, "float16", {"from": "x"}, 1, None)
    assert len(RegionStore(tmp_path / "t")) == 0


def test_stamps_and_names(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}").write_bytes(bytes(number))
        os.utime(tmp_path / f"{number}", ns=(0, 1000 - number))
    files = sorted(tmp_path.iterdir())
    assert stamps(files) == {"bytes": 3, "modified": 1000}
    require_utf8_names([*files, tmp_path / "café"])
    with pytest.raises(InputError, match=r"'caf\\udce9': is not a name in UTF-8"):
        require_utf8_names([*files, type(tmp_path)(os.fsdecode(b"caf\xe9"))])
