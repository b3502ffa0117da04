"""The part of docs/results.md on questions, from results/rdan/*.json."""

import json
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from crossgaze.evaluation.bootstrap import mean_draws
from crossgaze.evaluation.runs import Drawn
from crossgaze.evaluation.tables import MEASURED, Table
from question_experiments import DATA, ROWS
from result_files import CONFIG, NOT_RUN, shown

FIGURES = ("accuracy", "wups_0.9", "wups_0.0")
TITLES = {"easy-vqa": "easy-vqa", "daquar": "DAQUAR"}
# What is public about DAQUAR, by others with other features; only the accuracy is known to us.
THEIRS = {"daquar": (("LSTM, question only", "about 19"), ("SAN", "about 29.3"))}
BASELINES = {"daquar": "daquar-question"}


@dataclass(frozen=True)
class Answers:
    """One result: its file, and its accuracy on every draw of images."""

    path: Path
    found: dict

    @cached_property
    def drawn(self):
        """Its accuracy, with draws."""
        right = np.array(self.found["answered"]["right"], np.float64)
        images = np.array(self.found["answered"]["image"], np.int64)
        if len(right) != len(images) or not len(right):
            sys.exit(f"{self.path}: not one image for each answer")
        count = int(images.max()) + 1
        draws = {"accuracy": 100 * mean_draws(right, images, count, CONFIG)}
        values = {"accuracy": 100 * float(right.mean())}
        return Drawn(values, draws, np.bincount(images, minlength=count))


def read_answers(folder):
    """Return the results, {row: Answers}; rows without one are not in it."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        if path.stem not in ROWS:
            sys.exit(f"{path}: no row of tools/question_experiments.py is called so")
        result = json.loads(path.read_text("utf-8"))
        if "answered" not in result:
            again = f"python tools/question_experiments.py --again {path.stem}"
            sys.exit(f"{path}: does not say how right each answer was; {again}")
        found[path.stem] = Answers(path, result)
    return {name: found[name] for name in ROWS if name in found}


def answers_table(results, data):
    """Return the figures of one question set, beside those of others."""
    baseline = BASELINES.get(data)
    wups = data == "daquar"
    head = ("whose", "what", "accuracy", "95 % interval")
    head += ("WUPS@0.9", "WUPS@0.0") * wups
    head += ("over question only",) if baseline else ()
    rows = []
    for name in (name for name, row in ROWS.items() if row.data == data):
        empty = ["-"] * (len(head) - 3)
        if name not in results:
            rows.append((MEASURED, ROWS[name].title, NOT_RUN, *empty))
            continue
        one = results[name].found["measured"]["figures"]
        span = results[name].drawn.estimates(CONFIG.level)["accuracy"]
        cells = [f"{span.value:.1f}", f"{span.low:.1f} to {span.high:.1f}"]
        if wups:
            cells += [f"{one[key]['value']:.1f}" if key in one else "-" for key in FIGURES[1:]]
        if baseline:
            cells.append(added(results, name, baseline))
        rows.append((MEASURED, ROWS[name].title, *cells))
    for what, accuracy in THEIRS.get(data, ()):
        rows.append(("theirs", what, accuracy, *["-"] * (len(head) - 3)))
    return Table("", head, tuple(rows))


def added(results, name, baseline):
    """Return how much more a row has than the baseline, on the same images."""
    if name == baseline or baseline not in results:
        return "-"
    change = results[name].drawn - results[baseline].drawn
    return shown(change.estimates(CONFIG.level)["accuracy"])


def making_table(results):
    head = ("row", "questions", "epochs", "best", "minutes", "parameters", "command")
    rows = []
    for name, row in ROWS.items():
        cells = (NOT_RUN, "-", "-", "-", "-")
        if name in results:
            made = results[name].found["training"]
            cells = (
                f"{made['data']['train_questions']:,}",
                str(made["epochs"]),
                str(made["best_epoch"]),
                f"{made['seconds'] / 60:.0f}",
                f"{made['parameters'] / 1e6:.1f} M",
            )
        command = f"`python tools/question_experiments.py --again {name}`"
        rows.append((f"{TITLES[row.data]}, {row.title}", *cells, command))
    return Table("", head, tuple(rows))


def questions_section(folder):
    """Return the section, from a folder of results."""
    results = read_answers(folder)
    tables = "\n\n".join(
        f"### {TITLES[data]}\n\n{answers_table(results, data).markdown()}" for data in DATA
    )
    done = f"{len(results)} of {len(ROWS)} results are in." if results else "None is in yet."
    return SECTION.format(done=done, tables=tables, making=making_table(results).markdown())


SECTION = """\
[r-DAN](questions.md) on the test questions of two sets; DAQUAR's with a single answer, on the
official split. {done}

- Settings were chosen on *training* images alone, the epoch on a tenth of them that was held out;
  the test questions were looked at once.
- **question only**, **image only**: the same network that reads nothing of the other.
- **Intervals** are of the luck of the test images, by drawing images again, each with all its
  questions; "over question only" is the difference on the same draws. There is one seed of each
  row, so the luck of training is not in them.
- **theirs** are public figures of others, with other features, not measured here.

{tables}

### Making them again

Minutes are by the clock, on a machine that did other work as well.

{making}
"""
