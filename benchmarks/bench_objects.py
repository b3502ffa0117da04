"""Milliseconds an image for each stage of the region model.

    python benchmarks/bench_objects.py [--count 64] [--rounds 5] [--batch 1 4] [--threads 0]

Stages: the frozen backbone, proposals with suppression, RoI align of the candidates, the second
stage's heads, the choice, and the whole `ObjectDetector` from pixels to arrays. The medians over
rounds go to results/bench-objects.json.
"""

import argparse
import json
import platform
import shlex
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch

from crossgaze import __version__
from crossgaze.vision.objects.detector import load_detector
from crossgaze.vision.objects.roi_align import roi_align
from crossgaze.vision.objects.selection import blended, choose, evidence
from crossgaze.vision.photos import read_photo
from crossgaze.vision.sources.objects import model_stamp

RESULT = Path(__file__).parents[1] / "results" / "bench-objects.json"


def photographs(folder, count, size):
    """Real ones from a folder, else the photograph that scikit-image ships, moved about."""
    if folder is not None:
        names = sorted(path for path in folder.iterdir() if path.suffix == ".jpg")[:count]
        return torch.from_numpy(np.stack([read_photo(n, size).pixels for n in names]))
    from PIL import Image
    from skimage import data

    one = np.array(Image.fromarray(data.astronaut()).resize((size, size)))
    return torch.from_numpy(np.stack([np.roll(one, 5 * n, axis=1) for n in range(count)]))


@torch.inference_mode()
def stages(model, pixels):
    """Run one batch and return the seconds of each stage."""
    seconds, network = {}, model.network
    clock = [time.perf_counter()]

    def tick(name):
        if pixels.is_cuda:
            torch.cuda.synchronize()
        clock.append(time.perf_counter())
        seconds[name] = clock[-1] - clock[-2]

    maps = model.taps(pixels)
    head = model.taps.head(maps[-1])
    tick("backbone")
    found = network.propose(maps)
    tick("proposals and suppression")
    roi_align(found.finest, found.boxes, network.config.bins)
    roi_align(head, found.boxes, 1, samples=4)
    tick("RoI align")
    judged = network.judge(found.finest, head, found.boxes)
    tick("RoI align and heads")
    seconds["heads"] = max(seconds["RoI align and heads"] - seconds["RoI align"], 0.0)
    known = evidence(judged.quality, found.scores, found.support, judged.boxes)
    quality = blended(known, model.selection)
    choose(judged.boxes, quality, found.valid, model.selection)
    tick("choice of 36")
    model(pixels)
    tick("whole detector")
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--count", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    model = load_detector(device=args.device)
    pixels = photographs(args.photos, args.count, model.size).to(args.device)
    rows = {}
    for batch in args.batch:
        stages(model, pixels[:batch])  # warm
        rounds = []
        for _ in range(args.rounds):
            total = {}
            for start in range(0, len(pixels) - batch + 1, batch):
                for name, value in stages(model, pixels[start : start + batch]).items():
                    total[name] = total.get(name, 0.0) + value
            done = len(pixels) // batch * batch
            rounds.append({name: 1000 * value / done for name, value in total.items()})
        rows[f"batch {batch}"] = {
            name: round(statistics.median(r[name] for r in rounds), 2) for name in rounds[0]
        }
        print(f"batch {batch}:", rows[f"batch {batch}"])
    result = {
        "what": "region model, milliseconds an image, median over rounds",
        "command": shlex.join(["python", "benchmarks/bench_objects.py", *sys.argv[1:]]),
        "detector": model_stamp(model),
        "photographs": len(pixels),
        "rounds": args.rounds,
        "threads": torch.get_num_threads(),
        "device": args.device,
        "torch": torch.__version__,
        "crossgaze": __version__,
        "machine": platform.machine(),
        "rows": rows,
    }
    args.out.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
