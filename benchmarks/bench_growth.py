"""Time a pair from 10^5 to 10^7 pairs (bar: flat), with a plot; medians of three, the largest once.

python benchmarks/bench_growth.py
"""

from pathlib import Path

import matplotlib
import torch

from common import medians, random_images, random_texts, rounds, words_of, write
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.scoring.every_pair import score_into
from crossgaze.scoring.sinks import BestImages

SHAPES = ((100, 1000), (200, 1500), (500, 2000), (1000, 3000), (1000, 10_000))
PLOT = Path(__file__).parents[1] / "docs" / "pictures" / "bench-growth.svg"


def main():
    torch.set_grad_enabled(False)
    model = Scan(ScanConfig(region_width=1), 2)
    found = []
    for number, (images, captions) in enumerate(SHAPES):
        seen, said = random_images(images, 36, 1024), random_texts(captions, 1024)
        pairs, left, right = images * captions, seen.fragments.flatten(0, 1), words_of(said)
        out = torch.empty(36 * 50, len(right))
        works = {
            "ours": lambda seen=seen, said=said: score_into(model, seen, said, [BestImages(10)]),
            "GEMM": lambda left=left, right=right, out=out: gemm(left, right, out),
        }
        taken = rounds(works, 1 if pairs > 5_000_000 else 3, warm=not number)
        ours, bare = (tuple(medians(taken)[name].values()) for name in works)
        found.append(
            {
                "pairs": pairs,
                "microseconds a pair": {
                    "wall": round(1e6 * ours[0] / pairs, 3),
                    "CPU": round(1e6 * ours[1] / pairs, 3),
                },
                "GEMM, microseconds a pair": {
                    "wall": round(1e6 * bare[0] / pairs, 3),
                    "CPU": round(1e6 * bare[1] / pairs, 3),
                },
            }
        )
        print(found[-1])
    per_pair = [row["microseconds a pair"]["wall"] for row in found]
    spread = round(max(per_pair) / min(per_pair), 3)
    print(f"slowest over fastest: {spread}")
    write(
        "growth",
        "SCAN t-i AVG, 36 x 1024, reduced to the best 10 images of each caption",
        rows=found,
        **{"slowest over fastest": spread},
    )
    plot(found)


def gemm(left, right, out):
    """Multiply some images at a time, so that the product need not be kept."""
    for part in left.split(len(out)):
        torch.mm(part, right.T, out=out[: len(part)])


def plot(found):
    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "crossgaze"
    figure, axes = pyplot.subplots(figsize=(6, 3.2), layout="constrained")
    pairs = [row["pairs"] for row in found]
    for key, name, style in (
        ("microseconds a pair", "crossgaze, SCAN t-i AVG", {"color": "#0072b2", "marker": "o"}),
        ("GEMM, microseconds a pair", "bare GEMM", {"color": "#d55e00", "marker": "s"}),
    ):
        axes.plot(pairs, [row[key]["wall"] for row in found], label=name, **style)
    axes.set(xscale="log", xlabel="pairs of image and caption", ylabel="µs a pair")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, metadata={"Date": None})
    print(f"drawn to {PLOT}")


if __name__ == "__main__":
    main()
