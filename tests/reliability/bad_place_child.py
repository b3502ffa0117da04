"""What every verb's function says of a folder on a disk that is full, or may only be read.

    python bad_place_child.py WORLD '[["write", PLACE, VERBS], ["run", COMMANDS], ["read", ...]]'

Steps in one process, which takes long to start: `write` does what verbs write, `read` what only
reads it, `run` is the shell's, for disks that come and go. Prints a line of JSON for each step but
the shell's: by verb, the command line's exit code and words, or null.
"""

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import killing_work
import search_parts
import training_parts
from crossgaze.cli.failures import explain
from crossgaze.data.regions.verify import verify
from crossgaze.models.pretrained import load
from crossgaze.search.index import Index


def index(world, place):
    made = search_parts.CellSource()
    models = {"embedder": world / "embedder", "reranker": world / "reranker"}
    if (place / "index.json").exists():
        found = Index.open(place, source=made)
    else:
        found = Index.create(place, **models, source=made)
    try:
        found.add(world / "photos")
    finally:
        found.close()


def learn(world, place):
    paths = world / "captions.jsonl", world / "regions"
    tree = training_parts.tree(paths, "vse++", epochs=2, batch=6, save_every=1)
    killing_work.learn(None, tree, place)


WORKS = {
    "extract": lambda world, place: killing_work.extract(None, world / "photos", place),
    "import features": lambda world, place: killing_work.bring_features(
        None, world / "train.tsv", place
    ),
    "import checkpoint": lambda world, place: killing_work.import_checkpoint(
        world / "c.pth.tar", "scan"
    ).save_pretrained(place),
    "train": learn,
    "index": index,
}


def search(place):
    found = Index.open(place, source=search_parts.CellSource())
    assert found.search("a red dog").hits
    found.close()


def look_through(place):
    assert not verify(place).problems


READS = {
    "extract": look_through,
    "import features": look_through,
    "import checkpoint": load,
    "train": lambda place: load(place / "best"),
    "index": search,
}


def main(world, steps):
    for what, *given in steps:
        if what == "run":
            subprocess.run(["bash", "-ec", *given], check=True, stdout=sys.stderr)
            continue
        place, verbs = given
        told = {}
        for name in verbs:
            folder, said = Path(place, name.replace(" ", "-"), "out"), None
            try:
                READS[name](folder) if what == "read" else WORKS[name](world, folder)
            except Exception as error:  # noqa: BLE001 (what the command line would say)
                said = explain(error, [name.partition(" ")[0], str(folder)])
            told[name] = said
        sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
