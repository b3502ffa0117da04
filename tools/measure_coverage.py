"""Measure which share of the Entities boxes and phrases 36 regions an image cover.

    python tools/measure_coverage.py --split test --out results/coverage-flickr8k.json

Rows: the region model, a 6 x 6 grid, the best 36 fixed boxes chosen on the training images, and
selective search's first 36 on the photographs' own pixels (of the first 200 images).
"""

import argparse
import json
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from crossgaze import __version__
from crossgaze.config import to_dict
from crossgaze.errors import MissingExtraError
from crossgaze.evaluation.baselines import fixed_boxes, selective_search
from crossgaze.evaluation.coverage import measure
from crossgaze.evaluation.naming import Naming
from crossgaze.files import write_json
from crossgaze.vision.grid import grid_boxes
from crossgaze.vision.objects.detector import load_detector
from crossgaze.vision.objects.training import read_split
from crossgaze.vision.photos import read_photo
from crossgaze.vision.sources.objects import model_stamp

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def detected(model, folder, images, wanted, naming, batch=4):
    """Give the boxes of each photograph in turn, and ask the regions for their names."""
    for start in range(0, len(images), batch):
        names = images[start : start + batch]
        pixels = np.stack([read_photo(folder / name, model.size).pixels for name in names])
        for number, found in enumerate(model(torch.from_numpy(pixels)), start):
            naming.add(wanted[number], found.boxes, found.nouns, found.attributes)
            yield found.boxes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flickr8k", type=Path, default=SHARED / "flickr8k")
    parser.add_argument("--entities", type=Path, default=SHARED / "flickr30k_entities")
    parser.add_argument("--split", default="dev", choices=("train", "dev", "test"))
    parser.add_argument("--detector", default="objects")
    parser.add_argument("--images", type=int, default=None, help="only the first so many")
    parser.add_argument("--selective", type=int, default=200, help="images for selective search")
    parser.add_argument("--only-objects", action="store_true", help="leave the other rows out")
    parser.add_argument(
        "--weights", type=float, nargs=3, metavar="W", help="of the choice, instead of the model's"
    )
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    split, _ = read_split(args.flickr8k, args.entities, args.split)
    images, wanted = split.images[: args.images], split.wanted[: args.images]
    folder = args.flickr8k / "images"
    model = load_detector(args.detector)
    if args.weights:
        model.selection = replace(model.selection, weights=tuple(args.weights))
    rows = {}

    def add(name, regions, count=None):
        began = time.perf_counter()
        found = measure(zip(wanted[:count], regions, strict=True))
        rows[name] = found.shares()
        boxes, phrases, strict = (
            found.share(*of) for of in (("boxes", 0.5), ("phrases", 0.5), ("boxes", 0.7))
        )
        print(f"{name}: boxes {boxes:.2f}, phrases {phrases:.2f} at IoU 0.5;", end=" ")
        seconds = time.perf_counter() - began
        print(f"boxes {strict:.2f} at 0.7 ({found.images} images, {seconds:.0f} s)", flush=True)

    naming = Naming(model.words)
    add("objects", detected(model, folder, images, wanted, naming))
    print(json.dumps(naming.shares()))
    if not args.only_objects:
        add("grid 6x6", [grid_boxes(6, 1, 1)] * len(images))
        train, _ = read_split(args.flickr8k, args.entities, "train")
        fixed = fixed_boxes([one.boxes for one in train.wanted])
        add("best 36 fixed boxes", [fixed] * len(images))
        few = images[: args.selective]
        try:
            search = (selective_search(read_photo(folder / name).pixels) for name in few)
            add("selective search, first 36", search, len(few))
        except MissingExtraError as error:
            print(error)
    if args.out:
        write_json(
            args.out,
            {
                "what": "share of Flickr30k Entities boxes and phrases covered, percent",
                "rules": "see crossgaze.evaluation.coverage",
                "command": shlex.join(["python", "tools/measure_coverage.py", *sys.argv[1:]]),
                "split": args.split,
                "detector": model_stamp(model),
                "network": to_dict(model.network.config),
                "selection": to_dict(model.selection),
                "torch": torch.__version__,
                "crossgaze": __version__,
                "rows": rows,
                "words of objects, percent right": naming.shares(),
            },
        )


if __name__ == "__main__":
    main()
