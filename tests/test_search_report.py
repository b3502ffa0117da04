"""The bars of bench_search.py, over what was measured before the number of candidates changed."""

import importlib.util
from pathlib import Path

import pytest

PLACE = Path(__file__).parents[1] / "benchmarks" / "search_report.py"


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(PLACE.parent)  # what benchmarks share lies beside it
    spec = importlib.util.spec_from_file_location("search_report", PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(*asked):
    times = {f"LanceDB, {count}": {"p50": float(count), "p95": 1.0} for count in asked}
    return {"vectors": 1000, "milliseconds": {"exact": {"p50": 1.0, "p95": 1.0}} | times}


@pytest.mark.parametrize("now", [500, 123])
def test_bars_outlive_another_number_of_candidates(report, monkeypatch, tmp_path, now):
    monkeypatch.setattr(report, "CANDIDATES", now)
    found = {
        "two-stage": {
            "images": 10,
            "candidates": 500,
            "milliseconds": {"p50": 50, "p95": 90},
            "share of the exhaustive top 10 by candidates": {"100": 0.5, "500": 0.97},
            "the same, ranked by the re-ranker alone": {"100": 0.4, "500": 0.94},
            "memory, bytes": {"most resident": 5},
        },
        "growth": [measured(50, 99)],
    }
    rows = {row["what"]: row for row in report.check_bars(found)}
    alone = "two-stage query, 10 images, 500 candidates, share of the exhaustive top 10"
    assert not rows[f"{alone}, by the re-ranker alone"]["met"]
    share = rows[alone]
    assert (share["measured"], share["met"]) == (0.97, True)
    assert rows["stage one, 1,000 vectors, LanceDB, 99, p50 ms"]["met"]
    report.plot([measured(100, 99)], found["two-stage"], tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").stat().st_size
    found["growth"] = [measured(100, now, 2000)]
    assert any(f"LanceDB, {now}," in row["what"] for row in report.check_bars(found))
    del found["two-stage"]["share of the exhaustive top 10 by candidates"]["500"]
    assert len(report.check_bars(found)) == len(rows) - 1
