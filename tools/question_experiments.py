"""Run the experiment on questions: train a row of r-DAN, look at test once, keep the figures.

    python tools/question_experiments.py --list
    python tools/question_experiments.py easy-vqa daquar-k2      (these rows)
    python tools/question_experiments.py                         (all that have no result yet)
    python tools/question_experiments.py --again daquar-k2       (though its result is there)

Regions first: the head of each recipe has the command. A row that was stopped goes on where it was,
and a run that has ended is not trained twice: delete its folder for that. Runs go to runs/rdan/,
figures to results/rdan/<row>.json, with how right each answer was as bare numbers, for intervals of
differences; questions and answers stay in runs/. tools/results_page.py makes a table of them.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from experiments import crossgaze, written

ROOT = Path(__file__).parents[1]
RESULTS, RUNS = Path("results/rdan"), Path("runs/rdan")


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Args:
        title: what the table calls it.
        data: the question set, a key of DATA.
        settings: beside the recipe's.
    """

    title: str
    data: str
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Data:
    """A question set.

    Args:
        recipe: by which all its rows are trained.
        source: what `crossgaze evaluate` reads.
        store: of its regions.
        options: of the evaluation.
    """

    recipe: str
    source: str
    store: str
    options: tuple[str, ...] = ()


DATA = {
    "easy-vqa": Data("recipes/rdan-easy-vqa.yaml", "easy-vqa", "regions/easy-vqa"),
    "daquar": Data(
        "recipes/rdan-daquar.yaml", "../shared/data/daquar", "regions/daquar", ("--single",)
    ),
}
ROWS = {
    "easy-vqa": Row("r-DAN, K = 2", "easy-vqa"),
    "daquar-k1": Row("r-DAN, K = 1", "daquar", ("model.steps=1",)),
    "daquar-k2": Row("r-DAN, K = 2", "daquar"),
    "daquar-k3": Row("r-DAN, K = 3", "daquar", ("model.steps=3",)),
    "daquar-lstm": Row(
        "r-DAN, K = 2, words of an LSTM",
        "daquar",
        (
            "model.text={kind: lstm, word_size: 256, word_range: 1.0, dropout: 0.2, join: sum}",
            "augment={words: 0.1, regions: 0.1, features: 0.2}",
        ),
    ),
    "daquar-all": Row(
        "r-DAN, K = 2, nearly all training images", "daquar", ("data.dev_share=0.01", "patience=0")
    ),
    "daquar-question": Row("question only, K = 2", "daquar", ("model.reads=question",)),
    "daquar-image": Row("image only, K = 2", "daquar", ("model.reads=image",)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help="default: all")
    parser.add_argument("--list", action="store_true", help="say which rows there are")
    parser.add_argument("--again", action="store_true", help="even where there is a result")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    unknown = [name for name in args.rows if name not in ROWS]
    if unknown:
        sys.exit(f"no such row: {', '.join(unknown)}; wanted of {', '.join(ROWS)}")
    for name in args.rows or ROWS:
        done = result_of(name).is_file()
        if args.list:
            print(f"{name}: {ROWS[name].data}, {ROWS[name].title}{' (done)' if done else ''}")
        elif args.again or not done:
            run(name, args.seed)


def result_of(name):
    return ROOT / RESULTS / f"{name}.json"


def run(name, seed=0):
    """Train and evaluate one row, and write its result whole."""
    row, data = ROWS[name], DATA[ROWS[name].data]
    folder = RUNS / f"{name}-{seed}"
    words = [data.recipe, f"seed={seed}", *row.settings, f"data.regions={data.store}"]
    crossgaze(["train", *words, "--out", str(folder)])
    summary = json.loads((ROOT / folder / "summary.json").read_text("utf-8"))
    out = f"{folder}-test.json"
    words = [str(folder / "best"), data.source, "--store", data.store, *data.options]
    measured = json.loads(crossgaze(["evaluate", *words, "--out", out, "--json"]))
    again = f"python tools/question_experiments.py --again {name}"
    result = {"row": name, "title": row.title, "seed": seed, "measured": measured}
    result |= {"commands": [again + (f" --seed {seed}" if seed else "")]}
    result["training"] = without_texts(summary)
    path = result_of(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    whole = json.loads((ROOT / out).read_text("utf-8"))
    fresh.write_text(written(result, {"answered": bare_numbers(whole)}), "utf-8")
    fresh.replace(path)
    print(name, {key: one["value"] for key, one in measured["figures"].items()}, flush=True)


def without_texts(summary):
    """Return a run's summary without the answers that it chose from, and without notes."""
    kept = {key: value for key, value in summary.items() if key != "notes"}  # examples are texts
    return kept | {"model": kept["model"] | {"answers": len(kept["model"]["answers"])}}


def bare_numbers(whole):
    """Return how right each answer was and the number of its image, without a text or a name.

    Args:
        whole: what `crossgaze evaluate --out` wrote.
    """
    queries = whole["queries"]
    places = {}
    images = [places.setdefault(query["image"], len(places)) for query in queries]
    return {"image": images, "right": [query["right"] for query in queries]}


if __name__ == "__main__":
    main()
