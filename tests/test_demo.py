"""The demonstration's gallery, and what looks alike in it."""

import numpy as np
import pytest

from crossgaze import demo
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import InputError, MissingExtraError


def test_most_alike_is_the_nearest_by_angle(tmp_path):
    # Directions about their mean: a and b point one way, c and d the other; length says nothing.
    means = np.array([[9, 0], [5, 0.1], [-8, 1], [-6, -1.1]])
    with RegionWriter(tmp_path / "s", 2, 2, dtype="float32", fields=[]) as writer:
        writer.append(list("abcd"), np.stack([means + 1, means - 1], axis=1))
    alike = demo.most_alike(RegionStore(tmp_path / "s"))
    assert [(row.photograph, row.most_like) for row in alike] == [
        ("a", "b"),
        ("b", "a"),
        ("c", "d"),
        ("d", "c"),
    ]
    centred = means - means.mean(axis=0)
    cosine = centred[0] @ centred[1] / np.linalg.norm(centred[0]) / np.linalg.norm(centred[1])
    assert alike[0].cosine == pytest.approx(cosine, abs=1e-3)


def test_the_gallery_is_the_same_twice(tmp_path):
    pytest.importorskip("skimage")
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    first = [(p.name, p.stat().st_mtime_ns) for p in demo.build_gallery(tmp_path / "p")]
    again = [(p.name, p.stat().st_mtime_ns) for p in demo.build_gallery(tmp_path / "p")]
    assert first == again
    assert len(first) == len(demo.PHOTOGRAPHS)


def test_missing_packages_and_photographs_are_named(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(demo.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"crossgaze\[demo\]"):
            demo.build_gallery(tmp_path / "p")
    pytest.importorskip("skimage")
    monkeypatch.setattr(demo, "PHOTOGRAPHS", [("skimage", "data", "no.png", "no.png")])
    with pytest.raises(InputError, match="none of the packages carries"):
        demo.build_gallery(tmp_path / "p")
