"""Search: latency, recall, memory and the cost of indexing, against the bars.

    python benchmarks/bench_search.py [--part two-stage growth indexing] [--small]

- two-stage: 100,000 images of 36 x 512 float16 regions (3.7 GB of disk, random but not
  unstructured, see search_world.py). Bars: p50 below 60 ms, p95 below 120 ms, 95 % of the
  exhaustive top 10, resident memory below 1.5 GB (in a process of its own that only searches).
- growth: stage one alone, 10,000 to 1,000,000 vectors of 512: every vector in memory against
  LanceDB's approximate index; its build time and recall@100. Bar: 1,000,000 below 100 ms.
- indexing: `Index.add` against `extract` on the same photographs. Bar: below 10 % more.

--small runs all of it at a hundredth of the size, to see that it works; it writes no result.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from bench_extract import make_photographs
from common import RESULTS, write
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.search.entries import Entry
from crossgaze.search.index import Index
from crossgaze.search.lance import LanceEngine
from crossgaze.search.memory import MemoryEngine
from crossgaze.search.ranking import CANDIDATES, find_photos
from crossgaze.vision.extract import extract
from search_world import MeanOfWords, NoSource, clustered, make_index, make_scan, queries

PARTS = ("two-stage", "growth", "indexing")
PLOT = Path(__file__).parents[1] / "docs" / "pictures" / "bench-search.svg"
WIDTH, TOP = 512, 10
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
COUNTS = (50, 100, 200, 500, 1000, 2000)


def percentiles(seconds):
    return {
        "p50": round(1e3 * statistics.median(seconds), 2),
        "p95": round(1e3 * statistics.quantiles(seconds, n=20)[-1], 2),
    }


def timed(work):
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def memory():
    """Return this process's memory in bytes: its own, mapped files', and the most it ever had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = {
        line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("Rss", "Vm"))
    }
    names = {"own": "RssAnon", "mapped files": "RssFile", "most": "VmHWM"}
    return {name: 1024 * int(kilobytes[key]) for name, key in names.items()}


# Two stages ---------------------------------------------------------------------------------------


def two_stage(folder, images, rounds, exhaustive):
    index, shown = make_index(folder / "index", images)
    index.close()
    np.save(folder / "shown.npy", shown)
    words = [sys.executable, __file__, "--search-only", str(folder), str(rounds), str(exhaustive)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ)
    found = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(found, indent=2))
    return found


def search_only(folder, rounds, exhaustive):
    """What a process that only searches does, and how much memory it takes."""
    scan = make_scan()
    shown = np.load(folder / "shown.npy")
    opened, index = timed(
        lambda: Index.open(
            folder / "index", embedder=MeanOfWords(scan), reranker=scan, source=NoSource()
        )
    )
    asked = queries(shown, rounds + 5)
    loaded, _ = timed(lambda: index.search(asked[0]))
    for query in asked[1:5]:
        index.search(query)
    seconds, steps = [], []
    for query in asked[5:]:
        taken, found = timed(lambda query=query: index.search(query, k=TOP))
        seconds.append(taken)
        steps.append(found.milliseconds)
    used = memory()
    kept = {count: [] for count in COUNTS}
    whole = []
    for query in asked[5 : 5 + exhaustive]:
        taken, all_of_them = timed(lambda query=query: index.search(query, TOP, exhaustive=True))
        whole.append(taken)
        wanted = {hit.uid for hit in all_of_them.hits}
        for count, shares in kept.items():
            found = find_photos(index, query, TOP, candidates=count)
            shares.append(len(wanted & {hit.uid for hit in found.hits}) / len(wanted))
    result = {
        "images": len(index),
        "candidates": CANDIDATES,
        "queries": rounds,
        "milliseconds": percentiles(seconds),
        "p50 by step": {
            step: round(statistics.median(one[step] for one in steps), 2) for step in steps[0]
        },
        "seconds to open": round(opened, 3),
        "seconds of the first query": round(loaded, 3),
        "memory, bytes": used,
        "exhaustive, seconds": round(statistics.median(whole), 3),
        "exhaustive queries": exhaustive,
        "share of the exhaustive top 10 by candidates": {
            str(count): round(statistics.mean(shares), 4) for count, shares in kept.items()
        },
    }
    print(json.dumps(result))


# Stage one ----------------------------------------------------------------------------------------


def growth(folder, sizes, rounds):
    """Exact in memory against LanceDB's index, by size."""
    rows = []
    asked = next(clustered(rounds, WIDTH, seed=99))
    for size in sizes:
        exact = MemoryEngine(WIDTH)
        exact.reserve(size)
        engine = LanceEngine(folder / f"lance-{size}", "photos", WIDTH, create=True, exact=0)
        added = 0.0
        start = 0
        for part in clustered(size, WIDTH):
            entries = [Entry(start + n + 1, f"/{start + n}", "/") for n in range(len(part))]
            exact.add(entries, part)
            added += timed(lambda e=engine, rows=entries, part=part: e.add(rows, part))[0]
            start += len(part)
        built, _ = timed(engine.tidy)
        taken = {"exact": [], "LanceDB": []}
        shares = []
        for query in asked:
            seconds, (truth, _) = timed(lambda q=query, e=exact: e.search(q, 100, None))
            taken["exact"].append(seconds)
            seconds, (found, _) = timed(lambda q=query, e=engine: e.search(q, 100, None))
            taken["LanceDB"].append(seconds)
            shares.append(len(set(truth.tolist()) & set(found.tolist())) / len(truth))
        rows.append(
            {
                "vectors": size,
                "milliseconds": {name: percentiles(times) for name, times in taken.items()},
                "recall@100 of LanceDB": round(statistics.mean(shares), 4),
                "seconds to add": round(added, 1),
                "seconds to build its index": round(built, 1),
                "bytes on disk": sum(
                    p.stat().st_size for p in engine.folder.rglob("*") if p.is_file()
                ),
            }
        )
        print(json.dumps(rows[-1]))
    return rows


def plot(rows, two_stages):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "crossgaze"
    figure, axes = pyplot.subplots(figsize=(6, 3.2), layout="constrained")
    sizes = [row["vectors"] for row in rows]
    for name, label, style in (
        ("exact", "every vector, in memory", {"color": "#0072b2", "marker": "o"}),
        ("LanceDB", "LanceDB's approximate index", {"color": "#d55e00", "marker": "s"}),
    ):
        axes.plot(sizes, [row["milliseconds"][name]["p50"] for row in rows], label=label, **style)
    if two_stages:
        at, took = two_stages["images"], two_stages["milliseconds"]["p50"]
        axes.plot([at], [took], "*", color="#009e73", markersize=12, label="both stages")
    axes.set(xscale="log", yscale="log", xlabel="photographs", ylabel="p50, ms")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PLOT, metadata={"Date": None})
    print(f"drawn to {PLOT}")


# Indexing -----------------------------------------------------------------------------------------


def indexing(folder, photographs, rounds):
    """`extract` and `Index.add` on the same photographs, in turn."""
    (folder / "photos").mkdir()
    make_photographs(folder / "photos", photographs)
    words = Vocabulary.build(["a dog in the snow ."], min_count=1)
    models = {
        "embedder": Vse(VseConfig(region_width=1792, size=WIDTH), words),
        "reranker": Scan(ScanConfig(region_width=1792, size=WIDTH), words),
    }
    taken = {"extract": [], "index": []}
    shares = []
    for number in range(rounds):
        out = folder / f"regions-{number}"
        taken["extract"].append(timed(lambda out=out: extract(folder / "photos", out))[0])
        index = Index.create(folder / f"index-{number}", **models)
        seconds, report = timed(lambda index=index: index.add(folder / "photos"))
        taken["index"].append(seconds)
        shares.append(report.busy / seconds)
    ratios = [i / e for i, e in zip(taken["index"], taken["extract"], strict=True)]
    found = {
        "photographs": photographs,
        "seconds": {name: [round(one, 2) for one in times] for name, times in taken.items()},
        "index over extract, median": round(statistics.median(ratios), 4),
        "share of encoding, writing and acknowledging": round(statistics.median(shares), 4),
        "bar": 1.1,
    }
    print(json.dumps(found))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--folder", type=Path, help="where there is room (default: temporary)")
    parser.add_argument("--search-only", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_grad_enabled(False)
    if args.search_only:
        folder, rounds, exhaustive = args.search_only
        search_only(Path(folder), int(rounds), int(exhaustive))
        return
    part = 100 if args.small else 1
    old = RESULTS / "bench-search.json"
    # A part that is not measured now keeps what was measured before.
    found = json.loads(old.read_text())["parts"] if old.is_file() and not args.small else {}
    for name in args.part:
        with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
            folder = Path(temporary)
            if name == "two-stage":
                found[name] = two_stage(folder, 100_000 // part, 300 // part + 20, 100 // part + 2)
            if name == "growth":
                found[name] = growth(folder, [size // part for size in SIZES], 200 // part + 20)
            if name == "indexing":
                found[name] = indexing(folder, 256 // part + 4, 1 if args.small else 3)
    if args.small:
        return
    if "growth" in found:
        plot(found["growth"], found.get("two-stage"))
    write(
        "search",
        f"two-stage and stage-one queries, vectors of {WIDTH}, regions 36 x {WIDTH} float16",
        parts=found,
        bars={
            "two-stage p50 ms": 60,
            "two-stage p95 ms": 120,
            "share of the exhaustive top 10": 0.95,
            "memory bytes": 1_500_000_000,
            "1,000,000 vectors p50 ms": 100,
            "index over extract": 1.1,
        },
    )


if __name__ == "__main__":
    main()
