"""What every verb's function says of a folder on a disk that is full, or may only be read.

    python bad_place_child.py WORLD PLACE [read]

Prints a line of JSON for each: its name, the command line's exit code and words, or null. With
`read`, what only reads is done instead.
"""

import json
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


READS = {
    "extract": lambda place: verify(place).problems,
    "import features": lambda place: verify(place).problems,
    "import checkpoint": load,
    "train": lambda place: load(place / "best"),
    "index": search,
}


def main(world, place, *words):
    for name, work in WORKS.items():
        folder, said = place / name.replace(" ", "-") / "out", None
        try:
            READS[name](folder) if words else work(world, folder)
        except Exception as error:  # noqa: BLE001 (what the command line would say)
            said = explain(error, [name.partition(" ")[0], str(folder)])
        sys.stdout.write(json.dumps([name, said]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
