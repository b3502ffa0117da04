"""The regions that an index keeps: as the re-ranker made them, read and not held."""

from pathlib import Path

import numpy as np
import pytest

import search_parts
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.models.encoded import Encoded
from crossgaze.search import ranking
from search_parts import create, encoded, reopen

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
QUERY = "a red dog in the snow"


def test_reading_some_at_a_time_finds_the_same(world, monkeypatch):
    from crossgaze.search import kept

    index = create(world)
    index.add(world / "photos")
    first = index.search(QUERY, k=12).hits
    monkeypatch.setattr(kept, "PART", 1)  # one photograph at a time
    for exhaustive in (False, True):
        found = index.search(QUERY, k=12, exhaustive=exhaustive).hits
        assert [hit.path for hit in found] == [hit.path for hit in first]
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in first], abs=1e-5)


def mapped_bytes(name):
    """How much of a mapped file this process holds, as the system says."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            inside = line.endswith(name)
        elif inside and line.startswith("Rss:"):
            total += 1024 * int(line.split()[1])
    return total


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux says what is mapped")
def test_a_search_of_everything_holds_a_part_of_the_file(world, monkeypatch):
    """32 MB of regions, read 1 MB at a time: not one page of the file stays this process's."""
    from crossgaze.search import kept

    index = create(world)
    size = 64
    with RegionWriter(world / "big", 36, size, fields=["counts", "boxes", "sizes"]) as writer:
        for start in range(1, 7000, 1000):
            names = [str(uid) for uid in range(start, start + 1000)]
            rows = np.empty((1000, 36, size), np.float16)
            rows[:] = (np.arange(start, start + 1000) % 1024)[:, None, None]
            some = {"boxes": np.zeros((1000, 36, 4)), "sizes": np.ones((1000, 2), np.int32)}
            writer.append(names, rows, **some)
    monkeypatch.setattr(kept, "PART", 1 << 20)
    opened = kept.KeptRegions(world / "big", 0)
    monkeypatch.setattr(index, "_kept", opened)
    seen, held = [], []

    def score(said, features, rows, counts):
        assert features.nbytes <= 1 << 20
        seen.extend(features[rows][:, 35, 63].tolist())
        held.append(mapped_bytes("/big/features.bin"))
        return np.array(seen[-len(rows) :], np.float32)[:, None]

    monkeypatch.setattr(index.reranker, "score_texts", score)
    uids = np.random.default_rng(0).permutation(np.arange(1, 7001))
    assert ranking.rerank_uids(index, QUERY, uids).tolist() == (uids % 1024).tolist()
    assert len(seen) == 7000
    assert opened.features.nbytes > 30e6
    assert max(held) == 0


def test_kept_regions_are_opened_again_only_where_somebody_wrote(world):
    index = create(world)
    index.add(world / "photos")
    reader = reopen(world)
    kept = reader.kept
    reader.refresh()
    assert reader.kept is kept  # every few seconds, in a service over Milvus
    search_parts.make_photo(world / "photos" / "new.png", "new")
    index.add(world / "photos")
    reader.refresh()
    assert len(reader.kept) == 13
    kept = reader.kept
    index.remove([1])
    index.compact()
    reader.refresh()
    assert reader.kept is not kept
    assert len(reader.kept) == 12


def test_kept_features_are_what_the_reranker_made(world):
    index = create(world)
    index.add(world / "photos")
    model = search_parts.reranker()
    for hit in index.search(QUERY, k=12).hits:
        (row,) = index.kept.rows([hit.uid])
        side = encoded(hit.path, model)
        count = int(index.kept.counts[row])
        assert isinstance(side, Encoded)
        np.testing.assert_allclose(
            index.kept.features[row, :count], side.fragments[0].numpy(), atol=1e-3
        )
        assert not index.kept.features[row, count:].any()
