"""Regions out of a store instead of out of pixels: the same, and only for the same file."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import search_parts
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import InputError
from crossgaze.files import stamp_of
from crossgaze.vision.photos import read_photo
from crossgaze.vision.sources.stored import StoredSource
from search_parts import REGIONS, WIDTH, CellSource, make_photo

NAMES = ("a.png", "b.png", "deep/c.png")


class Counted(CellSource):
    """Knows what it was asked for."""

    def __init__(self, version=1):
        super().__init__(version)
        self.asked = []

    def __call__(self, photos, names, go_on):
        self.asked += names
        return super().__call__(photos, names, go_on)


def make_store(folder, root, names=NAMES, left_out=(), fit="stretch", dtype="float32"):
    """Write what an extraction would have written of some photographs, by the source's own word."""
    source = CellSource()
    every = ("counts", "boxes", "sizes", "stamps", *source.fields)
    fields = [one for one in every if one not in left_out]
    made_by = {**source.made_by, "fit": fit}
    with RegionWriter(
        folder, REGIONS, WIDTH, dtype=dtype, fields=fields, labels=source.labels, made_by=made_by
    ) as writer:
        for name in names:
            photo = read_photo(root / name, 8)
            (found,) = source([photo], [name], lambda: None)
            count, size = len(found.boxes), (photo.width, photo.height)
            row = {
                "boxes": found.boxes * np.tile(size, 2),
                **found.fields,
            }
            row = {key: padded(value) for key, value in row.items()}
            row |= {"counts": count, "sizes": size, "stamps": stamp_of((root / name).stat())}
            row = {key: np.array([value]) for key, value in row.items() if key in fields}
            writer.append([name], padded(found.features)[None], **row)
    return RegionStore(folder)


def padded(value):
    return np.pad(value, [(0, REGIONS - len(value)), *[(0, 0)] * (value.ndim - 1)])


@pytest.fixture
def root(tmp_path):
    for number, name in enumerate(NAMES):
        make_photo(tmp_path / "photos" / name, 5 * number)
    return tmp_path / "photos"


def ask(stored, root, names):
    return stored([read_photo(root / name, 8) for name in names], names, lambda: None)


def equal(found, wanted):
    return (
        np.array_equal(found.features, wanted.features)
        and np.allclose(found.boxes, wanted.boxes)
        and all(np.array_equal(found.fields[key], wanted.fields[key]) for key in wanted.fields)
    )


def test_what_the_store_has_is_what_the_source_would_have_made(root, tmp_path):
    source = Counted()
    stored = StoredSource(source, make_store(tmp_path / "store", root), root, "stretch")
    wanted = ask(CellSource(), root, NAMES)
    assert all(map(equal, ask(stored, root, NAMES), wanted))
    assert {len(one.boxes) for one in wanted} == {3, 4}  # padding was cut off again
    assert (source.asked, stored.taken) == ([], 3)


def test_what_it_lacks_goes_to_the_source_and_all_stand_in_their_order(root, tmp_path):
    source = Counted()
    store = make_store(tmp_path / "store", root, NAMES[1:2])
    stored = StoredSource(source, store, root, "stretch")
    assert all(map(equal, ask(stored, root, NAMES), ask(CellSource(), root, NAMES)))
    assert (source.asked, stored.taken) == ([NAMES[0], NAMES[2]], 1)


@pytest.mark.parametrize("change", ["content", "date"])
def test_a_file_that_changed_is_looked_at_again(root, tmp_path, change):
    store, source = make_store(tmp_path / "store", root), Counted()
    path = root / "a.png"
    if change == "content":
        make_photo(path, "another")
    os.utime(path, ns=(1, 1_000_000_007))
    stored = StoredSource(source, store, root, "stretch")
    assert all(map(equal, ask(stored, root, NAMES), ask(CellSource(), root, NAMES)))
    assert (source.asked, stored.taken) == (["a.png"], 2)


def test_a_photograph_of_another_shape_is_looked_at_again(root, tmp_path):
    store, source = make_store(tmp_path / "store", root), Counted()
    stored = StoredSource(source, store, root, "stretch")
    photo = replace(read_photo(root / "a.png", 8), width=99)
    stored([photo], ["a.png"], lambda: None)
    assert source.asked == ["a.png"]


def test_stores_of_other_settings_are_refused(root, tmp_path):
    store = make_store(tmp_path / "store", root)
    with pytest.raises(
        InputError, match=r"store: its regions were made with version = 1, wanted 2"
    ):
        StoredSource(CellSource(version=2), store, root, "stretch")
    with pytest.raises(InputError, match="made with fit = 'stretch', wanted 'keep'"):
        StoredSource(CellSource(), store, root, "keep")


@pytest.mark.parametrize("name", ["stamps", "sizes", "boxes", "classes"])
def test_stores_that_cannot_tell_are_refused(root, tmp_path, name):
    store = make_store(tmp_path / "store", root, left_out=[name])
    with pytest.raises(InputError, match=f"has no {name}, wanted a store that crossgaze extract"):
        StoredSource(CellSource(), store, root, "stretch")


def test_an_index_of_stored_regions_answers_as_one_of_pixels(tmp_path):
    pytest.importorskip("lancedb", reason="needs crossgaze[search]")
    search_parts.save_models(tmp_path)
    photos = tmp_path / "photos"
    names = [make_photo(photos / f"{number:02}.png", number).name for number in range(6)]
    make_store(tmp_path / "store", photos, names[:4])
    found = {}
    for store in (None, tmp_path / "store"):
        source = Counted()
        folder = tmp_path / f"index-{store is None}"
        with search_parts.create(folder.parent, source=source) as index:
            report = index.add(photos, store=store)
            assert (report.added, report.stored) == (6, 4 if store else 0)
            assert sorted(source.asked) == (names[4:] if store else names)
            hits = index.search("a red dog", k=6).hits
            found[store] = [(Path(hit.path).name, round(hit.score, 5)) for hit in hits]
            boxes = [hit.regions for hit in hits]
            found[store].append(boxes)
        (tmp_path / "index").rename(folder)
    assert found[None] == found[tmp_path / "store"]
