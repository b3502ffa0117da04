"""COCO 5K in shape: 5,000 images x 25,000 captions, 36 x 1024, the score matrix on disk.

A slice of 1,000 x 5,000 is timed; the peak of the resident memory is measured over the whole
(bar: below 3 GB). Captions come in parts, as an encoder gives them; images come from a mapped file,
block by block, and are never all in memory.

    python benchmarks/bench_memory.py [--images 5000] [--captions 25000]
"""

import argparse
import resource
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from common import clock, random_images, random_texts, write
from crossgaze.models.encoded import Encoded
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.scoring.every_pair import score_into
from crossgaze.scoring.sinks import BestTexts, ScoreFile


def parts(kind, count, size, step=100):
    """Give images or captions in parts, as an encoder would."""
    for start in range(0, count, step):
        many = min(step, count - start)
        if kind == "texts":
            yield random_texts(many, size, seed=start)
        else:
            yield random_images(many, 36, size, seed=start)


def mapped(path, count, step=512):
    """Give images from a mapped file in parts."""
    regions = np.load(path, mmap_mode="r")
    for start in range(0, count, step):
        stop = min(start + step, count)
        part = torch.from_numpy(regions[start:stop].astype(np.float32))
        yield Encoded(None, part, torch.full((len(part),), 36))
        # A mapped page counts as resident once it was read: map the file anew.
        regions = np.load(path, mmap_mode="r")


def peak():
    """Return the largest resident memory so far, in bytes."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--captions", type=int, default=25_000)
    args = parser.parse_args()
    torch.set_grad_enabled(False)
    model, size = Scan(ScanConfig(region_width=1), 2), 1024
    before = peak()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        store = np.lib.format.open_memmap(
            path, mode="w+", dtype=np.float16, shape=(args.images, 36, size)
        )
        for number, part in enumerate(parts("images", args.images, size)):
            store[number * 100 : number * 100 + len(part)] = part.fragments.numpy()
        store.flush()
        del store

        def score(images, captions, name):
            best = BestTexts(10)
            with ScoreFile(Path(folder) / name, images) as file:
                score_into(
                    model,
                    mapped(path, images),
                    parts("texts", captions, size),
                    [file, best],
                    on_progress=lambda done: print(f"{done} images", end="\r", flush=True),
                )
            scores = np.load(Path(folder) / name, mmap_mode="r")
            assert scores.shape == (images, captions)
            row = scores[images - 1]
            assert int(row.argmax()) == int(best.rows[-1, 0])

        few = min(1000, args.images), min(5000, args.captions)
        wall, cpu = clock(lambda: score(*few, "slice.npy"))
        after_slice = peak()
        print(f"slice of {few}: {wall:.1f} s, peak {after_slice / 1e9:.2f} GB", flush=True)
        whole_wall, whole_cpu = clock(lambda: score(args.images, args.captions, "whole.npy"))
    found = peak()
    print(f"peak {found / 1e9:.2f} GB (bar 3); slice of {few}: {wall:.1f} s")
    write(
        "memory",
        f"{args.images} images x {args.captions} captions, 36 x {size}, SCAN t-i AVG, images from "
        "a mapped float16 file, scores to a .npy file; making the random captions is in the times",
        **{
            "peak resident bytes": found,
            "before anything": before,
            "after the slice": after_slice,
            "bar": 3_000_000_000,
            "slice": {"images, captions": few, "wall": round(wall, 2), "CPU": round(cpu, 2)},
            "whole": {"wall": round(whole_wall, 1), "CPU": round(whole_cpu, 1)},
        },
    )


if __name__ == "__main__":
    main()
