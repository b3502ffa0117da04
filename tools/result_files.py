"""The results of the experiment (tools/experiments.py), read back: means, spreads, differences."""

import json
import math
import statistics
import sys
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from crossgaze.config import build, load_recipe, to_dict
from crossgaze.evaluation.bootstrap import BootstrapConfig
from crossgaze.evaluation.phrase_sums import PhraseSums
from crossgaze.evaluation.recall import Retrieval
from crossgaze.evaluation.runs import drawn_retrieval, mean_of_runs
from crossgaze.training.config import TrainConfig, differences
from experiments import ROWS

ROOT = Path(__file__).parents[1]
CONFIG = BootstrapConfig()
NOT_RUN = "not run yet"


@dataclass(frozen=True)
class Result:
    """One run of a row: its file, and figures with draws where they are asked for."""

    path: Path
    found: dict

    @cached_property
    def retrieval(self):
        """Its recalls on every draw."""
        ranks = self.found["ranks"]
        owners = np.repeat(np.arange(len(ranks["per_image"])), ranks["per_image"])
        if (len(ranks["images"]), len(ranks["captions"])) != (len(ranks["per_image"]), len(owners)):
            sys.exit(f"{self.path}: not one rank for each image and caption")
        texts, images = (np.array(ranks[side]) - 1 for side in ("images", "captions"))
        return drawn_retrieval(Retrieval(texts, images, owners), CONFIG)

    @cached_property
    def attention(self):
        """Its draws, or None for a model that does not relate words to regions."""
        found = self.found.get("attention")
        return found and PhraseSums.from_dict(found).drawn(CONFIG)

    def drawn(self, figure):
        """Return what holds a figure; None if it was not measured."""
        return self.retrieval if figure in self.retrieval.values else self.attention

    def value(self, figure):
        """Return a figure."""
        return self.drawn(figure).values[figure]


def read_results(folder):
    """Return the results, {row: {seed: Result}}; every row is a key, with or without any."""
    known = {f"{name}-{seed}": (name, seed) for name, row in ROWS.items() for seed in row.seeds}
    results = {name: {} for name in ROWS}
    for path in sorted(folder.glob("*.json")):
        if path.stem not in known:
            sys.exit(f"{path}: no row and seed of tools/experiments.py is called so")
        name, seed = known[path.stem]
        found = json.loads(path.read_text("utf-8"))
        if "ranks" not in found:
            sys.exit(f"{path}: has no ranks; python tools/experiments.py --again {name}")
        if other := other_settings(name, found["training"]):
            sys.exit(
                f"{path}: was trained by other settings than its row: {', '.join(other)}; delete "
                f"it, or python tools/experiments.py --again {name}"
            )
        results[name][seed] = Result(path, found)
    return results


def other_settings(name, training):
    """Return what a run's settings differ in from its row's; where its data lie is no matter.

    Args:
        name: the row.
        training: the run's summary; none where members are averaged, which have results too.
    """
    row = ROWS[name]
    if not training or "config" not in training:
        return []
    recipe = ROOT / "recipes" / "flickr8k" / f"{row.recipe}.yaml"
    nowhere = {"captions": "x", "regions": "x", "kept_words": None, "in_memory": False}
    given = training["config"] | {"data": training["config"]["data"] | nowhere}
    wanted = to_dict(load_recipe(TrainConfig, recipe, row.settings))
    wanted |= {"data": wanted["data"] | nowhere, "seed": given["seed"]}
    # Keys that either leaves out have their defaults.
    first, second = (build(TrainConfig, tree) for tree in (given, wanted))
    first, second = (replace(one, model=to_dict(one.model_config(1))) for one in (first, second))
    return differences(first, second)


def mean_drawn(runs, figure):
    return mean_of_runs([run.drawn(figure) for run in runs])


def spread(runs, figure):
    """Return the standard deviation over seeds, None with one run alone."""
    return statistics.stdev(run.value(figure) for run in runs) if len(runs) > 1 else None


def cell(runs, figure, digits=1):
    """Return the mean over seeds and their spread."""
    if not runs or runs[0].drawn(figure) is None:
        return "-"
    off = spread(runs, figure)
    mean = statistics.fmean(run.value(figure) for run in runs)
    return f"{mean:.{digits}f}" + ("" if off is None else f" ± {off:.{digits}f}")


def interval(runs, figure, digits=1):
    found = mean_drawn(runs, figure).estimates(CONFIG.level)[figure]
    return f"{found.low:.{digits}f} to {found.high:.{digits}f}"


def difference(first, second, figure):
    """Return how much higher the mean of some runs is than that of others, with its interval."""
    return (mean_drawn(first, figure) - mean_drawn(second, figure)).estimates(CONFIG.level)[figure]


def shown(change, digits=1):
    """Return a difference for a table."""
    interval = f"{change.low:+.{digits}f} to {change.high:+.{digits}f}"
    return f"{change.value:+.{digits}f} ({interval})"


@dataclass(frozen=True)
class Luck:
    """How much seeds differ, pooled over the rows that have several.

    Args:
        sigma: the standard deviation.
        freedom: of how many seeds beyond the first of each row it is known.
        rows: which rows they are.
    """

    sigma: float
    freedom: int
    rows: tuple[str, ...]

    def reach(self, first, second):
        """Return how far means of so many runs differ by seeds alone, 19 times of 20."""
        likely = student.ppf(0.975, self.freedom)
        return likely * self.sigma * math.sqrt(1 / first + 1 / second)


def luck_of_training(results, figure):
    """Return how much seeds differ, or None where no row has several."""
    return pooled(
        {
            name: [run.value(figure) for run in runs.values()]
            for name, runs in results.items()
            if len(runs) > 1 and all(run.drawn(figure) is not None for run in runs.values())
        }
    )


def rsum_on_dev(run):
    """Return a run's rsum on dev, where its epoch was chosen; None where its file has none."""
    return ((run.found["training"] or {}).get("metrics") or {}).get("rsum")


def luck_on_dev(results):
    """Return how much seeds differ on dev; rows that learned from Flickr8k alone share one dev."""
    return pooled(
        {
            name: [rsum_on_dev(run) for run in runs.values()]
            for name, runs in results.items()
            if len(runs) > 1
            and ROWS[name].learned == ("flickr8k",)
            and not ROWS[name].run
            and None not in map(rsum_on_dev, runs.values())
        }
    )


def pooled(groups):
    """Return the luck of several groups of figures, {row: figures}; None without any."""
    if not groups:
        return None
    squares = sum((len(values) - 1) * statistics.stdev(values) ** 2 for values in groups.values())
    freedom = sum(len(values) - 1 for values in groups.values())
    return Luck(math.sqrt(squares / freedom), freedom, tuple(groups))
