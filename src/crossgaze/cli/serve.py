"""Serve an index: a page to search it with, and the same over HTTP.

Only this machine can reach it unless --host says otherwise, and then a token is wanted: in
CROSSGAZE_TOKEN, or as --token (which others on this machine can see). With --add an INDEX that is
not there yet is made, empty, as crossgaze index makes one; the page fills it.

Examples:
  crossgaze serve index/
  crossgaze serve index/ --answerer my-rdan/ --port 8080
  crossgaze serve index/ --add photos/ --add holidays/
  crossgaze serve new/ --add photos/
  crossgaze serve index/ --host 0.0.0.0 --token 0123456789abcdef0123456789abcdef
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from crossgaze.cli.output import say
from crossgaze.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from crossgaze.search.index import Index
    from crossgaze.web.asker import Asker

ANSWERER = "daquar"  # of the zoo


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the verb's arguments."""
    parser.add_argument("index", metavar="INDEX", help="an index's folder, or its Milvus URL")
    parser.add_argument("--host", metavar="NAME", default="127.0.0.1", help="default 127.0.0.1")
    parser.add_argument(
        "--port", metavar="N", type=int, default=8000, help="default 8000; 0 for a free one"
    )
    parser.add_argument("--token", metavar="TEXT", help="what clients must show")
    parser.add_argument(
        "--add",
        metavar="FOLDER",
        action="append",
        default=[],
        help="a folder that the page may add to the index (again: another); an INDEX that is not "
        "there is made then, empty",
    )
    parser.add_argument(
        "--answerer",
        metavar="MODEL",
        help=f"answers questions (default: {ANSWERER}, which ships; none for no questions)",
    )
    parser.add_argument("--embedder", metavar="MODEL", help="where the index's model is now")
    parser.add_argument("--reranker", metavar="MODEL", help="likewise")
    parser.add_argument(
        "--rate",
        metavar="N",
        type=float,
        help="requests a second from one address (default: any on this machine's own address "
        "without a token, else 20)",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until stopped."""
    if not 0 <= args.port <= 65535:
        raise InputError(f"--port: got {args.port}, wanted 0 to 65535")
    from crossgaze.web.app import create_app
    from crossgaze.web.server import address_elsewhere, address_of, bind, serve
    from crossgaze.web.settings import ServeConfig

    config = ServeConfig(
        host=args.host,
        token=args.token or os.environ.get("CROSSGAZE_TOKEN") or None,
        folders=tuple(map(Path, args.add)),
        rate=args.rate,
    )
    with (
        bind(args.host, args.port) as bound,  # before anything is loaded
        _index(args) as index,
    ):
        app = create_app(index, config, asker=_asker(args.answerer))
        bound.listen()  # whoever reads the next line may come at once
        named = address_elsewhere(bound, args.host)
        say(
            f"{len(index):,} photographs at {address_of(bound, args.host)} ("
            + (f"others open {named}; " if named else "")
            + "stop with Ctrl-C)"
        )
        serve(app, bound)
    say("stopped")
    return 0


def _index(args: argparse.Namespace) -> Index:
    """Open the index, or make it where nothing is and something can be added."""
    from crossgaze.search.engines import find_folder
    from crossgaze.search.index import Index
    from crossgaze.search.places import is_free

    models = {"embedder": args.embedder, "reranker": args.reranker}
    if "://" in args.index or not is_free(folder := find_folder(args.index)):
        return Index.open(args.index, **models)
    if not args.add:
        wrong = "is not an index" if folder.is_dir() else "no such folder, wanted an index"
        raise InputError(
            f"{folder}: {wrong}; to make one: crossgaze index PHOTOS --into {folder}, or "
            f"crossgaze serve {folder} --add PHOTOS, and add PHOTOS on the page"
        )
    made = Index.create(folder, **models)
    say(f"{folder}: a new index, empty until a folder is added on the page")
    return made


def _asker(name: str | None) -> Asker | None:
    from crossgaze.models.finding import ZOO
    from crossgaze.models.pretrained import load_answerer
    from crossgaze.web.asker import Asker

    if name == "none":
        return None
    try:
        return Asker(load_answerer(ZOO / ANSWERER if name is None else name))
    except MissingExtraError as error:
        if name is not None:
            raise
        say(f"questions are off: {error}")
        return None
