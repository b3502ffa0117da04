"""Try crossgaze on real photographs that come inside Python packages: no data, no network.

It indexes them, looks for five sentences, asks a question, and writes a report to open.

Examples:
  crossgaze demo
  crossgaze demo --into other/ --json
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from crossgaze.cli.output import add_json, print_json, print_table, program, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the verb's arguments."""
    parser.add_argument(
        "--into", metavar="FOLDER", default="demo", help="where to work (default: demo)"
    )
    parser.add_argument("--embedder", metavar="MODEL", help="instead of the one that ships")
    parser.add_argument("--reranker", metavar="MODEL", help="likewise")
    parser.add_argument("--answerer", metavar="MODEL", default="daquar", help="likewise")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Index the gallery, search it, ask about it, and say how to do the same at home."""
    from crossgaze.demo import SHOWN, judged, run_demo, said, verdict
    from crossgaze.progress import progress_bar

    with progress_bar("Indexing", "photographs") as step:
        done = run_demo(
            args.into,
            embedder=args.embedder,
            reranker=args.reranker,
            answerer=args.answerer,
            on_progress=step,
        )
    if args.json:
        print_json(done.to_dict())
        return 0
    for one in done.searches:
        rows = [
            (hit.rank, f"{hit.score:.3f}", Path(hit.path).name) for hit in one.found.hits[:SHOWN]
        ]
        say(one.sentence)
        print_table(rows, header=("", "score", "photograph"))
        say(f"  {verdict(one)}\n")
    say(f"{done.asked}: {done.reply.question} {said(done.reply)}")
    say(f"  {judged(done.reply, done.wanted)}")
    say(
        f"""
{done.indexed.found} photographs, {len(done.searches)} sentences, a question: {done.seconds:.0f} s.
Open the report: {done.page}
The same with photographs of your own:
  {program()} index MY-PHOTOS/ --into MY-INDEX/
  {program()} search MY-INDEX/ "a dog in the snow"
And the page in your browser:
  {program()} serve {shlex.quote(str(Path(args.into, "index")))}"""
    )
    return 0
