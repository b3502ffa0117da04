"""All pairs of 200 images and 1,000 captions: our kernels, the bare GEMM, the published form.

Bars: SCAN t-i AVG and i-t LSE at most 1.3 x the GEMM, each; the published form at least 12 x slower
(SCAN) and 8 x slower (BFAN) than ours.

    python benchmarks/bench_scoring.py [--rounds 9]
"""

import argparse

import torch

from common import clock, medians, random_images, random_texts, ratio, rounds, words_of, write
from crossgaze.models.bfan import Bfan, BfanConfig
from crossgaze.models.mmca import Mmca, MmcaConfig
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.summax import SumMax, SumMaxConfig
from crossgaze.models.text import TextConfig
from published import bfan, scan

IMAGES, CAPTIONS, REGIONS, SIZE = 200, 1000, 36, 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--published", type=int, default=2, help="rounds of the published forms")
    args = parser.parse_args()
    torch.set_grad_enabled(False)
    images, texts = random_images(IMAGES, REGIONS, SIZE), random_texts(CAPTIONS, SIZE)
    left, right = images.fragments.flatten(0, 1), words_of(texts)
    out = torch.empty(len(left), len(right))
    models = {
        "SCAN t-i AVG": Scan(ScanConfig(region_width=1, size=SIZE), 2),
        "SCAN i-t LSE": Scan(
            ScanConfig(region_width=1, size=SIZE, direction="i-t", pooling="LSE", lambda1=4.0), 2
        ),
        "BFAN": Bfan(BfanConfig(region_width=1, size=SIZE), 2),
        "Sum-Max t-i": SumMax(SumMaxConfig(region_width=1, size=SIZE), 2),
    }
    ours = {
        name: lambda model=model: model.similarity(images, texts) for name, model in models.items()
    }
    fast = rounds({"GEMM": lambda: torch.mm(left, right.T, out=out), **ours}, args.rounds)

    lengths = texts.counts.tolist()
    sides = images.fragments, texts.fragments, lengths
    slow = {
        "SCAN t-i AVG": lambda: scan(*sides, "t-i", "AVG"),
        "SCAN i-t LSE": lambda: scan(*sides, "i-t", "LSE", 4.0),
        "BFAN": lambda: bfan(*sides),
    }
    published, apart = {}, {}
    for name, work in slow.items():
        # Minutes each: in turn with ours, and not warmed.
        found = []
        for _ in range(args.published):
            slow_one = clock(lambda work=work, found=found: found.append(work()))
            published.setdefault(f"{name}, published", []).append(slow_one)
            published.setdefault(name, []).append(clock(ours[name]))
        apart[name] = float((found[0] - models[name].similarity(images, texts)).abs().max())
    to_gemm = {name: ratio(fast, name, "GEMM") for name in models}
    slower = {name: ratio(published, f"{name}, published", name) for name in slow}
    for name, found in to_gemm.items():
        print(f"{name}: {found['wall']} x the GEMM (CPU {found['CPU']})")
    for name, found in slower.items():
        print(f"{name}: published form {found['wall']} x slower, differs by {apart[name]:.1e}")
    write(
        "scoring",
        f"{IMAGES} images x {CAPTIONS} captions ({len(right)} words), {REGIONS} x {SIZE}, float32",
        seconds=medians(fast) | medians({k: v for k, v in published.items() if "published" in k}),
        **{"times the GEMM": to_gemm, "published form, times ours": slower},
        **{"largest difference to the published form": apart, "MMCA": mmca()},
        bars={
            "SCAN t-i AVG and i-t LSE, times the GEMM": 1.3,
            "published SCAN, times ours": 12,
            "published BFAN, times ours": 8,
        },
    )


def mmca():
    """MMCA multiplies every pair's fragments by three matrices: that is its floor."""
    text = TextConfig(kind="gru", word_size=300)
    model = Mmca(MmcaConfig(region_width=8, text=text), 2).eval()
    size, heights = model.config.size, 36 + 12
    images = model.encode_images(torch.randn(40, 36, 8))
    texts = model.encode_tokens(torch.ones(50, 12, dtype=torch.long), [12] * 50)
    pairs = len(images) * len(texts)
    stack, weight = torch.randn(pairs * heights, size), torch.randn(size, size)

    def floor():
        for _ in range(3):
            torch.mm(stack, weight)

    def one_by_one():
        for text in range(len(texts)):
            model.pair_similarity(images, texts[[text] * len(images)])

    taken = rounds(
        {"MMCA": lambda: model.similarity(images, texts), "floor": floor, "plain": one_by_one}, 3
    )
    found = {
        "what": f"{len(images)} images x {len(texts)} captions of 12 words, size {size}, 16 heads",
        "seconds": medians(taken),
        "times its three products": ratio(taken, "MMCA", "floor"),
        "caption by caption, times ours": ratio(taken, "plain", "MMCA"),
    }
    print(f"MMCA: {found['times its three products']['wall']} x its products")
    return found


if __name__ == "__main__":
    main()
