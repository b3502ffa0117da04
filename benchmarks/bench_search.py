"""Search: latency, recall, memory and the cost of indexing, against the bars.

    python benchmarks/bench_search.py [--part two-stage growth indexing keeping] [--small FOLDER]
    python benchmarks/bench_search.py --part growth --sizes 1000000      (others stay as they are)

- two-stage: 100,000 images of 36 x 512 float16 regions (3.7 GB of disk, random but not
  unstructured, see search_world.py), in the system's cache. Bars: p50 below 60 ms, p95 below
  120 ms, 95 % of the exhaustive top 10, resident memory below 1.5 GB (in a process of its own that
  only searches; the most it ever had, with the pages of mapped files, and also what is its own
  alone). The queries are five words of a made-up SCAN (SAID in search_world.py), shorter than a
  caption's 12 or so, so that its GRU reads and its attention compares less than with real ones.
  Then the pair of models that ships (BFAN and VSE++, MiniLM's words) with sentences of 8 to 17
  words over as many images of random kept features, 37 x 512: latency and memory only, by the same
  bars. Both also with MORE candidates, latency alone.
- growth: stage one alone, 10,000 to 1,000,000 vectors of 512 that lie in 48 dimensions: every
  vector in memory against LanceDB's approximate index, which is asked for 100 and for as many as a
  search re-ranks; its build time and recall; beyond what is held in memory also what a query takes
  and finds when the index has grown by LATER segments. Bars, for as many as a search re-ranks:
  1,000,000 below 100 ms, and 95 % of the nearest at every size. "threshold" says up to
  which size a search looks at every vector (HELD in search/lance.py) and from which on the index
  was the faster one.
- indexing: `Index.add` against `extract` on the same photographs. Bar: below 10 % more.
- keeping: candidates' regions out of a region store, read as a search reads them, against out of a
  column of LanceDB's.

Every bar is printed as met or missed and stands in results/bench-search.json, with the command and
the machine of each part's own run under "runs"; of growth each size as soon as it is measured. The
plot is docs/pictures/bench-search.svg. --small runs all of it, to the last line, at a hundredth of
the size to see that it works; its JSON and plot go to FOLDER and say nothing about speed.
"""

import argparse
import itertools
import json
import os
import shutil
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
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.files import bytes_in
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.search import lance
from crossgaze.search.entries import Entry
from crossgaze.search.index import Index
from crossgaze.search.kept import KeptRegions
from crossgaze.search.lance import LanceEngine, entries_held
from crossgaze.search.memory import MemoryEngine
from crossgaze.search.ranking import CANDIDATES, RANKINGS, find_photos
from crossgaze.vision.extract import extract
from search_report import check_bars, machine, measured_before, memory, plot
from search_world import (
    REGIONS,
    MeanOfWords,
    NoSource,
    embedded,
    make_index,
    make_scan,
    make_shipped,
    queries,
    sentences,
)

PARTS = ("two-stage", "growth", "indexing", "keeping")
PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH, TOP = 512, 10
# 250,000: just beyond what is held in memory.
SIZES = (10_000, 30_000, 100_000, 250_000, 500_000, 1_000_000)
COUNTS = sorted({50, 100, 200, 500, 1000, 2000, CANDIDATES})
MORE = 500
SETTINGS = ("PARTITION", "EFFORT", "LEAST", "PROBES", "REFINE", "REFINED")  # of search/lance.py
LATER = 3  # segments that come to an index
ASKED = {"LanceDB, 100": 100, f"LanceDB, {CANDIDATES}": CANDIDATES}


def percentiles(seconds):
    return {
        "p50": round(1e3 * statistics.median(seconds), 2),
        "p95": round(1e3 * statistics.quantiles(seconds, n=20)[-1], 2),
    }


def timed(work):
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


# Two stages ---------------------------------------------------------------------------------------


def two_stage(folder, images, rounds, exhaustive):
    """Give what is found with made-up models, then the same and the models that ship."""
    index, shown = make_index(folder / "index", images)
    index.close()
    np.save(folder / "shown.npy", shown)
    found = searched(folder, rounds, exhaustive)
    yield found
    shutil.rmtree(folder / "index")  # the other takes as much room
    make_shipped(folder / "index", images).close()
    found["shipped"] = searched(folder, rounds, 0)
    print(json.dumps(found, indent=2))
    yield found


def searched(folder, rounds, exhaustive):
    """Search in a process of its own; 0 exhaustive queries are for the models that ship."""
    words = [sys.executable, __file__, "--search-only", str(folder), str(rounds), str(exhaustive)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, env=os.environ)
    return json.loads(done.stdout.splitlines()[-1])


def timed_queries(index, asked, opened):
    """Search for sentences; the first five are to warm up, with the regions read once before.

    A file of gigabytes that was just written may or may not be in the system's cache: here it is.
    """
    for path in index.folder.glob("regions-*/features.bin"):
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 24):
                pass
    loaded, _ = timed(lambda: index.search(asked[0]))
    for query in asked[1:5]:
        index.search(query)
    seconds, steps = [], []
    for query in asked[5:]:
        taken, found = timed(lambda query=query: index.search(query, k=TOP))
        seconds.append(taken)
        steps.append(found.milliseconds)
    used = memory()
    more = [
        timed(lambda query=query: index.search(query, k=TOP, candidates=MORE))[0]
        for query in asked[5:]
    ]
    return {
        "images": len(index),
        "regions": index.describe()["regions"],
        "candidates": CANDIDATES,
        "queries": len(asked) - 5,
        "words of a query": round(statistics.mean(len(query.split()) for query in asked[5:]), 1),
        "milliseconds": percentiles(seconds),
        "p50 by step": {
            step: round(statistics.median(one[step] for one in steps), 2) for step in steps[0]
        },
        f"milliseconds with {MORE} candidates": percentiles(more),
        "seconds to open": round(opened, 3),
        "seconds of the first query": round(loaded, 3),
        "memory, bytes": used,
    }


def search_shipped(folder, rounds):
    """The same with the models that ship, loaded by their names."""
    opened, index = timed(lambda: Index.open(folder / "index"))
    models = [index.head.embedder, index.head.reranker]
    result = {
        "models": [f"{one.source} ({one.family}, {one.digest})" for one in models],
        "numbers of a region that they take": index.reranker.region_width,
        **timed_queries(index, sentences(rounds + 5), opened),
    }
    print(json.dumps(result))


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
    result = timed_queries(index, asked, opened)
    kept = {rank_by: {count: [] for count in COUNTS} for rank_by in RANKINGS}
    whole = []
    for rank_by, query in itertools.product(RANKINGS, asked[5 : 5 + exhaustive]):
        how = {"rank_by": rank_by}
        taken, all_of_them = timed(
            lambda query=query, how=how: index.search(query, TOP, exhaustive=True, **how)
        )
        whole.append(taken)
        wanted = {hit.uid for hit in all_of_them.hits}
        for count, shares in kept[rank_by].items():
            found = find_photos(index, query, TOP, candidates=count, **how)
            shares.append(len(wanted & {hit.uid for hit in found.hits}) / len(wanted))
    result |= {
        "memory after exhaustive searches, bytes": memory(),
        "exhaustive, seconds": round(statistics.median(whole), 3),
        "exhaustive queries": exhaustive,
        "share of the exhaustive top 10 by candidates": {
            str(count): round(statistics.mean(shares), 4) for count, shares in kept["both"].items()
        },
        "the same, ranked by the re-ranker alone": {
            str(count): round(statistics.mean(shares), 4)
            for count, shares in kept["reranker"].items()
        },
    }
    print(json.dumps(result))


# Stage one ----------------------------------------------------------------------------------------


def growth(folder, sizes, rounds):
    """Give the rows so far, one a size: exact in memory against LanceDB's index."""
    asked, rows = next(embedded(rounds, WIDTH, seed=99)), []
    for size in sizes:
        rows.append(grown(folder / f"lance-{size}", size, asked))
        shutil.rmtree(folder / f"lance-{size}")
        print(json.dumps(rows[-1]), flush=True)
        yield rows


def grown_before(found, runs, ran_on):
    """Return the rows that were measured before, on such a machine, of an index made like now's."""
    last = runs.get("growth", {}).get("ran_on", {})
    if last.get("processor") != ran_on["processor"]:
        return []
    now = made_with()
    return [row for row in found.get("growth", []) if row.get("made with", now) == now]


def made_with():
    """Return what decides how LanceDB's index is made and looked into."""
    return {name: getattr(lance, name) for name in SETTINGS}


def beside(before, rows):
    """Return rows by size, those of before where there is no new one."""
    every = {row["vectors"]: row for row in (*before, *rows)}
    return [every[size] for size in sorted(every)]


def grown(folder, size, asked):
    """Return what stage one takes and finds among so many vectors."""
    exact = MemoryEngine(WIDTH)
    exact.reserve(size)
    engine = LanceEngine(folder, "photos", WIDTH, create=True, exact=0)
    added = sum(add_to(engine, exact, part) for part in embedded(size, WIDTH))
    built, _ = timed(engine.tidy)
    found = {
        "vectors": size,
        "a search looks at": "every vector" if size <= entries_held(WIDTH) else "the index",
        "partitions": lance.partitions_of(size),
        **looked_for(engine, exact, asked),
        "seconds to add": round(added, 1),
        "seconds to build its index": round(built, 1),
        "made with": made_with(),
        "bytes on disk": bytes_in(folder),
    }
    if size > entries_held(WIDTH):
        seconds = []
        for seed in range(LATER):
            add_to(engine, exact, next(embedded(lance.UNINDEXED, WIDTH, seed=LATER + seed)))
            seconds.append(timed(lambda: engine.tidy("during"))[0])
        found["grown since"] = {
            "vectors": LATER * lance.UNINDEXED,
            "segments": engine._vector_index().num_segments,
            "seconds to take in, each time": round(statistics.median(seconds), 1),
            **looked_for(engine, exact, asked),
        }
    engine.close()
    return found


def add_to(engine, exact, part):
    """Add vectors to both; return the seconds that the first took."""
    first = len(exact)
    entries = [Entry(first + n + 1, f"/{first + n}", "/") for n in range(len(part))]
    exact.add(entries, part)
    return timed(lambda: engine.add(entries, part))[0]


def looked_for(engine, exact, asked):
    """Return how long queries take, and what of the truth they find."""
    taken = {name: [] for name in ("exact", *ASKED)}
    shares = {name: [] for name in ASKED}
    for query in asked:
        for name, count in ASKED.items():
            seconds, (truth, _) = timed(lambda q=query, c=count: exact.search(q, c, None))
            if count == CANDIDATES:
                taken["exact"].append(seconds)
            seconds, (found, _) = timed(lambda q=query, c=count: engine.search(q, c, None))
            taken[name].append(seconds)
            shares[name].append(len(set(truth.tolist()) & set(found.tolist())) / len(truth))
    return {
        "milliseconds": {name: percentiles(times) for name, times in taken.items()},
        "recall": {name: round(statistics.mean(all_), 4) for name, all_ in shares.items()},
    }


def threshold(rows):
    """Return up to how many vectors a search looks at all, and where the index overtakes that.

    The first is what memory has room for, not what was found to be faster: whether it is a
    crossover as well, the two sizes say. None without rows of as many candidates as now.
    """
    name = f"LanceDB, {CANDIDATES}"
    times = {row["vectors"]: row["milliseconds"] for row in rows if name in row["milliseconds"]}
    if not times:
        return None
    faster = [size for size, row in times.items() if row[name]["p50"] < row["exact"]["p50"]]
    slower = [size for size in times if size not in faster]
    return {
        "all are looked at up to": entries_held(WIDTH),
        "because of": f"{lance.HELD:,} bytes of memory",
        "index first faster at": min(faster, default=None),
        "all of them last faster at": max(slower, default=None),
    }


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

    def index_all(into):
        with Index.create(into, **models) as index:  # loads the region model, as extract does
            return index.add(folder / "photos")

    extract(folder / "photos", folder / "warm")  # so that nobody pays for the first time
    index_all(folder / "warm-index")
    for number in range(rounds):
        out = folder / f"regions-{number}"
        taken["extract"].append(timed(lambda out=out: extract(folder / "photos", out))[0])
        seconds, report = timed(lambda into=folder / f"index-{number}": index_all(into))
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


# Where regions are kept ---------------------------------------------------------------------------


def keeping(folder, photographs, rounds):
    """Fetch the regions of a search's candidates from a store, and from LanceDB."""
    import lancedb
    import pyarrow as pa
    from lancedb.index import BTree

    size = REGIONS * WIDTH
    schema = pa.schema([("uid", pa.int64()), ("regions", pa.list_(pa.float16(), size))])
    table = lancedb.connect(folder / "database").create_table("regions", schema=schema)
    rng = np.random.default_rng(0)
    with RegionWriter(folder / "store", REGIONS, WIDTH, fields=["counts"]) as writer:
        for start in range(0, photographs, 1000):
            uids = range(start, min(start + 1000, photographs))
            rows = rng.random((len(uids), REGIONS, WIDTH), np.float32).astype(np.float16)
            counts = np.full(len(uids), REGIONS)
            writer.append([str(uid) for uid in uids], rows, counts=counts)
            flat = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), size)
            table.add(pa.Table.from_arrays([pa.array(uids, pa.int64()), flat], schema=schema))
    table.optimize()
    table.create_index("uid", config=BTree())
    kept = KeptRegions(folder / "store", 0)
    count = min(CANDIDATES, photographs)
    taken = {"region store": [], "LanceDB": []}
    for _ in range(rounds):
        rows = np.sort(rng.choice(photographs, count, replace=False))
        seconds, one = timed(lambda rows=rows: kept.read(rows))
        taken["region store"].append(seconds)
        wanted = f"uid IN ({', '.join(map(str, rows.tolist()))})"
        seconds, found = timed(
            lambda w=wanted: table.search().where(w).limit(count).to_arrow().sort_by("uid")
        )
        taken["LanceDB"].append(seconds)
        other = found["regions"].combine_chunks().flatten().to_numpy()
        assert np.array_equal(other.reshape(one.shape), one)
    found = {
        "photographs": photographs,
        "fetched": count,
        "milliseconds": {name: percentiles(times) for name, times in taken.items()},
    }
    print(json.dumps(found))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument(
        "--sizes",
        metavar="N",
        nargs="+",
        type=int,
        default=SIZES,
        help="of growth; others that this machine measured before stay",
    )
    parser.add_argument("--small", metavar="FOLDER", type=Path, help="a hundredth, written there")
    parser.add_argument("--folder", type=Path, help="where there is room (default: temporary)")
    parser.add_argument("--search-only", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_grad_enabled(False)
    if args.search_only:
        folder, rounds, exhaustive = args.search_only
        if int(exhaustive):
            search_only(Path(folder), int(rounds), int(exhaustive))
        else:
            search_shipped(Path(folder), int(rounds))
        return
    part = 100 if args.small else 1
    results, pictures = (args.small, args.small) if args.small else (RESULTS, PICTURES)
    pictures.mkdir(parents=True, exist_ok=True)
    # A part that is not measured now keeps what was measured before, and where.
    found, runs = measured_before(results / "bench-search.json")
    command = f"python benchmarks/bench_search.py {' '.join(sys.argv[1:])}".strip()
    # At a hundredth of the size as many partitions, and some sizes on each side of the threshold.
    lance.PARTITION, lance.HELD = lance.PARTITION // part, lance.HELD // part
    lance.UNINDEXED //= part
    for name in args.part:
        ran_on = machine()
        with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
            folder = Path(temporary)
            if name == "two-stage":
                states = two_stage(folder, 100_000 // part, 300 // part + 20, 30 // part + 2)
            if name == "growth":
                sizes = [size // part for size in args.sizes]
                before = grown_before(found, runs, ran_on)
                states = (beside(before, rows) for rows in growth(folder, sizes, 200 // part + 20))
            if name == "indexing":
                states = [indexing(folder, 256 // part + 4, 1 if args.small else 3)]
            if name == "keeping":
                states = [keeping(folder, 20_000 // part, 100 // part + 10)]
            # Written as soon as it is measured: what fails later loses nothing.
            for found[name] in states:
                runs[name] = {"command": command, "ran_on": ran_on}
                write(
                    "search",
                    f"two-stage and stage-one queries, vectors of {WIDTH}, "
                    f"regions 36 x {WIDTH} float16",
                    folder=results,
                    command=command,
                    ran_on=ran_on,
                    runs=runs,
                    parts=found,
                    threshold=threshold(found.get("growth", ())),
                    bars=check_bars(found),
                )
    if "growth" in found:
        plot(found["growth"], found.get("two-stage"), pictures / "bench-search.svg")


if __name__ == "__main__":
    main()
