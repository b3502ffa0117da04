"""What batch norms' statistics of training cost a model that is used with whole images.

    python tools/measure_statistics.py RUN [RUN ...]

Each run's best model is asked on Flickr8k's dev as it was kept, with statistics that were measured
on whole training images through its averaged weights, and with those that training itself had
gathered when it ended (the best epoch must be the last). Written to results/batch-norms.json.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch

import crossgaze
from crossgaze.data.regions.store import RegionStore
from crossgaze.evaluation.recall import ranks_of, rounded
from crossgaze.evaluation.sources import read_split
from two_stage_curve import score

ROOT = Path(__file__).parents[1]


def figures(model, store, rows, captions, image_of):
    """Return the recalls of a model.

    Args:
        model: any that matches.
        store: of regions.
        rows: of the images in it.
        captions: sentences.
        image_of: the image of each.
    """
    scores = score(model, store, rows, captions)
    return rounded(ranks_of(scores, np.asarray(image_of)).figures())


def gathered(run):
    """Return the statistics that training gathered, by the names of the model's own."""
    saved = torch.load(run / "checkpoint.pt", map_location="cpu", weights_only=True)["weights"]
    names = ("running_mean", "running_var")
    return {
        key.removeprefix("model."): value for key, value in saved.items() if key.endswith(names)
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN", type=Path)
    parser.add_argument("--data", default="../shared/data/flickr8k")
    parser.add_argument("--store", default="regions/flickr8k")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "batch-norms.json")
    args = parser.parse_args()
    store, dev = RegionStore(args.store), read_split(args.data, "dev")
    rows, found = store.rows(dev.images), {}
    for run in args.runs:
        summary = json.loads((run / "summary.json").read_text("utf-8"))
        if summary["best_epoch"] != summary["epochs"]:
            sys.exit(f"{run}: its best epoch was {summary['best_epoch']}, not the last")
        model = crossgaze.load(run / "best")
        asked = (model, store, rows, dev.captions, dev.image_of)
        by = {"measured on whole images": figures(*asked)}
        left = model.load_state_dict(gathered(run), strict=False)
        if left.unexpected_keys:
            sys.exit(f"{run}: its checkpoint is of another model, which has {left.unexpected_keys}")
        by["gathered in training"] = figures(*asked)
        found[run.name] = {"command": summary["command"], "statistics": by}
        for name, recalls in by.items():
            print(run, f"{name}:", recalls, flush=True)
    result = {
        "command": " ".join(["python", "tools/measure_statistics.py", *sys.argv[1:]]),
        "what": f"recalls on {dev.name}'s dev, by the statistics of batch norms",
        "models": found,
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
