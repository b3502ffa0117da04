"""Write the tables of measured speeds into docs/scoring.md and README.md from results/bench-*.json.

python tools/benchmark_table.py [--check]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def read(name):
    """Return one benchmark's result."""
    return json.loads((ROOT / "results" / f"bench-{name}.json").read_text("utf-8"))


def verdict(met):
    """Say whether a bar was met."""
    return "met" if met else "**missed**"


def speed_rows():
    """Return (work, measured, bar) of every bar."""
    scoring, training = read("scoring"), read("training")
    rerank, memory, growth = read("rerank"), read("memory"), read("growth")
    gemm, slower = scoring["times the GEMM"], scoring["published form, times ours"]
    steps = training["ratios"]
    peak = memory["peak resident bytes"] / 1e9

    def both(found):
        return f"{found['wall']:.2f} x wall, {found['CPU']:.2f} x CPU"

    rows = []
    for name in ("SCAN t-i AVG", "SCAN i-t LSE"):
        met = gemm[name]["wall"] <= 1.3
        rows.append(
            (
                f"{name}, 200 x 1,000, D = 1024, against the bare GEMM",
                both(gemm[name]),
                f"at most 1.3 x: {verdict(met)}",
            )
        )
        met = slower[name]["wall"] >= 12
        rows.append(
            (
                f"{name}: the published form against ours",
                both(slower[name]),
                f"at least 12 x: {verdict(met)}",
            )
        )
    rows.append(("BFAN: against the bare GEMM", both(gemm["BFAN"]), ""))
    rows.append(
        (
            "BFAN: the published form against ours",
            both(slower["BFAN"]),
            f"at least 8 x: {verdict(slower['BFAN']['wall'] >= 8)}",
        )
    )
    rows.append(("Sum-Max t-i, against the bare GEMM", both(gemm["Sum-Max t-i"]), ""))
    rows.append(
        (
            "MMCA, against its own three matrix products",
            both(scoring["MMCA"]["times its three products"]),
            "",
        )
    )
    for name, text, bar, most in (
        (
            "SCAN, times the encoders",
            "SCAN training step, batch 128, against its encoders alone",
            1.4,
            True,
        ),
        (
            "SCAN, published, times ours",
            "SCAN training step: the published form against ours",
            4.5,
            False,
        ),
        (
            "SCAN, dense Gram form, times ours",
            "SCAN training step: the Gram form with dense autograd against ours",
            None,
            False,
        ),
        (
            "SCAN, all violations, times the encoders",
            "SCAN training step over all violations (nearly all pairs), against its encoders",
            None,
            True,
        ),
        (
            "SCAN, published, all violations, times ours",
            "SCAN training step over all violations: the published form against ours",
            None,
            False,
        ),
        (
            "BFAN, published, times ours",
            "BFAN training step: the published form against ours",
            8,
            False,
        ),
    ):
        found = steps[name]
        says = ""
        if bar:
            met = found["wall"] <= bar if most else found["wall"] >= bar
            says = f"at {'most' if most else 'least'} {bar} x: {verdict(met)}"
        rows.append((text, both(found), says))
    ranked = rerank["times the GEMM and the read"]
    times = rerank["milliseconds"]
    for name in ranked:
        rows.append(
            (
                f"{name}: one caption re-ranks 1,000 images (36 x 1024 float16, mapped), against"
                " the GEMM and the read",
                f"{ranked[name]:.2f} x, p50 {times[name]['p50']:.0f} ms",
                f"at most 3 x: {verdict(ranked[name] <= 3)}",
            )
        )
    rows.append(
        (
            "5,000 images x 25,000 captions, 36 x 1024, scores on disk: peak resident memory",
            f"{peak:.2f} GB; a slice of 1,000 x 5,000 takes {memory['slice']['wall']:.0f} s",
            f"below 3 GB: {verdict(peak < 3)}",
        )
    )
    rows.append(
        (
            "10^5 to 10^7 pairs: slowest time a pair over the fastest",
            f"{growth['slowest over fastest']:.2f} x",
            "flat",
        )
    )
    return rows


def table(rows, head):
    """Return a Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def pruning_rows():
    """Return what pruning saves for each kind of regions."""
    return [
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


def fill(path, start, end, text):
    """Return a page with what stands between two comments replaced."""
    page = path.read_text("utf-8")
    before, rest = page.split(start)
    _, after = rest.split(end)
    return f"{before}{start}\n{text}\n{end}{after}"


def main():
    """Write, or say whether the pages are current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if not current")
    args = parser.parse_args()
    measured = table(speed_rows(), ("what", "measured", "bar"))
    pruned = table(
        pruning_rows(), ("regions", "directions", "images scored", "speed-up", "same top 10")
    )
    stale = []
    for path, start, end, text in (
        (
            ROOT / "docs/scoring.md",
            "<!-- measured: tools/benchmark_table.py writes this -->",
            "<!-- end -->",
            measured,
        ),
        (
            ROOT / "docs/scoring.md",
            "<!-- pruning: tools/benchmark_table.py writes this -->",
            "<!-- end pruning -->",
            pruned,
        ),
        (
            ROOT / "README.md",
            "<!-- scoring: tools/benchmark_table.py writes this -->",
            "<!-- end scoring -->",
            measured,
        ),
    ):
        page = fill(path, start, end, text)
        if page == path.read_text("utf-8"):
            continue
        stale.append(path.name)
        if not args.check:
            path.write_text(page, "utf-8")
    if args.check and stale:
        sys.exit(f"not current: {', '.join(stale)}; run python tools/benchmark_table.py")


if __name__ == "__main__":
    main()
