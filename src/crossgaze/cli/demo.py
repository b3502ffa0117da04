"""Try crossgaze on real photographs that come inside Python packages: no data, no network.

Examples:
  crossgaze demo
  crossgaze demo --into other/ --json
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from crossgaze.cli.output import add_json, print_json, print_table, program, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the verb's arguments."""
    parser.add_argument(
        "--into", metavar="FOLDER", default="demo", help="where to work (default: demo)"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Build the gallery, extract it, and show which photographs look alike."""
    from crossgaze.demo import run_demo
    from crossgaze.progress import progress_bar

    with progress_bar("Extracting", "photographs") as step:
        report, store, alike = run_demo(args.into, on_progress=step)
    if args.json:
        rows = [asdict(row) for row in alike]
        print_json({"report": report.to_dict(), "store": store.describe(), "alike": rows})
        return 0
    say(
        f"{len(store)} photographs became up to {store.head.regions} regions each "
        f"({report.extracted} now, in {report.seconds:.1f} s).\n"
    )
    table = [(row.photograph, row.most_like, f"{row.cosine:.2f}") for row in alike]
    print_table(table, header=["photograph", "looks most like", "cosine"])
    say(
        f"""
The photographs are in {args.into}/photos, their regions in {args.into}/regions:
  {program()} store info {args.into}/regions
  {program()} store verify {args.into}/regions
The same with photographs of your own:
  {program()} extract MY-PHOTOS/ MY-REGIONS/"""
    )
    return 0
