"""Choose the weights of the region model's choice on the dev photographs.

    python tools/choose_selection.py recipes/regions-objects.yaml --out results/selection-dev.json

Of a trained run (tools/train_objects.py), with what is fitted coming from one half of the dev
photographs and the figures from the other, and the halves changing places. The rule, set down
before looking: of the weights that cover at least the bar of boxes at IoU 0.7 and of phrases, those
that cover most boxes at 0.5. They go into the recipe's `selection` by hand.
"""

import argparse
import itertools
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import torch

from crossgaze.config import load_recipe, to_dict
from crossgaze.errors import InputError
from crossgaze.evaluation.coverage import measure
from crossgaze.files import write_json
from crossgaze.vision.objects.finishing import fit, know_dev, unfitted
from crossgaze.vision.objects.selection import blended, choose
from crossgaze.vision.objects.train_config import TrainConfig
from crossgaze.vision.objects.training import train

STRICT = (0.03, 0.05, 0.07, 0.1, 0.15)  # weights of boxes at IoU 0.7, beside 1 of those at 0.5 ...
NAMED = (0.05, 0.1, 0.15, 0.2, 0.3)  # ... and of being named
BAR = {"phrases 0.5": 91.0, "boxes 0.7": 46.0}


def chosen(image, selection):
    """Return the regions of one photograph."""
    quality, all_of_them = blended(image.known, selection)[None], torch.ones(1, len(image.boxes))
    picked, _, _ = choose(image.boxes[None], quality, all_of_them.bool(), selection)
    return image.boxes[picked[0]].numpy()


def figures(halves, weights):
    """Return what weights cover on both halves, each with the other's fit."""
    found = measure(
        (image.wanted, chosen(image, replace(selection, weights=weights)))
        for images, selection in halves
        for image in images
    )
    of = {"boxes 0.5": ("boxes", 0.5), "phrases 0.5": ("phrases", 0.5), "boxes 0.7": ("boxes", 0.7)}
    return {name: found.share(*what) for name, what in of.items()}


def best_of(table):
    """Return the line that the rule takes."""
    able = [line for line in table if all(line[name] >= least for name, least in BAR.items())]
    if not able:
        return max(table, key=lambda line: min(line[name] - BAR[name] for name in BAR))
    return max(able, key=lambda line: line["boxes 0.5"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", nargs="?")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    config = load_recipe(TrainConfig, args.recipe, args.overrides)
    if not (config.out / "state.pt").is_file():
        raise InputError(f"{config.out}: no run; train it with tools/train_objects.py first")
    dev = know_dev(config, unfitted(config, train(config)))
    one, other = dev[: len(dev) // 2], dev[len(dev) // 2 :]
    halves = [(one, fit(other, config.selection)), (other, fit(one, config.selection))]
    table = []
    for strict, named in itertools.product(STRICT, NAMED):
        weights = (1.0, strict, named)
        table.append({"weights": weights} | figures(halves, weights))
        print("  ".join(f"{name} {value}" for name, value in table[-1].items()), flush=True)
    best = best_of(table)
    print(f"taken: {best}")
    if args.out:
        write_json(args.out, {
            "what": "coverage of dev boxes and phrases by the weights of the choice, percent",
            "rule": f"most boxes at 0.5 with at least {BAR}",
            "command": shlex.join(["python", "tools/choose_selection.py", *sys.argv[1:]]),
            "selection": to_dict(config.selection),
            "taken": best,
            "table": table,
        })  # fmt: skip


if __name__ == "__main__":
    main()
