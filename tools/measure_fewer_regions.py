"""A model that learned with some of the regions left out: does it know what to do with all of them?

    python tools/measure_fewer_regions.py MODEL [MODEL ...]

Each model is asked on Flickr8k's dev with shares of every image's regions left out at random, as
training leaves them out (`augment.regions`). Where fewer regions give more, training and use do not
fit together: the recipe should leave out less. Written to results/fewer-regions.json.
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
from crossgaze.evaluation.scores import MeanScores
from crossgaze.evaluation.sources import read_split
from crossgaze.scoring.every_pair import score_into
from crossgaze.training.augment import drop_regions

ROOT = Path(__file__).parents[1]
SHARES, BATCH, SEED = (0.0, 0.2, 0.35, 0.5, 0.65), 125, 0


@torch.inference_mode()
def figures(model, store, rows, captions, image_of, shares=SHARES):
    """Return the recalls of a model by the share of regions that is left out.

    Args:
        model: any that matches.
        store: of regions.
        rows: of the images in it.
        captions: sentences.
        image_of: the image of each.
        shares: of regions that are left out.
    """
    starts = range(0, len(captions), BATCH)
    texts = [model.encode_texts(captions[start : start + BATCH]) for start in starts]
    found = {}
    for share in shares:
        torch.manual_seed(SEED)
        scores = np.zeros((len(rows), len(captions)), np.float32)
        score_into(model, images(model, store, rows, share), iter(texts), [MeanScores(scores, 1)])
        found[str(share)] = rounded(ranks_of(scores, np.asarray(image_of)).figures())
    return found


def images(model, store, rows, share):
    for part in np.split(rows, range(BATCH, len(rows), BATCH)):
        regions = torch.from_numpy(np.asarray(store.features[part], np.float32))
        counts = torch.from_numpy(np.asarray(store.counts[part], np.int64))
        yield model.encode_images(*drop_regions(regions, counts, share))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", default="../shared/data/flickr8k")
    parser.add_argument("--store", default="regions/flickr8k")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "fewer-regions.json")
    args = parser.parse_args()
    store, dev = RegionStore(args.store), read_split(args.data, "dev")
    rows, found = store.rows(dev.images), {}
    for folder in args.models:
        model = crossgaze.load(folder)
        by_share = figures(model, store, rows, dev.captions, dev.image_of)
        found[folder] = {"family": model.family, "origin": model.origin, "left out": by_share}
        for share, recalls in by_share.items():
            print(folder, f"{share} left out:", recalls, flush=True)
    result = {
        "command": " ".join(["python", "tools/measure_fewer_regions.py", *sys.argv[1:]]),
        "what": f"recalls on {dev.name}, by the share of regions that is left out",
        "models": found,
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
