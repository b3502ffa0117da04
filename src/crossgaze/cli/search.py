"""Find photographs by a sentence, or those like a picture.

Examples:
  crossgaze search index/ "two dogs playing in the snow"
  crossgaze search index/ "a red car" -k 20 --path "2024/*" --since 2024-05-01 --tag holidays
  crossgaze search index/ "a red car" --html report.html
  crossgaze search index/ --image query.jpg
  crossgaze search http://127.0.0.1:19530/photos "a red car" --json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from crossgaze.cli.output import add_json, print_json, print_table, say
from crossgaze.cli.streams import complain
from crossgaze.errors import InputError, one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the verb's arguments."""
    parser.add_argument("index", metavar="INDEX", help="an index's folder, or its Milvus URL")
    parser.add_argument("query", metavar="SENTENCE", nargs="?", help="what to look for")
    parser.add_argument("--image", metavar="FILE", help="a picture to find the like of")
    parser.add_argument("-k", metavar="N", type=int, default=10, help="how many (default 10)")
    parser.add_argument("--exhaustive", action="store_true", help="re-rank every photograph")
    parser.add_argument(
        "--candidates", metavar="N", type=int, help="photographs that are re-ranked"
    )
    parser.add_argument(
        "--rank-by",
        choices=("both", "reranker"),
        default="both",
        help="the mean of both models' scores (default), or the re-ranker's alone",
    )
    parser.add_argument("--path", metavar="PATTERN", help="only paths such as '2024/*.jpg'")
    parser.add_argument("--since", metavar="DAY", help="taken on this day or later, 2024-05-01")
    parser.add_argument("--until", metavar="DAY", help="taken on this day or earlier")
    parser.add_argument("--larger", metavar="BYTES", help="files of at least, such as 200KB")
    parser.add_argument("--smaller", metavar="BYTES", help="files of at most, such as 5MB")
    parser.add_argument(
        "--tag", metavar="WORD", action="append", default=[], help="with this tag (again: and)"
    )
    parser.add_argument("--html", metavar="FILE", help="write a report with pictures")
    parser.add_argument("--embedder", metavar="MODEL", help="where the index's model is now")
    parser.add_argument("--reranker", metavar="MODEL", help="likewise")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Search, and print what was found."""
    if (args.query is None) == (args.image is None):
        raise InputError("search: wanted a SENTENCE or --image FILE, one of them")
    if args.image is not None and args.exhaustive:
        raise InputError("--exhaustive: is for a sentence, pictures are compared by vectors")
    if args.image is not None and args.rank_by != "both":
        raise InputError("--rank-by: is for a sentence, pictures are compared by vectors")
    from crossgaze.search.filters import Where
    from crossgaze.search.index import Index

    where = Where.of(
        path=args.path,
        since=args.since,
        until=args.until,
        larger=args.larger,
        smaller=args.smaller,
        tags=args.tag,
    )
    with Index.open(args.index, embedder=args.embedder, reranker=args.reranker) as index:
        found = index.search(
            args.query if args.image is None else Path(args.image),
            args.k,
            where=where or None,
            candidates=args.candidates,
            exhaustive=args.exhaustive,
            rank_by=args.rank_by,
        )
        if args.html is not None:
            from crossgaze.search.page import write_page

            write_page(index, found, args.html)
    if args.json:
        print_json(found.to_dict())
        return 0
    for note in found.notes:
        complain(one_line(note))
    rows = [(hit.rank, f"{hit.score:.3f}", hit.path) for hit in found.hits]
    print_table(rows, header=("", "score", "photograph"), title=found.query)
    if found.sentences:
        lines = [(one.rank, f"{one.score:.3f}", one.text) for one in found.sentences]
        print_table(lines, header=("", "score", "sentence"))
    taken = sum(found.milliseconds.values())
    say(f"{found.how}, {found.looked_at:,} of {found.total:,} looked at, {taken:.0f} ms")
    if args.html is not None:
        say(f"written to {args.html}")
    return 0
