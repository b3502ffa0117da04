"""One query re-ranked against 1,000 candidates, 36 x 1024 float16 from a mapped store.

Bar: at most 3 x the GEMM and the read together, where the read is nothing but bringing the
candidates' bytes into memory, by as many threads, and the GEMM has them in float32 already.

    python benchmarks/bench_rerank.py [--images 10000] [--rounds 30]
"""

import argparse
import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from common import clock, random_texts, write
from crossgaze.models.bfan import Bfan, BfanConfig
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.scoring.rerank import rerank
from crossgaze.threads import cores

REGIONS, SIZE, CANDIDATES = 36, 1024, 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    models = {
        "SCAN t-i AVG": Scan(ScanConfig(region_width=1), 2),
        "SCAN i-t LSE": Scan(ScanConfig(region_width=1, direction="i-t", pooling="LSE"), 2),
        "BFAN": Bfan(BfanConfig(region_width=1), 2),
    }
    texts = random_texts(args.rounds, SIZE)
    with (
        tempfile.TemporaryDirectory() as folder,
        torch.no_grad(),
        ThreadPoolExecutor(cores()) as pool,
    ):
        path = Path(folder) / "regions.npy"
        store = np.lib.format.open_memmap(
            path, mode="w+", dtype=np.float16, shape=(args.images, REGIONS, SIZE)
        )
        for start in range(0, args.images, 1000):
            x = rng.standard_normal(store[start : start + 1000].shape, np.float32)
            store[start : start + 1000] = x / np.linalg.norm(x, axis=2, keepdims=True)
        store.flush()
        regions = np.load(path, mmap_mode="r")
        regions.sum(dtype=np.float32)  # the file is in the page cache, as that of a busy index is
        taken = {name: [] for name in ("read", "GEMM", *models)}
        for number in range(args.rounds):
            rows = rng.choice(args.images, CANDIDATES, replace=False)
            words = texts[number].fragments[0, : int(texts.counts[number])]
            ready = torch.from_numpy(regions[rows]).float().flatten(0, 1)
            halves = np.array_split(rows, cores())
            taken["read"].append(
                clock(lambda halves=halves: list(pool.map(regions.__getitem__, halves)))
            )
            taken["GEMM"].append(clock(lambda ready=ready, words=words: ready @ words.T))
            for name, model in models.items():
                text = texts[number]
                taken[name].append(
                    clock(lambda m=model, t=text, rows=rows: rerank(m, t, regions, rows))
                )
    milliseconds = {
        name: {
            "p50": round(1e3 * statistics.median(wall for wall, _ in times), 2),
            "p95": round(1e3 * statistics.quantiles([w for w, _ in times], n=20)[-1], 2),
            "CPU p50": round(1e3 * statistics.median(cpu for _, cpu in times), 2),
        }
        for name, times in taken.items()
    }
    floor = milliseconds["read"]["p50"] + milliseconds["GEMM"]["p50"]
    ratios = {name: round(milliseconds[name]["p50"] / floor, 3) for name in models}
    for name, found in milliseconds.items():
        print(f"{name}: p50 {found['p50']} ms, p95 {found['p95']} ms")
    print("times the GEMM and the read:", ratios)
    write(
        "rerank",
        f"1 caption against {CANDIDATES} of {args.images} images, {REGIONS} x {SIZE} float16, "
        "mapped, in the page cache",
        milliseconds=milliseconds,
        **{"times the GEMM and the read": ratios, "bar": 3},
    )


if __name__ == "__main__":
    main()
