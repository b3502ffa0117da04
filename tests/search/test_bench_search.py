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
            for size in (100, 300, 1000, 3000, 10_000)
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
        assert ["bfan" in shipped["models"][1], "vse++" in shipped["models"][0]] == [True, True]
    if part == "growth":  # where a search looks into every partition, it finds nearly all
        assert found["parts"][part][-1]["recall"][f"LanceDB, {CANDIDATES}"] > 0.9


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
