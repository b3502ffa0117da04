"""A process that indexes a folder with the small models, for tests that kill or starve it.

    python indexing_child.py WORLD [ENGINE]

It says a line when it has begun, two for each acknowledged batch (the digests of its photographs by
path, as JSON, and how many are acknowledged), and one at the end.
"""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import search_parts
from crossgaze.cli.failures import explain
from crossgaze.search import adding
from crossgaze.search.head import FILE
from crossgaze.search.index import Index


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class SlowSource(search_parts.CellSource):
    """Takes its time, so that a kill meets every step."""

    def __call__(self, photos, names, go_on):
        time.sleep(0.02)
        return super().__call__(photos, names, go_on)


def main(world, engine="lance"):
    adding.COMMIT = adding.GROUP = 4
    adding.TIDY = 3
    source = SlowSource()
    if (world / "index" / FILE).exists():
        index = Index.open(world / "index", source=source)
    else:
        index = Index.create(
            world / "index",
            embedder=world / "embedder",
            reranker=world / "reranker",
            source=source,
            engine=engine,
        )
    photos, batch, count = index.tables.photos, {}, 0
    add = photos.add

    def add_and_note(entries, vectors):
        add(entries, vectors)
        batch.update({entry.key: entry.digest for entry in entries})

    def acknowledge(done, total):
        nonlocal count
        if not batch:  # some more have been read
            return
        count += len(batch)
        say("batch", json.dumps(batch))
        batch.clear()
        say("done", count, total)

    photos.add = add_and_note
    say("begun")
    index.add(world / "photos", on_progress=acknowledge)
    say("end", len(index))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), *sys.argv[2:])
    except Exception as error:  # noqa: BLE001 (what the command line would say)
        code, line = explain(error, sys.argv[1:])
        say("failed", code, line)
        sys.exit(code)
