"""Index a folder of photographs, search it, and write it down: docs/transcript.md.

    python tools/search_transcript.py PHOTOS WORK [--store REGIONS] [--page FILE.md]

Five sentences, one of them again with filters and once more for a program, and a picture. WORK gets
the index and the report of the first sentence (report.html), to be opened and looked at; neither
belongs in the repository. Commands are run as the page shows them, in WORK, where `photos` is a
link to PHOTOS, and `regions` to a store that `crossgaze extract` made of them. WORK may hold no
index yet: the page shows how one is made. A command that fails is shown and ends it, and the page
stays as it was.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
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

HEAD = """# A search from beginning to end

<!-- tools/search_transcript.py writes this page -->

Flickr8k's {count:,} photographs, the models that ship, and what a terminal showed: every command
of this page was run one after another by `python tools/search_transcript.py`, on {machine}, with
Python {python}, at {commit}. {beside}The time under each is of the whole command, with Python's
start and the reading of the models, which is most of a search's; the milliseconds that a search
prints are its own. [`crossgaze serve`](serve.md) and [`Index` from Python](search.md) start once
for many searches. The photographs are not in this repository, and their training part (5,999) is
among what the models learned from.
"""

STORED = """\
The photographs' regions had been made before by `crossgaze extract photos regions`, which took
{made}. Without `--store regions` this command makes them itself.
"""


@dataclass(frozen=True)
class Step:
    """A part of the page.

    Args:
        title: its heading.
        says: what a reader should know before the commands.
        commands: what is typed, each a list of words.
    """

    title: str
    says: str
    commands: tuple[list[str], ...]


def steps(picture, *, stored=""):
    """Return the page's parts.

    Args:
        picture: the name of the photograph that is searched with.
        stored: what is said of regions that were made before, if they were.
    """
    index = ["crossgaze", "index", "photos", "--into", "index"]
    search = ["crossgaze", "search", "index"]
    asked = [[*search, sentence, "-k", "5"] for sentence in SENTENCES]
    asked[0] += ["--html", "report.html"]
    first = SENTENCES[0]
    return (
        Step("An index is made", stored, (index + ["--store", "regions"] * bool(stored),)),
        Step("Again: only what has changed", "Nothing has.", (index,)),
        Step(
            "Five sentences",
            "They were written down before anything was searched for, and none was swapped for an "
            "easier one.\nThe first also writes a report with the pictures and where each word "
            "looked; it is not shown here,\nbecause the photographs are in it.\n",
            tuple(asked),
        ),
        Step(
            "Filters",
            "The first sentence once more, among files of at least 15 kB whose names begin with 3."
            "\n",
            ([*search, first, "-k", "5", "--path", "3*.jpg", "--larger", "15KB"],),
        ),
        Step(
            "For a program",
            "`regions` are the parts of the photograph that the re-ranker compares with words, "
            "their boxes\nin its pixels: left, top, right, bottom.\n",
            ([*search, first, "-k", "1", "--json"],),
        ),
        Step(
            "A picture",
            "The sentences above are indexed, too; then a picture finds photographs like it, and "
            "sentences\nfor it. It is the first photograph of the folder, by name, and so finds "
            "itself first.\n",
            (
                ["crossgaze", "index", "--sentences", "sentences.txt", "--into", "index"],
                [*search, "--image", f"photos/{picture}", "-k", "5"],
            ),
        ),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--store", type=Path, help="of crossgaze extract, made before")
    parser.add_argument("--beside", default="", help="what else the machine did, for the page")
    parser.add_argument("--page", type=Path, default=PAGE, help="written (docs/transcript.md)")
    args = parser.parse_args()
    names = sorted(one.name for one in args.photos.iterdir() if one.suffix.lower() == ".jpg")
    if not names:
        parser.error(f"{args.photos}: holds no .jpg")
    if (args.work / "index").exists():
        parser.error(f"{args.work / 'index'}: is there already, wanted a folder without an index")
    prepare(args.work, args.photos, args.store)
    stored = ""
    if args.store is not None:
        report = json.loads((args.store / "report.json").read_text("utf-8"))
        stored = STORED.format(made=said(report["seconds"]))
    words = {"machine": machine(), "python": platform.python_version(), "commit": commit()}
    beside = f"{args.beside} " * bool(args.beside)
    parts = [HEAD.format(count=len(names), beside=beside, **words)]
    for step in steps(names[0], stored=stored):
        parts.append(f"## {step.title}\n")
        if step.says:
            parts.append(f"{step.says.strip()}\n")
        for command in step.commands:
            parts.append(show(command, args.work, args.photos))
    args.page.write_text("\n".join(parts), "utf-8")
    print(args.page, args.work / "report.html")


def prepare(work, photos, store):
    """Put into the folder where commands are run what they name."""
    work.mkdir(parents=True, exist_ok=True)
    for name, folder in (("photos", photos), ("regions", store)):
        if folder is not None:
            (work / name).unlink(missing_ok=True)
            (work / name).symlink_to(folder.resolve())
    (work / "sentences.txt").write_text("".join(f"{one}\n" for one in SENTENCES), "utf-8")


def show(command, work, photos):
    """Run a command and return its part of the page; one that fails ends the whole."""
    seconds, shown = run(command, work)
    # An index keeps whole paths: of photographs, and of what lies beside it.
    shown = shown.replace(str(photos.resolve()), "photos").replace(f"{work.resolve()}/", "")
    title = shlex.join(command)
    print(f"{title}: {said(seconds)}", flush=True)
    if re.search(r"^\(exit code \d+\)$", shown, re.MULTILINE):
        raise SystemExit(f"{title} failed, no page is written:\n{shown}")
    return f"```console\n$ {title}\n{shown}\n```\n\n{said(seconds)}.\n"


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
