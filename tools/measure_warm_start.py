"""What a cold start under hardest negatives costs, and what a warm one saves.

    python tools/measure_warm_start.py [--data FLICKR8K] [--store REGIONS] [--runs FOLDER] [ROW ...]

Each row is trained twice by `crossgaze train`, cold (`loss.warm_steps=0`) and warm (an epoch's, the
default), with words of a GRU that starts from nothing as the papers' do, at a constant rate. Kept
are the loss and the spread of the scores in the last steps of each epoch, and dev's recalls.
Written to results/warm-start.json; rows that are not named stay as they were.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDS = ("model.text.kind=gru", "model.text.dropout=0.0", "model.text.frozen=false")
SMALL = ("model.size=256", "epochs=2", "average=0", "schedule.kind=constant", "log_every=15")
ROWS = {
    "VSE++, 2e-3": ("vse-whole-gru", "optimiser.rate=2e-3"),
    "SCAN t-i AVG, 5e-4": ("scan-t-i-avg", "optimiser.rate=5e-4", "model.text.own_words=0", *WORDS),
}
STARTS = {"cold": "loss.warm_steps=0", "warm": "loss.warm_steps=null"}


def read_log(path):
    """Return what each epoch came to: its last line of steps, and dev's figures.

    Args:
        path: a run's log.jsonl.
    """
    last, epochs = {}, []
    for line in map(json.loads, path.read_text("utf-8").splitlines()):
        if line["kind"] == "step":
            last = {key: line[key] for key in ("step", "ranking", "spread")}
        elif line["kind"] == "epoch":
            epochs.append({**last, "dev": line["dev"]})
    return epochs


def train(name, start, args):
    """Train one row from one start and return its command and epochs."""
    recipe, *settings = ROWS[name]
    out = args.runs / f"{recipe}-{start}"
    words = ["train", f"recipes/flickr8k/{recipe}.yaml", *settings, *SMALL, STARTS[start]]
    words += [f"data.captions={args.data}", f"data.regions={args.store}", "--out", str(out)]
    print("crossgaze", *words, flush=True)
    subprocess.run([sys.executable, "-m", "crossgaze", *words], cwd=ROOT, check=True)
    return {
        "command": " ".join(["crossgaze", *words]),
        "epochs": read_log(ROOT / out / "log.jsonl"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--data", default="../shared/data/flickr8k")
    parser.add_argument("--store", default="regions/flickr8k")
    parser.add_argument("--runs", type=Path, default=Path("runs/warm-start"))
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "warm-start.json")
    args = parser.parse_args()
    unknown = [name for name in args.rows if name not in ROWS]
    if unknown:
        sys.exit(f"no such row: {', '.join(unknown)}; wanted of {', '.join(ROWS)}")
    found = json.loads(args.out.read_text("utf-8"))["rows"] if args.out.is_file() else {}
    for name in args.rows or ROWS:
        found[name] = {start: train(name, start, args) for start in STARTS}
        result = {
            "command": "python tools/measure_warm_start.py",
            "what": "2 x batch x margin is 51.2; one seed",
            "rows": found,
        }
        args.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
