"""docs/benchmarks.md over made-up results: what it says of search by its size."""

from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[1] / "results"
benchmark_page = pytest.importorskip("benchmark_page", reason="needs tools/")
pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="needs results/")


def measured(vectors, build, stored):
    times = {"exact": 4.04, "LanceDB, 100": 7.0, "LanceDB, 500": 11.0}
    return {
        "vectors": vectors,
        "milliseconds": {name: {"p50": took, "p95": 99.0} for name, took in times.items()},
        "recall": {"LanceDB, 100": 0.9912, "LanceDB, 500": 0.9731},
        "seconds to add": 12.5,
        "seconds to build its index": build,
        "bytes on disk": stored,
    }


@pytest.fixture
def results(monkeypatch):
    """The results as they are, with one part of search more or less."""
    real = benchmark_page.read

    def put(growth):
        def read(name):
            found = real(name)
            if name != "search":
                return found
            parts = {key: part for key, part in found["parts"].items() if key != "growth"}
            return found | {"parts": parts | ({} if growth is None else {"growth": growth})}

        monkeypatch.setattr(benchmark_page, "read", read)
        return benchmark_page.page()

    return put


def test_latency_recall_and_build_time_by_size_are_shown(results):
    page = results([measured(10_000, 3.25, 25_000_000), measured(1_000_000, 1234.5, 2_600_000_000)])
    section = page.partition("\n## Search\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    head, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[-4:]]
    assert head == [
        "vectors",
        "p50, all of them in memory",
        "p50, LanceDB, 100 best",
        "p50, LanceDB, 500 best",
        "recall, LanceDB, 100 best",
        "recall, LanceDB, 500 best",
        "to add",
        "to build its index",
        "on disk",
    ]
    times = ["4.0 ms", "7.0 ms", "11.0 ms", "0.991", "0.973", "12.5 s"]
    assert rows[1:] == [
        ["10,000", *times, "3.2 s", "0.03 GB"],
        ["1,000,000", *times, "1,234.5 s", "2.60 GB"],
    ]
    assert "](pictures/bench-search.svg)" in section


def test_without_that_part_nothing_is_shown_of_it(results):
    page = results(None)
    assert "bench-search.svg" not in page
    assert "to build its index" not in page
    added = results([measured(10_000, 3.0, 1)])
    assert added.replace("\n\n".join(benchmark_page.growing()) + "\n\n", "") == page
