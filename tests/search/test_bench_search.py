"""`benchmarks/bench_search.py` comes to its end, and its made-up vectors are what they should be.

The long runs take hours: what would fail at their end fails here, at a hundredth of the size.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from crossgaze.search.ranking import CANDIDATES

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def module(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


WRITTEN = {
    "two-stage": {
        "two-stage query, 1,000 images, p50 ms",
        f"two-stage query, 1,000 images, {CANDIDATES} candidates, share of the exhaustive top 10",
        "two-stage query, the models that ship, 1,000 images, p50 ms",
        "two-stage query, the models that ship, 1,000 images, p95 ms",
        "two-stage query, the models that ship, 1,000 images, most resident bytes",
    },
    "growth": {
        f"stage one, 10,000 vectors, LanceDB, {CANDIDATES}, p50 ms",
        *(
            f"stage one, {size:,} vectors, LanceDB, {CANDIDATES}, recall"
            for size in (100, 300, 1000, 2500, 5000, 10_000)
        ),
    },
    "indexing": {"index over extract"},
    "keeping": set(),
}


@pytest.mark.slow
@pytest.mark.parametrize("part", WRITTEN)
def test_a_part_comes_to_its_end(tmp_path, part):
    out = tmp_path / "out"
    out.mkdir()
    before = {"parts": {"other": 1}, "command": "python before.py", "ran_on": {"processor": "old"}}
    (out / "bench-search.json").write_text(json.dumps(before))
    words = [BENCHMARKS / "bench_search.py", "--small", out, "--part", part, "--folder", tmp_path]
    subprocess.run([sys.executable, *map(str, words)], check=True, capture_output=True)
    found = json.loads((out / "bench-search.json").read_text())
    assert found["parts"].keys() == {"other", part}
    assert {bar["what"] for bar in found["bars"]} >= WRITTEN[part]
    assert found["runs"]["other"] == {"command": "python before.py", "ran_on": {"processor": "old"}}
    assert found["runs"][part]["command"].endswith(f"--part {part} --folder {tmp_path}")
    assert found["runs"][part]["ran_on"].keys() >= {"processor", "load before", "lancedb"}
    assert (out / "bench-search.svg").exists() == (part == "growth")
    if part == "two-stage":
        shipped = found["parts"][part]["shipped"]
        assert shipped["regions"] == "37 x 512"
        assert shipped["numbers of a region that they take"] == 1792
        assert shipped["p50 by step"].keys() == {"encode", "candidates", "re-rank", "read"}
        for one in (found["parts"][part], shipped):
            assert one["milliseconds with 500 candidates"].keys() == {"p50", "p95"}
        assert found["parts"][part]["words of a query"] == 5
        assert 8 <= shipped["words of a query"] <= 17
        assert ["bfan" in shipped["models"][1], "vse++" in shipped["models"][0]] == [True, True]
    if part == "growth":  # where a search looks into every partition, it finds nearly all
        rows = found["parts"][part]
        assert rows[-1]["recall"][f"LanceDB, {CANDIDATES}"] > 0.9
        assert [row["partitions"] for row in rows] == [1, 1, 1, 1, 2, 5]
        looked = [row["a search looks at"] for row in rows]
        assert looked == ["every vector"] * 3 + ["the index"] * 3
        assert found["threshold"]["all are looked at up to"] == 2492
        assert all(row["made with"]["PARTITION"] == 2000 for row in rows)
        assert [("grown since" in row) for row in rows] == [False] * 3 + [True] * 3
        later = rows[-1]["grown since"]  # the index, and a segment each time
        assert (later["vectors"], later["segments"]) == (300, 4)
        assert later["recall"][f"LanceDB, {CANDIDATES}"] > 0.9


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return module("bench_search")


def test_the_threshold_is_said_beside_where_the_index_overtakes(bench):
    assert bench.threshold(()) is None

    def row(size, exact, index):
        times = {"exact": {"p50": exact}, f"LanceDB, {CANDIDATES}": {"p50": index}}
        return {"vectors": size, "milliseconds": times}

    found = bench.threshold([row(10, 1, 9), row(100, 8, 8.5), row(1000, 70, 9)])
    assert found["all are looked at up to"] == 249_244
    assert found["because of"] == "660,000,000 bytes of memory"
    assert found["index first faster at"] == 1000
    assert found["all of them last faster at"] == 100
    never = bench.threshold([row(10, 1, 9)])
    assert never["index first faster at"] is None
    always = bench.threshold([row(10, 9, 1)])
    assert always["all of them last faster at"] is None
    # What was measured with another number of candidates says nothing of this one.
    assert bench.threshold([{"vectors": 5, "milliseconds": {"exact": {"p50": 1}}}]) is None


def test_what_was_measured_is_kept_when_a_later_size_fails(bench, tmp_path, monkeypatch):
    sizes, grown = [], bench.grown

    def fails(folder, size, asked):
        sizes.append(size)
        if len(sizes) == 3:
            raise MemoryError
        return grown(folder, size, asked[:2])

    monkeypatch.setattr(bench, "grown", fails)
    for name in ("HELD", "PARTITION"):  # put back afterwards: a small run makes them smaller
        monkeypatch.setattr(bench.lance, name, getattr(bench.lance, name))
    words = ["bench_search.py", "--small", tmp_path / "out", "--part", "growth"]
    monkeypatch.setattr(sys, "argv", [*map(str, words), "--folder", str(tmp_path)])
    with torch.enable_grad(), pytest.raises(MemoryError):  # it goes without, and so would others
        bench.main()
    found = json.loads((tmp_path / "out" / "bench-search.json").read_text())
    assert [row["vectors"] for row in found["parts"]["growth"]] == sizes[:2] == [100, 300]
    assert found["runs"].keys() == {"growth"}


def test_sizes_that_this_machine_measured_before_stay(bench):
    old = [{"vectors": 10, "ms": 1}, {"vectors": 30, "ms": 1}]
    runs = {"growth": {"ran_on": {"processor": "one"}}}
    kept = bench.grown_before({"growth": old}, runs, {"processor": "one"})
    assert bench.beside(kept, [{"vectors": 30, "ms": 2}, {"vectors": 20, "ms": 2}]) == [
        {"vectors": 10, "ms": 1},
        {"vectors": 20, "ms": 2},
        {"vectors": 30, "ms": 2},
    ]
    assert bench.grown_before({"growth": old}, runs, {"processor": "another"}) == []
    assert bench.grown_before({}, {}, {"processor": "one"}) == []
    found = {"growth": [old[0] | {"made with": bench.made_with() | {"EFFORT": 1}}, old[1]]}
    assert bench.grown_before(found, runs, {"processor": "one"}) == old[1:]


def test_made_up_vectors_lie_in_few_dimensions_and_so_do_queries():
    world = module("search_world")
    rows = np.concatenate(list(world.embedded(6000, 512, part=2500)))
    assert rows.shape == (6000, 512)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
    _, sizes, axes = np.linalg.svd(rows[:2000] - rows[:2000].mean(0), full_matrices=False)
    assert (sizes[: world.LATENT] ** 2).sum() / (sizes**2).sum() > 0.95
    assert (sizes[: world.LATENT - 8] ** 2).sum() / (sizes**2).sum() < 0.95
    asked = next(world.embedded(50, 512, seed=99))
    assert (asked @ rows.T).max() < 0.95  # none of them is one of the others
    kept = asked @ axes[: world.LATENT].T
    assert (kept**2).sum(1).min() > 0.9  # of their squared length, 1
    # The 500th of 6,000 is still nearer than chance: in 512 free dimensions it would be 0.06.
    products = np.sort(asked @ rows.T, axis=1)[:, ::-1]
    assert products[:, 499].mean() > 0.15
    assert products[:, 9].mean() > products[:, 499].mean() + 0.1


def test_sentences_differ_and_are_as_long_as_captions():
    said = module("search_world").sentences(325)
    assert len(set(said)) == 325
    lengths = [len(one.split()) for one in said]
    assert (min(lengths), max(lengths)) == (8, 17)
    assert 11 <= np.mean(lengths) <= 13


def test_a_recall_below_its_bar_is_missed(capsys):
    report = module("search_report")
    times = {"p50": 1.0, "p95": 1.0}
    rows = [
        {
            "vectors": size,
            "milliseconds": {"exact": times, f"LanceDB, {CANDIDATES}": times},
            "recall": {f"LanceDB, {CANDIDATES}": recall},
        }
        for size, recall in ((1000, 0.99), (2000, 0.94))
    ]
    met = {bar["what"]: bar["met"] for bar in report.check_bars({"growth": rows})}
    assert met[f"stage one, 1,000 vectors, LanceDB, {CANDIDATES}, recall"]
    assert not met[f"stage one, 2,000 vectors, LanceDB, {CANDIDATES}, recall"]
    assert "0.94 (at least 0.95: MISSED)" in capsys.readouterr().out


def test_each_part_remembers_its_own_run(tmp_path):
    report = module("search_report")
    path = tmp_path / "x.json"
    assert report.measured_before(path) == ({}, {})
    old = {"parts": {"a": 1, "b": 2}, "command": "first", "ran_on": {"x": 1}}
    path.write_text(json.dumps(old))
    both = {"command": "first", "ran_on": {"x": 1}}
    assert report.measured_before(path) == ({"a": 1, "b": 2}, {"a": both, "b": both})
    own = {"command": "later", "ran_on": {"x": 2}}
    path.write_text(json.dumps(old | {"runs": {"b": own}}))
    assert report.measured_before(path)[1] == {"a": both, "b": own}
