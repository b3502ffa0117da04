"""How much of the network's own speed `extract` keeps.

In one run, interleaved: the bare network over ready pixels with torch's own threads, at the batch
size of `extract` and at larger ones, and `extract` over photograph files of the same number. The
bar is a ratio of at least 0.85 with two cores.

    python benchmarks/bench_extract.py [--photos FOLDER] [--count 256] [--rounds 3]

Without --photos it makes JPEG files of 500 x 375 noise-like photographs, the size of Flickr's.
"""

import argparse
import json
import platform
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFilter

from crossgaze import __version__
from crossgaze.threads import cores
from crossgaze.vision.backbones import load_backbone
from crossgaze.vision.extract import ExtractConfig, extract
from crossgaze.vision.listing import list_photos
from crossgaze.vision.photos import read_photo
from crossgaze.vision.sources.making import default_batch

RESULT = Path(__file__).parents[1] / "results" / "bench-extract.json"


def make_photographs(folder, count):
    """Write JPEG files of blurred noise: as many bytes as a photograph of that size has."""
    rng = np.random.default_rng(0)
    for number in range(count):
        pixels = rng.integers(0, 256, (375, 500, 3), dtype=np.uint8)
        image = Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(1.5))
        image.save(folder / f"{number:04}.jpg", quality=90)


def clock(work):
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--count", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        photos = Path(temporary) / "photos"
        photos.mkdir()
        if args.photos:
            for name in list_photos(args.photos).names[: args.count]:
                (photos / Path(name).name).write_bytes((args.photos / name).read_bytes())
        else:
            make_photographs(photos, args.count)
        names = list_photos(photos).names
        model = load_backbone("efficientnet-lite2")
        pixels = torch.from_numpy(np.stack([read_photo(photos / n, 256).pixels for n in names]))

        def bare(batch):
            with torch.inference_mode():
                for start in range(0, len(pixels), batch):
                    model(pixels[start : start + batch])

        batch = default_batch(torch.device("cpu"))
        bare(batch)  # warm
        rounds = []
        for number in range(args.rounds):
            seconds = {f"network, batch {n}": clock(partial(bare, n)) for n in (batch, 8, 32)}
            out = Path(temporary) / f"regions-{number}"
            config = ExtractConfig(regions="grid")
            seconds["extract"] = clock(partial(extract, photos, out, config, backbone=model))
            rounds.append(seconds)
            print(", ".join(f"{k} {len(names) / wall:.1f}/s" for k, (wall, _) in seconds.items()))

    def ratio(against):
        return statistics.median(against(r) / r["extract"][0] for r in rounds)

    same = ratio(lambda r: r[f"network, batch {batch}"][0])
    best = ratio(lambda r: min(wall for k, (wall, _) in r.items() if k != "extract"))
    result = {
        "what": "extract against the bare network forward, images a second",
        "photographs": len(names),
        "source": "--photos" if args.photos else "made: 500 x 375 JPEG, quality 90",
        "batch": batch,
        "cores": cores(),
        "torch": torch.__version__,
        "crossgaze": __version__,
        "machine": platform.machine(),
        "seconds (wall, CPU)": rounds,
        "ratio to the network at the same batch (median)": round(same, 3),
        "ratio to the network at its best batch of each round (median)": round(best, 3),
        "bar": 0.85,
    }
    args.out.write_text(json.dumps(result, indent=2) + "\n")
    print(f"ratio {same:.3f} (bar 0.85); to the best batch {best:.3f}; written to {args.out}")


if __name__ == "__main__":
    main()
