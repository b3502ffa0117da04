"""A training step of SCAN and BFAN: ours, the encoders alone, dense autograd, the published form.

A step is forward and backward, without the optimiser's. Bars: SCAN's step at most 1.4 x the
encoders' own forward and backward, and at least 4.5 x faster than the published form; BFAN's at
least 8 x faster than the published form.

    python benchmarks/bench_training.py [--rounds 3]
"""

import argparse

import torch

from common import LONGEST, SHORTEST, medians, ratio, rounds, write
from crossgaze.models.bfan import Bfan, BfanConfig
from crossgaze.models.scan import Scan, ScanConfig
from published import bfan, scan, scan_gram

BATCH, REGIONS, WIDTH, WORDS, MARGIN = 128, 36, 2048, 8481, 0.2


def hinge(scores, hardest):
    """SCAN's loss: over all violations, or the hardest negatives only."""
    right = scores.diagonal()
    own = torch.eye(len(scores), dtype=torch.bool)
    texts = (MARGIN + scores - right[:, None]).clamp(min=0).masked_fill(own, 0)
    images = (MARGIN + scores - right).clamp(min=0).masked_fill(own, 0)
    if hardest:
        return texts.max(1).values.sum() + images.max(0).values.sum()
    return texts.sum() + images.sum()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    regions = torch.randn(BATCH, REGIONS, WIDTH, generator=generator).abs()
    lengths = torch.randint(SHORTEST, LONGEST + 1, (BATCH,), generator=generator) + 2  # and marks
    ids = torch.randint(4, WORDS, (BATCH, int(lengths.max())), generator=generator)
    torch.manual_seed(0)
    models = {"SCAN": Scan(ScanConfig(), WORDS), "BFAN": Bfan(BfanConfig(), WORDS)}

    def step(model, loss):
        model.zero_grad()
        loss(model.encode_images(regions), model.encode_tokens(ids, lengths)).backward()

    def ours(name, hardest=True):
        model = models[name]
        step(model, lambda i, t: hinge(model.similarity(i, t), hardest))

    def other(name, score, hardest=True):
        counts = lengths.tolist()
        step(
            models[name],
            lambda i, t: hinge(score(i.fragments, t.fragments, counts), hardest),
        )

    def scan_published(regions, words, counts):
        return scan(regions, words, counts, "t-i", "AVG")

    weights = torch.randn(2, 1024, generator=generator)
    works = {
        "encoders": lambda: step(
            models["SCAN"],
            lambda i, t: (i.fragments @ weights[0]).sum() + (t.fragments @ weights[1]).sum(),
        ),
        "SCAN": lambda: ours("SCAN"),
        "SCAN, all violations": lambda: ours("SCAN", hardest=False),
        "SCAN, Gram form, dense autograd": lambda: other("SCAN", scan_gram),
        "SCAN, published": lambda: other("SCAN", scan_published),
        "SCAN, published, all violations": lambda: other("SCAN", scan_published, hardest=False),
        "BFAN": lambda: ours("BFAN"),
        "BFAN, published": lambda: other("BFAN", bfan),
    }
    taken = rounds(works, args.rounds)
    ratios = {
        "SCAN, times the encoders": ratio(taken, "SCAN", "encoders"),
        "SCAN, all violations, times the encoders": ratio(
            taken, "SCAN, all violations", "encoders"
        ),
        "SCAN, dense Gram form, times ours": ratio(
            taken, "SCAN, Gram form, dense autograd", "SCAN"
        ),
        "SCAN, published, times ours": ratio(taken, "SCAN, published", "SCAN"),
        "SCAN, published, all violations, times ours": ratio(
            taken, "SCAN, published, all violations", "SCAN, all violations"
        ),
        "BFAN, times the encoders": ratio(taken, "BFAN", "encoders"),
        "BFAN, published, times ours": ratio(taken, "BFAN, published", "BFAN"),
    }
    for name, found in ratios.items():
        print(f"{name}: {found['wall']} (CPU {found['CPU']})")
    write(
        "training",
        f"forward and backward, batch {BATCH}, {REGIONS} x {WIDTH}, {int(lengths.sum())} words, "
        "D = 1024, two-way GRU, hardest negatives unless said; weights at their beginning, where "
        "all violations means nearly all pairs",
        seconds=medians(taken),
        ratios=ratios,
        bars={
            "SCAN, times the encoders": 1.4,
            "SCAN, published, times ours": 4.5,
            "BFAN, published, times ours": 8,
        },
    )


if __name__ == "__main__":
    main()
