"""What a cold start under hardest negatives costs, and what a warm one saves: one table.

    python tools/measure_warm_start.py [--data FLICKR8K] [--store REGIONS] [--steps N] [--out JSON]
    python tools/measure_warm_start.py --page        (the table anew, of the JSON that is there)

Every row is trained by the trainer's own steps, cold (`loss.warm_steps=0`) and warm over an epoch
(the default), one also over half an epoch, with words of a GRU that starts from nothing as the
papers' do, at a constant rate, without augmentation. The table holds means over the last steps: the
hardest loss, whatever the start was made with; the share of images that find their sentence in
their batch; the spread of the scores, by which `crossgaze.training.warm_start.collapsed` decides.
Written to results/warm-start.json and into docs/training.md.
"""

import argparse
import json
import sys
import time
from itertools import count, islice
from pathlib import Path

import torch

from crossgaze.config import load_recipe
from crossgaze.training.config import TrainConfig
from crossgaze.training.losses import Hardest
from crossgaze.training.prepare import prepare
from crossgaze.training.seeds import repeatable
from crossgaze.training.summary import versions
from crossgaze.training.trainer import Run
from crossgaze.training.warm_start import collapsed
from pages import fill, table

ROOT = Path(__file__).parents[1]
JSON, PAGE = Path("results/warm-start.json"), Path("docs/training.md")
BEGIN, END = (
    "<!-- warm start: tools/measure_warm_start.py writes this -->",
    "<!-- end warm start -->",
)
BATCH = 128
LAST = 15  # steps that a row's figures are means of
WORDS = ("kind=gru", "frozen=false", "dropout=0.0", "own_words=0")
SMALL = (
    *(f"model.text.{word}" for word in WORDS),
    *("model.size=256", "average=0", f"batch={BATCH}", "data.in_memory=false"),
    *("schedule.kind=constant", "schedule.warmup=0", "augment.regions=0", "augment.features=0"),
)
STARTS = ("cold", "half an epoch", "an epoch")
# Title, recipe, rate, steps, starts; about 17 minutes of one core in all.
ROWS = (
    ("VSE++", "vse", "2e-3", 300, STARTS),
    ("VSE++", "vse", "2e-4", 300, (STARTS[0], STARTS[2])),
    ("SCAN t-i AVG", "scan-t-i-avg", "5e-4", 280, (STARTS[0], STARTS[2])),
)


class Watched:
    """A schedule of losses that writes down what each step's scores are.

    Args:
        losses: the schedule.
        margin: of the hardest loss that is written down.
    """

    def __init__(self, losses, margin):
        self.losses, self.hardest, self.seen = losses, Hardest(margin), []

    def at(self, step):
        """Return the loss of a step."""
        loss = self.losses.at(step)

        def watched(scores, images, texts):
            with torch.no_grad():
                self.seen.append(look(scores, images, texts, self.hardest))
            return loss(scores, images, texts)

        return watched


def look(scores, images, texts, hardest):
    """Return the hardest loss, the share of images that find their sentence, and the spread.

    Args:
        scores: (N, N), a row an image.
        images: (N,) which image each row is.
        texts: (N,) which image each column's sentence belongs to.
        hardest: the loss.
    """
    wrong = images[:, None] != texts
    first = scores.diagonal() > scores.masked_fill(~wrong, -torch.inf).amax(1)  # ties do not count
    return {
        "loss": float(hardest(scores, images, texts)),
        "found": float(first.float().mean()),
        "spread": float(scores.std()),
    }


def config_of(recipe, rate, place=()):
    """Return the settings of a row."""
    path = ROOT / "recipes" / "flickr8k" / f"{recipe}.yaml"
    return load_recipe(TrainConfig, path, [*SMALL, f"optimiser.rate={rate}", *place])


def train(recipe, rate, start, steps, place):
    """Train one row from one start and return its figures over the last steps.

    Args:
        recipe: in recipes/flickr8k/.
        rate: of learning.
        start: one of STARTS.
        steps: how many.
        place: the settings that say where data lie.
    """
    device = torch.device("cpu")
    with repeatable(device):
        prepared = prepare(config_of(recipe, rate, place), device=device)
        warm = warm_steps(start, prepared.train.steps(BATCH))
        config = config_of(recipe, rate, [*place, f"loss.warm_steps={warm}"])
        run = Run(config, prepared, Path("nothing-is-written"), device)
        run.losses = watched = Watched(run.losses, config.loss.margin)
        run.step.train()
        began = time.perf_counter()
        for batch in islice(endless(prepared.train, config.seed), steps):
            run.one_step(batch)
            run.state.step += 1
    seconds = round(time.perf_counter() - began, 1)
    return {"start": start, "warm_steps": warm, **means(watched.seen), "seconds": seconds}


def warm_steps(start, per_epoch):
    return {"cold": 0, "half an epoch": per_epoch // 2, "an epoch": per_epoch}[start]


def endless(captions, seed):
    """Yield the batches of one epoch after the other, as the trainer draws them."""
    for epoch in count():
        yield from captions.batches(captions.order(seed, epoch, BATCH))


def means(seen):
    """Return the means over the last steps, and whether the scores have collapsed."""
    last = seen[-LAST:]
    found = {name: sum(one[name] for one in last) / len(last) for name in last[0]}
    return {name: round(value, 5) for name, value in found.items()} | {
        "collapsed": collapsed(found["spread"])
    }


# The page -----------------------------------------------------------------------------------------


def written(found):
    """Return what stands in docs/training.md: the table, and what it is of.

    Args:
        found: the JSON.
    """
    rows = []
    for row in found["rows"]:
        name = f"{row['model']}, {row['rate']}, {row['steps']}"
        for run in row["starts"]:
            start = run["start"]
            if run["warm_steps"]:
                start = f"warm over {run['warm_steps']} ({start})"
            spread = f"{run['spread']:.2g}" + (": collapsed" if run["collapsed"] else "")
            rows.append((name, start, f"{run['loss']:.1f}", f"{run['found']:.2f}", spread))
            name = ""
    head = ("model, rate, steps", "start", "hardest loss", "right sentence found in the batch")
    what = (
        f"Measured by `{found['command']}` (`{JSON}`): size 256, words of a GRU, batches of\n"
        f"{BATCH} ({collapse_loss():.1f} is 2 x batch x margin), one seed, means over the last "
        f"{LAST} steps:"
    )
    return f"{what}\n\n{table(rows, (*head, 'spread of the scores'))}"


def collapse_loss():
    _, recipe, rate, *_ = ROWS[0]
    return 2 * BATCH * config_of(recipe, rate).loss.margin


def write_page(found, path):
    text = path.read_text("utf-8")
    path.write_text(fill(text, BEGIN, END, written(found)), "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="../shared/data/flickr8k")
    parser.add_argument("--store", default="regions/flickr8k")
    parser.add_argument("--steps", type=int, help="of every run, to try it; writes no page")
    parser.add_argument("--out", type=Path, default=ROOT / JSON)
    parser.add_argument("--page", action="store_true", help="train nothing, write the page alone")
    args = parser.parse_args()
    if args.page:
        write_page(json.loads(args.out.read_text("utf-8")), ROOT / PAGE)
        return
    if args.steps and args.out == ROOT / JSON:
        sys.exit("--steps is a trial, wanted with --out somewhere else")
    place = (f"data.captions={args.data}", f"data.regions={args.store}")
    rows = []
    found = {"command": "python tools/measure_warm_start.py", "versions": versions(), "last": LAST}
    for model, recipe, rate, steps, starts in ROWS:
        steps = args.steps or steps
        settings = [*SMALL, f"optimiser.rate={rate}"]
        row = {"model": model, "rate": rate, "steps": steps, "recipe": recipe, "starts": []}
        rows.append(row | {"settings": settings})
        for start in starts:
            rows[-1]["starts"].append(train(recipe, rate, start, steps, place))
            print(model, rate, rows[-1]["starts"][-1], flush=True)
    args.out.write_text(json.dumps(found | {"rows": rows}, indent=1) + "\n", "utf-8")
    if not args.steps:
        write_page(found | {"rows": rows}, ROOT / PAGE)


if __name__ == "__main__":
    main()
