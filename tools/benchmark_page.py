"""Write docs/benchmarks.md, and the table of speeds in README.md, from results/bench-*.json.

python tools/benchmark_page.py [--check]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

from pages import fill, table

ROOT = Path(__file__).parents[1]
PAGE, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
START, END = "<!-- speed: tools/benchmark_page.py writes this -->", "<!-- end speed -->"
HEAD = ("what", "measured", "bar")

INTRODUCTION = """# Benchmarks

<!-- tools/benchmark_page.py writes this page; tests/test_docs.py holds it to that -->

`make bench` runs all of them, an hour and more on an idle machine; each is one script in
`benchmarks/`, writes JSON to `results/`, and `python tools/benchmark_page.py` makes this page of
it. Two cores, no GPU. Where a figure is a ratio, both sides of it ran in turns in one run on one
machine; the machine is shared, and ratios move by some percent from run to run. A bar is what we
set out to reach before we measured. "The published form" is a paper's computation written out
plainly in `benchmarks/published.py`; the authors' own code was not run. Search and the service
under load were measured again on the AMD of the [results](results.md); nothing else was, neither
there nor since a training step became cheaper."""


@dataclass(frozen=True)
class Speed:
    """A row.

    Args:
        what: was measured.
        measured: the figure.
        bar: what was wanted, and whether it was met; nothing where there was none.
        brief: what README says instead of `what`; nothing for rows that it leaves out.
    """

    what: str
    measured: str
    bar: str = ""
    brief: str = ""


def read(name):
    """Return one benchmark's result, {} where it has not been run."""
    path = ROOT / "results" / f"bench-{name}.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def at_most(found, bar, text="{} x"):
    return f"at most {text.format(bar)}: {verdict(found <= bar)}"


def at_least(found, bar, text="{} x"):
    return f"at least {text.format(bar)}: {verdict(found >= bar)}"


def verdict(met):
    """Say whether a bar was met."""
    return "met" if met else "**missed**"


def both(found):
    """Say a ratio by the wall's clock and by processor time."""
    return f"{found['wall']:.2f} x wall, {found['CPU']:.2f} x CPU"


def scoring():
    """Return the rows of all pairs."""
    found = read("scoring")
    gemm, slower = found["times the GEMM"], found["published form, times ours"]
    rows = []
    for name, bar in (("SCAN t-i AVG", 12), ("SCAN i-t LSE", 12), ("BFAN", 8)):
        whole = at_most(gemm[name]["wall"], 1.3) if name != "BFAN" else ""
        rows += [
            Speed(
                f"{name}, against the bare GEMM",
                both(gemm[name]),
                whole,
                f"{name}, all pairs of 200 images and 1,000 sentences, against the bare GEMM",
            ),
            Speed(
                f"{name}: the published form against ours",
                both(slower[name]),
                at_least(slower[name]["wall"], bar),
                f"{name}: the published form against ours",
            ),
        ]
    rows.append(Speed("Sum-Max t-i, against the bare GEMM", both(gemm["Sum-Max t-i"])))
    products = found["MMCA"]["times its three products"]
    rows.append(Speed("MMCA, against its own three matrix products", both(products)))
    memory, growth = read("memory"), read("growth")
    peak = memory["peak resident bytes"] / 1e9
    rows.append(
        Speed(
            "5,000 images x 25,000 captions, 36 x 1024, scores on disk: peak resident memory",
            f"{peak:.2f} GB; a slice of 1,000 x 5,000 takes {memory['slice']['wall']:.0f} s",
            f"below 3 GB: {verdict(peak < 3)}",
            "5,000 images x 25,000 captions, 36 x 1024, scores on disk: peak resident memory",
        )
    )
    ratio = growth["slowest over fastest"]
    rows.append(
        Speed("10^5 to 10^7 pairs: slowest time a pair over the fastest", f"{ratio:.2f} x", "flat")
    )
    return rows


def training():
    """Return the rows of a training step."""
    steps = read("training")["ratios"]
    rows = []
    for key, what, bar, within in (
        ("SCAN, times the encoders", "SCAN, against its encoders alone", 1.4, at_most),
        ("SCAN, published, times ours", "SCAN: the published form against ours", 4.5, at_least),
        (
            "SCAN, dense Gram form, times ours",
            "SCAN: the Gram form with dense autograd against ours",
            None,
            None,
        ),
        (
            "SCAN, all violations, times the encoders",
            "SCAN over all violations (nearly all pairs), against its encoders",
            None,
            None,
        ),
        (
            "SCAN, published, all violations, times ours",
            "SCAN over all violations: the published form against ours",
            None,
            None,
        ),
        ("BFAN, published, times ours", "BFAN: the published form against ours", 8, at_least),
    ):
        found = steps[key]
        says = within(found["wall"], bar) if within else ""
        rows.append(Speed(what, both(found), says, f"Training step, {what}" if within else ""))
    return rows


def reranking():
    """Return the rows of one sentence against chosen images."""
    found = read("rerank")
    times = found["milliseconds"]
    return [
        Speed(
            f"{name}, against the GEMM and the read",
            f"{ratio:.2f} x, p50 {times[name]['p50']:.0f} ms",
            at_most(ratio, 3),
            f"{name}: one sentence re-ranks 1,000 images, against the GEMM and the read",
        )
        for name, ratio in found["times the GEMM and the read"].items()
    ]


def extraction():
    """Return the rows of pixels to regions."""
    found, objects = read("extract"), read("objects")
    rounds = found["seconds (wall, CPU)"]
    same = [one[f"network, batch {found['batch']}"][0] / one["extract"][0] for one in rounds]
    ratio = statistics.median(same)
    rows = [
        Speed(
            f"`extract` by a grid, {found['photographs']} synthetic photographs of 500 x 375, "
            "against the bare network on ready pixels at the same batch size",
            f"{ratio:.2f} of its speed, the median of {len(rounds)} rounds from {min(same):.2f} "
            f"to {max(same):.2f}",
            at_least(ratio, found["bar"], "{}"),
            "`extract` by a grid, against the bare network on ready pixels",
        )
    ]
    whole = json.loads((ROOT / "results" / "extract-flickr8k.json").read_text("utf-8"))
    rows.append(
        Speed(
            f"`extract` by a grid, Flickr8k's {whole['photographs']:,} photographs",
            f"{whole['seconds']:.0f} s, {whole['images_per_second']:.0f} a second",
        )
    )
    for batch, times in objects["rows"].items():
        names = ("backbone", "proposals and suppression", "RoI align and heads", "choice of 36")
        steps = ", ".join(f"{name} {times[name]:.0f}" for name in names)
        rows.append(
            Speed(
                f"an image by the region model that ships, {objects['detector']['size']} pixels, "
                f"{batch} ({steps})",
                f"{times['whole detector']:.0f} ms",
                brief="an image by the region model that ships" if batch == "batch 4" else "",
            )
        )
    return rows


def searching():
    """Return the rows of search, by the bars that the script itself judged."""
    rows = []
    for bar in read("search").get("bars", ()):
        found = bar["measured"]
        shown = f"{found / 1e9:.2f} GB" if "bytes" in bar["what"] else f"{found:,.4g}"
        wanted = bar["bar"].replace("1,500,000,000", "1.5 GB")
        what = bar["what"].replace(", most resident bytes", ", most resident memory")
        rows.append(Speed(what, shown, f"{wanted}: {verdict(bar['met'])}", what))
    return rows


def growing():
    """Return stage one by the number of vectors, a table and a picture; nothing if not measured."""
    measured = read("search").get("parts", {}).get("growth", ())
    if not measured:
        return []
    asked = [name for name in measured[-1]["milliseconds"] if name != "exact"]
    rows = [
        (
            f"{row['vectors']:,}",
            f"{row['milliseconds']['exact']['p50']:.1f} ms",
            *(f"{row['milliseconds'][name]['p50']:.1f} ms" for name in asked),
            *(f"{row['recall'][name]:.3f}" for name in asked),
            f"{row['seconds to add']:,.1f} s",
            f"{row['seconds to build its index']:,.1f} s",
            f"{row['bytes on disk'] / 1e9:.2f} GB",
        )
        for row in measured
    ]
    head = (
        *("vectors", "p50, all of them in memory"),
        *(f"p50, {name} best" for name in asked),
        *(f"recall, {name} best" for name in asked),
        *("to add", "to build its index", "on disk"),
    )
    return [
        "Stage one alone, by the number of vectors: every one looked at in memory, and LanceDB's "
        "index, with what of the nearest it finds.",
        table(rows, head),
        *(_grown_since(row) for row in measured if "grown since" in row),
        "![Latency against the number of photographs](pictures/bench-search.svg)",
    ]


def _grown_since(row):
    """Say what a query takes and finds once segments have come to an index."""
    later = row["grown since"]
    name = list(row["milliseconds"])[-1]
    before, after = (one["milliseconds"][name]["p50"] for one in (row, later))
    return (
        f"After {later['vectors']:,} vectors more, in {later['segments'] - 1} segments beside the "
        f"index of {row['vectors']:,}: {after:.1f} ms instead of {before:.1f} for {name} best, "
        f"recall {later['recall'][name]:.3f} instead of {row['recall'][name]:.3f}; to take in a "
        f"segment took {later['seconds to take in, each time']:.0f} s."
    )


def serving():
    """Return the rows of the service under load."""
    found = read("serve")
    if not found:
        return []
    met, every = found["bars"], found["all"]
    return [
        Speed(
            f"{found['clients']} clients for {found['seconds']:.0f} s: all requests",
            f"p50 {every['p50 ms']:.0f} ms, p95 {every['p95 ms']:.0f} ms, "
            f"{every['a second']:.0f} a second, errors: {found['errors']}",
            f"no error: {verdict(met['no error'])}",
            f"`serve`, {found['clients']} clients for {found['seconds']:.0f} s",
        ),
        Speed(
            "the server's memory, last quarter of that time against the second",
            f"{found['growth from the second quarter to the last']:.3f} x",
            f"flat: {verdict(met['memory flat'])}",
        ),
        *(
            Speed(
                called.format(ASKED.get(kind, kind)),
                f"p50 {one['p50 ms']:.0f} ms, p95 {one['p95 ms']:.0f} ms",
            )
            for called, kinds in (
                ("{}", found["by kind"]),
                ("{}, one client alone", found.get("one client alone", {})),
            )
            for kind, one in kinds.items()
        ),
    ]


ASKED = {  # what `bench_serve.py` calls it: what is asked for
    "search": "`GET /search`, to its last line",
    "search, first line": "`GET /search`, to its first line",
    "thumbnail": "`GET /images/ID/thumbnail`",
    "explain": "`GET /explain`",
    "ask": "`POST /ask`",
    "page": "`GET /images`",
    "picture": "`POST /search`, a picture",
}


def starting():
    """Return the rows of start-up."""
    found = read("import")
    return [
        Speed(
            f"`{name}`",
            f"{took:.3f} s",
            at_most(took, found["aim"], "{} s") if "cross" in name else "",
        )
        for name, took in found["median seconds of 10"].items()
    ]


def pruning():
    """Return what pruning saves for each kind of regions, as a table."""
    rows = [
        (
            name,
            str(row["directions"]),
            f"{100 * row['share of images scored']:.0f} %",
            f"{row['factor (all / pruned, wall)']:.2f} x",
            row["same top 10"],
        )
        for name, rows in read("pruning")["rows"].items()
        for row in rows
    ]
    return table(rows, ("regions", "directions", "images scored", "speed-up", "same top 10"))


# Title, the script, what it says of its setting, its rows.
SECTIONS = (
    (
        "All pairs",
        ("scoring", "memory", "growth"),
        "[How](scoring.md) a score costs little more than its matrix product. 200 images x 1,000 "
        "captions, 36 regions, D = 1024, float32, unless said.\n\n"
        "![Time a pair against the number of pairs](pictures/bench-growth.svg)",
        scoring,
    ),
    (
        "A training step",
        ("training",),
        "Forward and backward, batch 128, 36 x 2048 regions, D = 1024, a GRU both ways, hardest "
        "negatives unless said.",
        training,
    ),
    (
        "One sentence, chosen images",
        ("rerank",),
        "One caption against 1,000 of 10,000 images, 36 x 1024 float16, mapped, in the page cache.",
        reranking,
    ),
    ("Pixels to regions", ("extract", "objects"), "[More](extract.md).", extraction),
    (
        "Search",
        ("search",),
        "Images of 36 x 512 random but not unstructured regions. [More](search.md#numbers).",
        searching,
    ),
    ("The service under load", ("serve",), "On loopback. [More](serve.md).", serving),
    ("Start", ("import",), "The median of ten.", starting),
)


def where(names):
    """Say where benchmarks ran, and by which commands."""
    found = [read(name) for name in names]
    kinds = dict.fromkeys(
        one.get("ran_on", {}).get("processor") or f"a processor with {one['cpu']}"
        for one in found
        if "cpu" in one
    )
    commands = ", ".join(f"`python benchmarks/bench_{name}.py`" for name in names)
    return commands + (f"; ran on {', '.join(kinds)}." if kinds else ".")


def page():
    """Return docs/benchmarks.md."""
    parts = [INTRODUCTION]
    for title, names, says, rows in SECTIONS:
        made = rows()
        shown = [(row.what, row.measured, row.bar) for row in made]
        parts += [
            f"## {title}",
            f"{says} {where(names)}" if "![" not in says else f"{where(names)} {says}",
        ]
        parts.append(table(shown, HEAD) if made else "**Not measured yet.**")
        parts += growing() if rows is searching else []
    parts += [
        "## The best K without scoring everything",
        "What bounds save, one caption at a time over 4,000 images "
        f"([how](scoring.md#top-k-without-scoring-everything)). {where(['pruning'])}",
        pruning(),
    ]
    return "\n\n".join(parts) + "\n"


def brief():
    """Return README's table."""
    rows = [row for _, _, _, made in SECTIONS for row in made() if row.brief]
    return table([(row.brief, row.measured, row.bar) for row in rows], HEAD)


def main():
    """Write, or say whether the pages are current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if not current")
    args = parser.parse_args()
    readme = README.read_text("utf-8")
    stale = []
    for path, text in ((PAGE, page()), (README, fill(readme, START, END, brief()))):
        if path.is_file() and text == path.read_text("utf-8"):
            continue
        stale.append(path.name)
        if not args.check:
            path.write_text(text, "utf-8")
    if args.check and stale:
        sys.exit(f"not current: {', '.join(stale)}; run python tools/benchmark_page.py")


if __name__ == "__main__":
    main()
