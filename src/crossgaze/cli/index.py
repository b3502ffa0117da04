"""Make an index of photographs to search, and keep it up to date.

The same command again looks only at what is new, changed or gone. An index is made with an
embedding model (one vector a photograph) and a re-ranker (words against regions): those that ship,
or your own.

Examples:
  crossgaze index photos/ --into index/
  crossgaze index photos/ --into index/                     (again: what changed)
  crossgaze index photos/ --into index/ --watch
  crossgaze index holidays/ --into index/ --tag holidays
  crossgaze index --sentences captions.txt --into index/
  crossgaze index --from index/ --into other/ --engine http://127.0.0.1:19530/photos
  crossgaze index --into index/ --remove "holidays/*"
  crossgaze index --into index/ --info
  crossgaze index photos/ --into mine/ --embedder my-vsrn/ --reranker my-scan/
  crossgaze extract photos/ regions/
  crossgaze index photos/ --into again/ --store regions/    (whose regions need not be made again)
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossgaze.cli.output import add_json, print_json, print_table, readable_bytes, say
from crossgaze.cli.streams import complain, write
from crossgaze.errors import InputError, one_line

if TYPE_CHECKING:
    from crossgaze.search.index import Index
    from crossgaze.search.report import IndexReport

EVERY = 5.0  # seconds between looks
GRID = ("regions", "grid", "backbone", "size")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the verb's arguments."""
    parser.add_argument(
        "photos", metavar="PHOTOS", nargs="?", help="a folder of photographs, or one of them"
    )
    parser.add_argument("--into", metavar="INDEX", required=True, help="the index's folder")
    parser.add_argument("--embedder", metavar="MODEL", help="gives one vector a photograph")
    parser.add_argument("--reranker", metavar="MODEL", help="compares regions with words")
    parser.add_argument("--detector", metavar="FOLDER", help="another region model than ships")
    parser.add_argument(
        "--store",
        metavar="REGIONS",
        help="take regions that crossgaze extract made of these photographs, the rest as usual",
    )
    parser.add_argument("--regions", metavar="KIND", help="objects (default) or grid")
    parser.add_argument("--grid", metavar="G", help="of a grid: G x G regions")
    parser.add_argument("--backbone", metavar="NAME", help="of a grid, see crossgaze extract")
    parser.add_argument("--size", metavar="PIXELS", help="of a grid, see crossgaze extract")
    parser.add_argument(
        "--engine",
        metavar="NAME",
        help="of a new index: lance (default), milvus (a file), or http://host:19530/name",
    )
    parser.add_argument(
        "--tag", metavar="WORD", action="append", default=[], help="give the photographs this tag"
    )
    parser.add_argument("--sentences", metavar="FILE", help="index sentences, one a line")
    parser.add_argument(
        "--forget-sentences", metavar="FILE", help="take out a file's sentences, if it is gone, too"
    )
    parser.add_argument("--watch", action="store_true", help="go on looking until stopped")
    parser.add_argument(
        "--every",
        metavar="SECONDS",
        type=float,
        help=f"between looks of --watch (default {EVERY:g})",
    )
    parser.add_argument("--from", metavar="OLD", dest="old", help="copy an index to another engine")
    parser.add_argument(
        "--remove",
        metavar="PATTERN",
        help="take photographs out whose paths are such as 'holidays/*', before anything else",
    )
    parser.add_argument("--compact", action="store_true", help="give back unused room")
    parser.add_argument("--info", action="store_true", help="say what the index holds")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Do what was asked, and print what was done."""
    more = [args.photos, args.sentences, args.remove, args.compact, args.info]
    more.append(args.forget_sentences)
    if not any(more) and args.old is None:
        raise InputError(
            "index: got nothing to do, wanted PHOTOS, --sentences, --forget-sentences, --from, "
            "--remove, --compact or --info"
        )
    _require_together(args, alone=not any(more))
    from crossgaze.search.filters import Where
    from crossgaze.search.head import FILE

    gone = None if args.remove is None else Where.of(path=args.remove)
    shown: dict[str, Any] = {}
    if args.old is not None:
        moved = _move(args)
        if not any(more):
            if args.json:
                print_json(moved)
            return 0
        shown["moved"] = moved
    there = "://" in args.into or (Path(args.into) / FILE).exists()
    with _open(args) as index:
        if gone is not None:
            shown["removed"] = index.remove(gone)
        try:
            if args.forget_sentences is not None:
                shown["forgotten"] = index.forget_sentences(args.forget_sentences)
            reports, said = _fill(index, args, there=there)
        except InputError:
            if not there:
                from crossgaze.search.making import unmake_index

                unmake_index(index)
            raise
        if args.compact:
            index.compact()
        if args.json:
            shown |= {name: report.to_dict() for name, report in reports.items()}
            shown["index"] = index.describe()
            (_print_line if args.watch else print_json)(shown)
        else:
            if gone is not None:
                say(f"{shown['removed']:,} photographs removed from the index, by {args.remove!r}")
            if args.forget_sentences is not None:
                of = args.forget_sentences
                say(f"{shown['forgotten']:,} sentences removed from the index, of {of}")
            for name, report in reports.items():
                _show(report, name)
            _info(index)
        if args.watch:
            _watch(index, args, said)
    return 0


def _require_together(args: argparse.Namespace, *, alone: bool) -> None:
    """Refuse options that would say nothing, and what would be noticed late.

    Args:
        args: the verb's.
        alone: whether an index is moved and nothing else is done.
    """
    if args.store is not None and args.photos is None:
        raise InputError("--store: wanted PHOTOS with it, whose regions it holds")
    if args.tag and args.photos is None:
        raise InputError("--tag: wanted PHOTOS with it, which get the tag")
    if args.every is not None and not args.watch:
        raise InputError("--every: wanted --watch with it")
    for name in ("embedder", "reranker"):
        if alone and getattr(args, name) is not None:
            raise InputError(f"--{name}: says nothing with --from, a copy has the index's models")
    if args.watch:
        _require_watchable(args)
    if args.sentences is not None and not Path(args.sentences).exists():
        raise InputError(
            f"{args.sentences}: no such file, wanted a text file of sentences; to take out those "
            f"of a file that is gone: crossgaze index --into {args.into} --forget-sentences FILE"
        )


def _require_watchable(args: argparse.Namespace) -> None:
    """Refuse what no look could mend, before the first of them."""
    from crossgaze.search.entries import clean_tags
    from crossgaze.search.watching import require_every

    if args.photos is None:
        raise InputError("--watch: wanted PHOTOS with it, the folder to look at")
    require_every(_every(args))
    clean_tags(args.tag)


def _every(args: argparse.Namespace) -> float:
    """Return the seconds between looks; none are given where the default is meant."""
    return EVERY if args.every is None else args.every


def _open(args: argparse.Namespace) -> Index:
    from crossgaze.config import load_recipe
    from crossgaze.search.head import FILE
    from crossgaze.search.index import Index
    from crossgaze.vision.settings import ExtractConfig

    folder = Path(args.into)
    given = [f"{name}={getattr(args, name)}" for name in (*GRID, "detector") if getattr(args, name)]
    if not (folder / FILE).exists() and "://" not in args.into:
        if args.photos is None and args.sentences is None:
            raise InputError(f"{folder}: is not an index, it has no {FILE}")
        return Index.create(
            folder,
            embedder=args.embedder,
            reranker=args.reranker,
            detector=load_recipe(ExtractConfig, overrides=given),
            engine=args.engine or "lance",
        )
    index = Index.open(args.into, embedder=args.embedder, reranker=args.reranker)
    for setting in given:
        name, _, value = setting.partition("=")
        if str(index.head.extract.get(name)) != value:
            have = index.head.extract.get(name)
            raise InputError(f"--{name}: got {value}, {folder} was made with {have}")
    if args.engine and args.old is None:
        from crossgaze.search.engines import parse_engine

        if parse_engine(args.engine)[0] != index.head.engine:
            raise InputError(
                f"--engine: got {args.engine}, {folder} is in {index.head.engine}; to move it: "
                f"crossgaze index --from {folder} --into NEW --engine {args.engine}"
            )
    return index


def _fill(
    index: Index, args: argparse.Namespace, *, there: bool
) -> tuple[dict[str, IndexReport], set[str]]:
    """Take in what was named, and return the reports, and what a watch need not say again.

    Over an index that is there already a watch may begin while the folder is away: its disk may
    be mounted later.
    """
    from crossgaze.search.planning import is_away
    from crossgaze.search.watching import unreadable_line

    reports, said = {}, set()
    if args.photos is not None:
        try:
            reports["photographs"] = _photos(index, args)
            said = {unreadable_line(*one) for one in reports["photographs"].unreadable}
        except InputError as error:
            if not (args.watch and there and is_away(index, args.photos)):
                raise
            complain(f"{error}; waiting for it")
            said = {str(error)}
    if args.sentences is not None:
        reports["sentences"] = index.add_sentences(args.sentences)
    return reports, said


def _photos(index: Index, args: argparse.Namespace) -> IndexReport:
    from crossgaze.progress import progress_bar

    with progress_bar("Indexing", "photographs") as step:
        return index.add(args.photos, tags=args.tag, store=args.store, on_progress=step)


def _watch(index: Index, args: argparse.Namespace, said: set[str]) -> None:
    def trouble(line: str) -> None:
        if line not in said:
            complain(line)
        said.discard(line)

    def tell(line: str) -> None:
        if not args.json:
            say(line)

    try:
        tell(f"watching {args.photos}, every {_every(args):g} s; stop with Ctrl-C")
        for report in index.watch(
            args.photos, every=_every(args), tags=args.tag, on_trouble=trouble
        ):
            if args.json:
                _print_line({"photographs": report.to_dict(), "index": {"photographs": len(index)}})
            tell(
                f"{report.added} added, {report.changed} changed, {report.removed} removed; "
                f"{len(index):,} photographs"
            )
    except KeyboardInterrupt:
        tell("stopped; the index is whole")


def _print_line(value: dict[str, Any]) -> None:
    """Print JSON as one line, so that a program reads what comes line by line."""
    write(json.dumps(value) + "\n")
    with suppress(OSError):  # nobody reads any more
        sys.stdout.flush()


def _move(args: argparse.Namespace) -> dict[str, Any]:
    from crossgaze.progress import progress_bar
    from crossgaze.search.moving import move_index

    with progress_bar("Moving", "entries") as step:
        photos, sentences = move_index(
            args.old, args.into, args.engine or "lance", on_progress=step
        )
    if not args.json:
        say(f"{args.into}: {photos:,} photographs, {sentences:,} sentences, {args.old} is kept")
    return {"photographs": photos, "sentences": sentences, "into": args.into}


def _show(report: IndexReport, what: str) -> None:
    rows: list[tuple[str, object]] = [
        (f"{what} found", report.found),
        ("added", f"{report.added:,} in {report.seconds:.1f} s"),
        ("regions from the store", report.stored),
        ("changed", report.changed),
        ("touched", report.touched),
        ("removed", report.removed),
        ("as before", report.unchanged),
        ("unreadable", len(report.unreadable)),
    ]
    print_table([row for row in rows if row[1] or row[0] == f"{what} found"])
    for name, reason in report.unreadable[:5]:
        say(one_line(f"  unreadable: {name}: {reason}"))
    if len(report.unreadable) > 5:
        say(f"  ... and {len(report.unreadable) - 5} more; --json lists them")
    for entry in report.left_out:
        say(one_line(f"  left out: {entry}"))


def _info(index: Index) -> None:
    found = index.describe()
    rows: list[tuple[str, object]] = [
        ("photographs", found["photographs"]),
        ("sentences", found["sentences"]),
        ("engine", found["engine"]),
        ("embedder", _model(found["embedder"])),
        ("re-ranker", _model(found["reranker"])),
        ("kept regions", found["regions"]),
        ("on disk", readable_bytes(found["bytes"])),
    ]
    print_table(rows, title=str(index.folder))
    unused, photos = found["unused_regions"], found["photographs"]
    if unused > max(photos // 5, 100):
        say(f"  {unused:,} regions' rows are unused: crossgaze index --into INDEX --compact")


def _model(stamp: dict[str, str] | None) -> str:
    return "none" if stamp is None else f"{stamp['family']} {stamp['digest'][:8]} {stamp['source']}"
