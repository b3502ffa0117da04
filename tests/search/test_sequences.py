"""Whatever happens to a folder, the index ends as a dictionary of its files would."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import search_parts
from crossgaze.search.index import Index

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
QUERY = "a red dog in the snow"
NAMES = st.sampled_from(["a.png", "b.png", "deep/c.png", "it's %_.png", "é.png"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, st.integers(0, 5)),
        st.tuples(st.just("delete"), NAMES, st.just(0)),
        st.tuples(st.just("touch"), NAMES, st.integers(1, 9)),
        st.tuples(st.just("rename"), NAMES, st.integers(0, 5)),
        st.tuples(st.sampled_from(["index", "compact", "reopen"]), st.just(""), st.just(0)),
    ),
    min_size=3,
    max_size=12,
)


def reference(content):
    """The score of a content by an index that holds only it is what any index must say."""
    from crossgaze.vision.photos import read_photo

    with tempfile.TemporaryDirectory() as folder:
        photo = read_photo(search_parts.make_photo(Path(folder) / "x.png", content), 8)
    (found,) = search_parts.CellSource()([photo], [""], lambda: None)
    scores = [
        model.similarity(model.encode_images(found.features[None]), model.encode_texts([QUERY]))
        for model in (search_parts.embedder(), search_parts.reranker())
    ]
    return float(sum(scores).detach()) / 2


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_any_sequence_of_changes(steps, tmp_path_factory):
    world = tmp_path_factory.mktemp("world")
    photos = world / "photos"
    how = {
        "embedder": search_parts.embedder(),
        "reranker": search_parts.reranker(),
        "source": search_parts.CellSource(),
    }
    index = Index.create(world / "index", **how)
    files = {"keep.png": "keep"}  # a folder without any photograph is refused
    search_parts.make_photo(photos / "keep.png", "keep")
    clock = 10**18
    for step, name, number in [*steps, ("index", "", 0)]:
        clock += 10**9
        if step == "write":
            search_parts.make_photo(photos / name, number)
            os.utime(photos / name, ns=(clock, clock))
            files[name] = number
        elif step == "delete" and name in files:
            (photos / name).unlink()
            del files[name]
        elif step == "touch" and name in files:
            os.utime(photos / name, ns=(clock, clock))
        elif step == "rename" and name in files:
            new = f"moved{number}.png"
            (photos / name).rename(photos / new)
            files[new] = files.pop(name)
        elif step == "compact":
            index.compact()
        elif step == "reopen":
            index.close()
            index = Index.open(world / "index", **how)
        elif step == "index":
            index.add(photos)
            found = index.search(QUERY, k=50, exhaustive=True)
            have = {str(Path(hit.path).relative_to(photos)): hit.score for hit in found.hits}
            assert set(have) == set(files)
            for file, score in have.items():
                assert score == pytest.approx(reference(files[file]), abs=2e-3)
            assert len(index.kept) >= len(files)
