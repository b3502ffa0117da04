"""Index a folder of photographs, ask it five sentences, and write it down: docs/transcript.md.

    python tools/search_transcript.py PHOTOS WORK [--store REGIONS]

WORK gets the index and the report of the first sentence (report.html), to be opened and looked at;
neither belongs in the repository. Commands are run as the page shows them, in WORK, where `photos`
is a link to PHOTOS, and `regions` to a store that `crossgaze extract` made of them. An index that
is there already is kept, and only searched.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path

from first_minutes import commit, machine, said, shorten

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "transcript.md"
# Said before anything was searched for, and none was swapped for an easier one.
SENTENCES = (
    "two dogs playing in the snow",
    "a boy jumps into a swimming pool",
    "a man in a red jacket climbs a rock",
    "a woman rides a bicycle down a street",
    "people sit around a table and eat",
)

HEAD = """# Eight thousand photographs, five sentences

<!-- tools/search_transcript.py writes this page -->

What a terminal showed when Flickr8k's {count:,} photographs were indexed with the models that ship
and searched, as printed by `python tools/search_transcript.py`: {machine}, Python {python},
{commit}. {beside}Times are of whole commands, with Python's start and the models read, which is
most of a search's; `crossgaze serve` and `Index` from Python do that once. The photographs are not
in this repository, and their training part (5,999) is among what the models learned from.
"""

STORED = """\
Their regions had been made before by `crossgaze extract photos regions`, which took {made}; without
`--store regions` the first command makes them itself.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--store", type=Path, help="of crossgaze extract, made before")
    parser.add_argument("--beside", default="", help="what else the machine did, for the page")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    for name, folder in (("photos", args.photos), ("regions", args.store)):
        if folder is not None and not (args.work / name).exists():
            (args.work / name).symlink_to(folder.resolve())
    count = sum(one.suffix == ".jpg" for one in args.photos.iterdir())
    words = {"machine": machine(), "python": platform.python_version(), "commit": commit()}
    parts = [HEAD.format(count=count, beside=f"{args.beside} " * bool(args.beside), **words)]
    if args.store is not None:
        report = json.loads((args.store / "report.json").read_text("utf-8"))
        parts.append(STORED.format(made=said(report["seconds"])))
    for command in commands(stored=args.store is not None):
        seconds, shown = run(command, args.work)
        shown = shown.replace(str(args.photos.resolve()), "photos")  # an index keeps whole paths
        title = shlex.join(command)
        parts.append(f"```console\n$ {title}\n{shown}\n```\n\n{said(seconds)}.\n")
        print(f"{title}: {said(seconds)}", flush=True)
    PAGE.write_text("\n".join(parts), "utf-8")
    print(PAGE, args.work / "report.html")


def commands(*, stored):
    """Return what is typed, one list of words a command.

    Args:
        stored: whether the regions were extracted before.
    """
    index = ["crossgaze", "index", "photos", "--into", "index"]
    search = ["crossgaze", "search", "index"]
    asked = [[*search, sentence, "-k", "5"] for sentence in SENTENCES]
    asked[0] += ["--html", "report.html"]
    return [index + ["--store", "regions"] * stored, index, *asked]


def run(command, folder):
    """Run a command; return its seconds and what it printed, shortened."""
    places = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    began = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": places},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    text = done.stdout.decode("utf-8", "replace")
    return time.perf_counter() - began, shorten(text, done.returncode)


if __name__ == "__main__":
    main()
