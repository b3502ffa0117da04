"""Exact top 10 with pruning against scoring all: how many images are scored, how long it takes.

Two kinds of regions: random ones, the worst case (no direction matters more than another, hulls
touch zero); and made ones with the decay and the common direction that trained embeddings have.
A model's own regions: --regions FILE.npy --texts FILE.npy of unit fragments.

    python benchmarks/bench_pruning.py
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from common import clock, medians, random_images, random_texts, write
from crossgaze.models.encoded import Encoded
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.summax import SumMax, SumMaxConfig
from crossgaze.scoring.every_pair import score_into
from crossgaze.scoring.pruning import PrunedSearch
from crossgaze.scoring.sinks import BestImages

IMAGES, QUERIES, SIZE, K = 4000, 10, 1024, 10


def decaying(side, seed, scale):
    """Give fragments a spectrum that falls as 1 / rank, and a direction that all share."""
    generator = torch.Generator().manual_seed(99)
    basis = torch.linalg.qr(torch.randn(SIZE, SIZE, generator=generator)).Q
    fall = 1 / torch.arange(1, SIZE + 1)
    generator.manual_seed(seed)
    topic = torch.randn(len(side), 1, SIZE, generator=generator) * fall
    x = (side.fragments * SIZE**0.5 * fall + topic) @ basis + scale * basis[0]
    return Encoded(None, torch.nn.functional.normalize(x, dim=-1), side.counts)


def measure(model, images, texts, directions):
    search = PrunedSearch(model, images, directions)
    taken, scored, same = {"pruned": [], "all": []}, [], []
    for number in range(len(texts)):
        text, best, found = texts[number], BestImages(K), []
        taken["pruned"].append(clock(lambda text=text, found=found: found.append(search(text, K))))
        taken["all"].append(
            clock(lambda text=text, best=best: score_into(model, images, text, [best]))
        )
        scored.append(found[0].scored / len(images))
        same.append(found[0].rows.tolist() == best.rows[0].tolist())
    seconds = medians(taken)
    return {
        "directions": directions,
        "share of images scored": round(sum(scored) / len(scored), 3),
        "factor (all / pruned, wall)": round(seconds["all"]["wall"] / seconds["pruned"]["wall"], 2),
        "same top 10": f"{sum(same)} of {len(same)}",
        "seconds": seconds,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--regions", type=Path, help="(N, k, D) unit fragments of images")
    parser.add_argument("--texts", type=Path, help="(Q, n, D) unit fragments of sentences")
    args = parser.parse_args()
    torch.set_grad_enabled(False)
    images, texts = random_images(IMAGES, 36, SIZE), random_texts(QUERIES, SIZE)
    sets = {
        "random": (images, texts),
        "decaying spectrum": (decaying(images, 5, 0.5), decaying(texts, 6, 0.5)),
    }
    if args.regions and args.texts:
        seen, said = (torch.from_numpy(np.load(path)) for path in (args.regions, args.texts))
        sets[f"given: {args.regions.name}"] = tuple(
            Encoded(None, x.float(), torch.full((len(x),), x.shape[1])) for x in (seen, said)
        )
    found = {}
    for kind, (seen, said) in sets.items():
        for name, model in {
            "SCAN t-i AVG": Scan(ScanConfig(region_width=1), 2),
            "Sum-Max t-i": SumMax(SumMaxConfig(region_width=1), 2),
        }.items():
            found[f"{name}, {kind}"] = [measure(model, seen, said, r) for r in (64, 256)]
            print(name, kind, found[f"{name}, {kind}"])
    write("pruning", f"{IMAGES} images, top {K}, one caption at a time", rows=found)


if __name__ == "__main__":
    main()
