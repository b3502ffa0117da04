"""What bench_search.py says beside its numbers: memory, machine, bars met or missed, the plot."""

import importlib.metadata
import json
import os
from pathlib import Path

from common import machine as computer
from crossgaze.search.ranking import CANDIDATES


def memory():
    """Return this process's memory in bytes.

    "resident" is "own" and the pages of "mapped files" that it holds, which the system takes back
    when it needs them; "proportional" counts a page that several processes hold in part.
    """
    kilobytes = {}
    for file in ("status", "smaps_rollup"):
        for line in Path(f"/proc/self/{file}").read_text().splitlines():
            name, _, rest = line.partition(":")
            if rest.endswith(" kB"):
                kilobytes[f"{file} {name}"] = int(rest.split()[0])
    names = {
        "resident": "status VmRSS",
        "own": "status RssAnon",
        "mapped files": "status RssFile",
        "proportional": "smaps_rollup Pss",
        "most resident": "status VmHWM",
    }
    return {name: 1024 * kilobytes[key] for name, key in names.items()}


def machine():
    """Return what it ran on, how busy that was, and by which packages."""
    packages = ("lancedb", "numpy", "pyarrow")
    return {
        **computer(),
        "load before": round(os.getloadavg()[0], 2),
        **{package: importlib.metadata.version(package) for package in packages},
    }


def measured_before(path):
    """Return the parts that a result holds and, by part, the command and the machine of its run.

    An older result has one command and one machine for all of it.
    """
    if not path.is_file():
        return {}, {}
    old = json.loads(path.read_text())
    of_all = {key: old[key] for key in ("command", "ran_on") if key in old}
    return old["parts"], {name: old.get("runs", {}).get(name, of_all) for name in old["parts"]}


def check_bars(found):
    """Return each bar with what was measured and whether it is met; those that were measured."""
    rows = []

    def bar(what, measured, most=None, least=None):
        met = measured < most if least is None else measured >= least
        limit = f"below {most:,}" if least is None else f"at least {least}"
        rows.append({"what": what, "measured": measured, "bar": limit, "met": bool(met)})

    if "two-stage" in found:
        part = found["two-stage"]
        name = f"two-stage query, {part['images']:,} images"
        bar(f"{name}, p50 ms", part["milliseconds"]["p50"], 60)
        bar(f"{name}, p95 ms", part["milliseconds"]["p95"], 120)
        # As many candidates as when it was measured, which may have been more or fewer than now.
        count = str(part.get("candidates", CANDIDATES))
        for key, by in (
            ("share of the exhaustive top 10 by candidates", ""),
            ("the same, ranked by the re-ranker alone", ", by the re-ranker alone"),
        ):
            kept = part.get(key, {}).get(count)
            if kept is not None:
                what = f"{name}, {count} candidates, share of the exhaustive top 10{by}"
                bar(what, kept, least=0.95)
        bar(f"{name}, most resident bytes", part["memory, bytes"]["most resident"], 1_500_000_000)
        if "shipped" in part:
            part = part["shipped"]
            name = f"two-stage query, the models that ship, {part['images']:,} images"
            bar(f"{name}, p50 ms", part["milliseconds"]["p50"], 60)
            bar(f"{name}, p95 ms", part["milliseconds"]["p95"], 120)
            used = part["memory, bytes"]["most resident"]
            bar(f"{name}, most resident bytes", used, 1_500_000_000)
    if "growth" in found:
        part = found["growth"][-1]
        name = asked_for_ranking(part)
        took = part["milliseconds"][name]["p50"]
        bar(f"stage one, {part['vectors']:,} vectors, {name}, p50 ms", took, 100)
        for row in found["growth"]:
            kept = row.get("recall", {}).get(asked_for_ranking(row))
            if kept is not None:
                what = f"stage one, {row['vectors']:,} vectors, {asked_for_ranking(row)}, recall"
                bar(what, kept, least=0.95)
    if "indexing" in found:
        bar("index over extract", found["indexing"]["index over extract, median"], 1.1)
    for row in rows:
        met = "met" if row["met"] else "MISSED"
        print(f"{row['what']}: {row['measured']:,} ({row['bar']}: {met})")
    return rows


def asked_for_ranking(row):
    """Return what LanceDB is called in a row of "growth" where it was asked for what is re-ranked.

    That is as many as now; in what was measured with another number, the most it was asked for.
    """
    now = f"LanceDB, {CANDIDATES}"
    if now in row["milliseconds"]:
        return now
    names = [name for name in row["milliseconds"] if name.startswith("LanceDB, ")]
    return max(names, key=lambda name: int(name.split(", ")[1]))


def plot(rows, two_stages, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "crossgaze"
    figure, axes = pyplot.subplots(figsize=(6, 3.2), layout="constrained")
    sizes, most = [row["vectors"] for row in rows], asked_for_ranking(rows[-1])
    for name, label, style in (
        ("exact", "every vector, in memory", {"color": "#0072b2", "marker": "o"}),
        ("LanceDB, 100", "LanceDB's index, 100 best", {"color": "#e69f00", "marker": "^"}),
        (most, f"LanceDB's index, {most.split(', ')[1]} best", {"color": "#d55e00", "marker": "s"}),
    ):
        axes.plot(sizes, [row["milliseconds"][name]["p50"] for row in rows], label=label, **style)
    if two_stages:
        at, took = two_stages["images"], two_stages["milliseconds"]["p50"]
        axes.plot([at], [took], "*", color="#009e73", markersize=12, label="both stages")
    axes.set(xscale="log", yscale="log", xlabel="photographs", ylabel="p50, ms")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    print(f"drawn to {path}")
