"""Run the experiment on Flickr8k: train a row, choose on dev, look at test once, keep the figures.

    python tools/experiments.py --list
    python tools/experiments.py scan-t-i-avg bfan          (all seeds of these rows)
    python tools/experiments.py                            (everything that has no result yet)
    python tools/experiments.py --seed 1 scan-t-i-avg      (one run of a row that has several)
    python tools/experiments.py --again bfan               (though its results are there)

A row that was stopped goes on where it was, and a run that has ended is not trained twice: delete
its folder for that. Runs go to runs/flickr8k/, figures to results/flickr8k/<row>-<seed>.json, with
the rank of every query and what attention did on each image as bare numbers, for intervals of
differences; captions and names stay in runs/. tools/results_page.py makes docs/results.md of them.
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = {"flickr8k": "../shared/data/flickr8k", "coco": "../shared/data/coco"}
ENTITIES = "../shared/data/flickr30k_entities"  # of Flickr8k's photographs
RESULTS, RUNS = Path("results/flickr8k"), Path("runs/flickr8k")
KEPT = "runs/words"  # what a frozen BERT gives, for all rows
REGIONS = {"objects": "regions/{}-objects", "grid": "regions/{}-grid", "whole": "regions/{}"}


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Args:
        title: what the table calls it.
        recipe: in recipes/flickr8k/, without its ending.
        seeds: one run each.
        regions: a key of REGIONS.
        learned: the sets that it is trained on, keys of DATA.
        tested: the set that it is tested on.
        run: the row whose training it shares; its own by default.
        settings: beside the recipe's.
        attention: whether the model relates words to regions, so that attention can be measured.
        members: rows whose scores are averaged, instead of a recipe.
        split: what it is tested on; comparisons that only choose look at dev alone.
        bank: the split by which hubs are held back, if they are.
    """

    title: str
    recipe: str = ""
    seeds: tuple[int, ...] = (0,)
    regions: str = "whole"
    learned: tuple[str, ...] = ("flickr8k",)
    tested: str = "flickr8k"
    run: str = ""
    settings: tuple[str, ...] = ()
    attention: bool = True
    members: tuple[str, ...] = ()
    split: str = "test"
    bank: str = ""


SCAN = "scan-t-i-avg"
# Regions were compared first, by the recipe of that time; what it found holds for all other rows.
FIRST = ("model.text.own_words=0", "augment.regions=0.2", "epochs=5")
THREE = (0, 1, 2)
BOTH = ("flickr8k", "coco")
WIDE = Row(  # of the seeds and sizes that were tried on dev the best
    "VSE++, mean and whole image, D = 1024",
    "vse-whole",
    (1,),
    learned=BOTH,
    settings=("model.size=1024",),
    attention=False,
)
# MiniLM's last three layers learn along, at a twentieth of the rate.
TUNED = ("model.text.tuned=3", "optimiser.pretrained=0.05")
LONGER = Row("BFAN, half as long again", "bfan", learned=BOTH, settings=("epochs=6",))
ALONG = Row("BFAN, MiniLM trained along", "bfan", learned=BOTH, settings=TUNED)
PAIR = Row(
    f"{ALONG.title} + {WIDE.title}", members=("both-bfan-tuned", "both-vse-wide"), learned=BOTH
)
HELD = {"bank": "train", "attention": False}  # attention is that of the row without


def transfer(name, recipe, title):
    """Return the rows of one model: from Flickr8k to COCO, on COCO itself, and back."""
    coco = Row(title, recipe, learned=("coco",), tested="coco", settings=("epochs=10",))
    return {
        f"{recipe}-on-coco": Row(title, recipe, tested="coco", run=recipe),
        f"coco-{name}": coco,
        f"coco-{name}-on-flickr8k": replace(coco, tested="flickr8k", run=f"coco-{name}"),
    }


ROWS = {
    "regions-objects": Row(
        "SCAN t-i AVG, objects", SCAN, regions="objects", settings=FIRST, split="dev"
    ),
    "regions-grid": Row(
        "SCAN t-i AVG, 6x6 grid", SCAN, regions="grid", settings=FIRST, split="dev"
    ),
    "regions-whole": Row("SCAN t-i AVG, objects and whole", SCAN, settings=FIRST, split="dev"),
    "vse": Row("VSE++, mean pooling", "vse", attention=False),
    "vse-whole": Row("VSE++, mean and whole image", "vse-whole", attention=False),
    "vse-whole-minilm": Row(
        "VSE++, mean and whole image, words of MiniLM alone",
        "vse-whole",
        settings=("model.text.own_words=0",),
        attention=False,
    ),
    "vse-whole-gru": Row(
        "VSE++, mean and whole image, words of a GRU", "vse-whole-gru", attention=False
    ),
    "sum-max-t-i": Row("Sum-Max t-i", "sum-max-t-i", attention=False),
    "scan-t-i-avg": Row("SCAN t-i AVG", SCAN, THREE),
    "scan-i-t-avg": Row("SCAN i-t AVG", "scan-i-t-avg", attention=False),
    "scan-i-t-lse": Row("SCAN i-t LSE", "scan-i-t-lse", attention=False),
    "scan-both": Row("SCAN t-i AVG + i-t AVG", members=("scan-t-i-avg", "scan-i-t-avg")),
    "scan-all-negatives": Row("SCAN t-i AVG, all negatives", "scan-t-i-avg-all-negatives"),
    "bfan": Row("BFAN", "bfan"),
    "bfan-vse": Row("BFAN + VSE++, mean and whole image", members=("bfan", "vse-whole")),
    "vsrn": Row("VSRN", "vsrn", attention=False),
    "vsrn-mean-pool": Row("VSRN, mean pooling", "vsrn-mean-pool", attention=False),
    "vsrn-no-captions": Row("VSRN without L_G", "vsrn-no-captions", attention=False),
    "m-dan": Row("m-DAN", "m-dan", attention=False),
    "mmca-self": Row("MMCA, self-attention only", "mmca-self", attention=False),
    "mmca": Row("MMCA", "mmca", attention=False),
    "scan-ccr": Row("SCAN + CCR", "scan-ccr"),
    "scan-ccs": Row("SCAN + CCS", "scan-ccs"),
    "scan-ccr-ccs": Row("SCAN + CCR + CCS", "scan-ccr-ccs", THREE),
    "bfan-ccr": Row("BFAN + CCR", "bfan-ccr"),
    "bfan-ccs": Row("BFAN + CCS", "bfan-ccs"),
    "bfan-ccr-ccs": Row("BFAN + CCR + CCS", "bfan-ccr-ccs"),
    **transfer("scan", SCAN, "SCAN t-i AVG"),
    **transfer("scan-ccr-ccs", "scan-ccr-ccs", "SCAN + CCR + CCS"),
    **transfer("bfan", "bfan", "BFAN"),
    "both-vse-whole": Row(
        "VSE++, mean and whole image", "vse-whole", attention=False, learned=BOTH
    ),
    "both-vse-whole-on-coco": Row(
        "VSE++, mean and whole image",
        "vse-whole",
        attention=False,
        learned=BOTH,
        tested="coco",
        run="both-vse-whole",
    ),
    "both-scan": Row("SCAN t-i AVG", SCAN, learned=BOTH),
    "both-scan-on-coco": Row("SCAN t-i AVG", SCAN, learned=BOTH, tested="coco", run="both-scan"),
    "both-bfan": Row("BFAN", "bfan", learned=BOTH),
    "both-bfan-vse": Row(
        "BFAN + VSE++, mean and whole image", members=("both-bfan", "both-vse-whole"), learned=BOTH
    ),
    "both-bfan-on-coco": Row("BFAN", "bfan", learned=BOTH, tested="coco", run="both-bfan"),
    "both-bfan-longer": LONGER,
    "both-bfan-longer-on-coco": replace(LONGER, tested="coco", run="both-bfan-longer"),
    "both-vse-wide": WIDE,
    "both-vse-wide-on-coco": replace(WIDE, tested="coco", run="both-vse-wide"),
    "both-bfan-vse-wide": Row(
        "BFAN + VSE++, mean and whole image, D = 1024",
        members=("both-bfan", "both-vse-wide"),
        learned=BOTH,
    ),
    "both-bfan-tuned": ALONG,
    "both-bfan-tuned-on-coco": replace(ALONG, tested="coco", run="both-bfan-tuned"),
    "both-bfan-tuned-vse-wide": PAIR,
    "both-bfan-tuned-held": replace(
        ALONG, title=f"{ALONG.title}; hubs held back", run="both-bfan-tuned", **HELD
    ),
    "both-bfan-tuned-vse-wide-held": replace(PAIR, title=f"{PAIR.title}; hubs held back", **HELD),
    "trial-vse-tuned": Row(
        "VSE++, mean and whole image, MiniLM trained along",
        "vse-whole",
        settings=TUNED,
        attention=False,
        split="dev",
    ),
    "trial-vsrn": Row(
        "VSRN without L_G", "vsrn-no-captions", run="vsrn-no-captions", attention=False, split="dev"
    ),
    "trial-vsrn-mean": Row(
        "VSRN without L_G, mean pooling",
        "vsrn-no-captions",
        settings=("model.layers=0", "model.reasoning=mean"),
        attention=False,
        split="dev",
    ),
    "trial-scan": Row("SCAN t-i AVG", SCAN, (1,), run="scan-t-i-avg", split="dev"),
    "trial-ccs": Row("SCAN + CCS", "scan-ccs", run="scan-ccs", split="dev"),
    "trial-ccs-strong": Row(
        "SCAN + CCS, lambda_CCS 1 and gamma_3 0.4",
        "scan-ccs",
        settings=("constraints.ccs=1.0", "constraints.ccs_margin=0.4"),
        split="dev",
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help="default: all")
    parser.add_argument("--seed", type=int, help="only the run of this seed")
    parser.add_argument("--list", action="store_true", help="say which rows there are")
    parser.add_argument("--again", action="store_true", help="even where there is a result")
    args = parser.parse_args()
    unknown = [name for name in args.rows if name not in ROWS]
    if unknown:
        sys.exit(f"no such row: {', '.join(unknown)}; wanted of {', '.join(ROWS)}")
    for name in args.rows:
        if args.seed is not None and args.seed not in ROWS[name].seeds:
            seeds = ", ".join(map(str, ROWS[name].seeds))
            sys.exit(f"{name} has no seed {args.seed}, wanted of {seeds}")
    names = args.rows or list(ROWS)
    for name in names:
        for seed in ROWS[name].seeds:
            if args.seed not in (None, seed):
                continue
            done = result_of(name, seed).is_file()
            if args.list:
                print(f"{name}-{seed}: {ROWS[name].title}{' (done)' if done else ''}")
            elif args.again or not done:
                run(name, seed)


def result_of(name, seed):
    return ROOT / RESULTS / f"{name}-{seed}.json"


def seed_of(member, seed):
    """Return the seed of a member for one of those that it is averaged with: that, if it has it."""
    seeds = ROWS[member].seeds
    return seed if seed in seeds else seeds[0]


def run_of(name, seed):
    return RUNS / f"{ROWS[name].run or name}-{seed}"


def regions_of(row, name):
    """Return the region store of one of the sets, for one row."""
    return REGIONS[row.regions].format(name)


def listed(paths):
    """Return one path, or several as a list of YAML."""
    return paths[0] if len(paths) == 1 else f"[{', '.join(paths)}]"


def train(name, seed):
    """Train one row, unless its run has ended, and return the run's summary."""
    row = ROWS[name]
    words = ["train", f"recipes/flickr8k/{row.recipe}.yaml", f"seed={seed}", *row.settings]
    words.append(f"data.captions={listed([DATA[one] for one in row.learned])}")
    words.append(f"data.regions={listed([regions_of(row, one) for one in row.learned])}")
    words.append(f"data.kept_words={KEPT}")
    words += ["--out", str(run_of(name, seed))]
    crossgaze(words)
    return json.loads((ROOT / run_of(name, seed) / "summary.json").read_text("utf-8"))


def run(name, seed):
    """Train and evaluate one row, and write its result whole."""
    row = ROWS[name]
    summary = train(name, seed) if row.recipe else None
    members = [(member, seed_of(member, seed)) for member in row.members]
    for member in members:
        train(*member)
    held = f"-{row.bank}" if row.bank else ""
    out = f"{run_of(name, seed)}-{row.tested}-{row.split}{held}.json"
    models = [run_of(*one) / "best" for one in members or [(name, seed)]]
    words = ["evaluate", str(models[0]), DATA[row.tested], "--store", regions_of(row, row.tested)]
    words += ["--split", row.split, "--out", out, "--kept-words", KEPT]
    if row.bank:
        words += ["--bank", row.bank]
    for other in models[1:]:
        words += ["--ensemble", str(other)]
    if row.attention and row.tested == "flickr8k":
        words += ["--entities", ENTITIES]
    measured = json.loads(crossgaze([*words, "--json"]))
    for entry in measured["attention"]:
        del entry["left_out"]  # its examples are captions
    result = {"row": name, "title": row.title, "seed": seed, "measured": measured}
    result |= {"commands": [f"python tools/experiments.py --again {name}"], "training": summary}
    path = result_of(name, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    bare = bare_numbers(json.loads((ROOT / out).read_text("utf-8")))
    fresh.write_text(written(result, bare), "utf-8")
    fresh.replace(path)
    figures = measured["protocols"][0]["figures"]
    print(name, seed, {key: found["value"] for key, found in figures.items()}, flush=True)


def bare_numbers(whole):
    """Return what differences need of a whole evaluation, without a text or a name.

    Args:
        whole: what `crossgaze evaluate --out` wrote.
    """
    queries = whole["protocols"][0]["queries"]
    owners = Counter(caption["image"] for caption in queries["captions"])
    ranks = {side: [query["rank"] for query in queries[side]] for side in ("images", "captions")}
    # Captions stand in the order of their images.
    bare = {"ranks": ranks | {"per_image": [owners[one["image"]] for one in queries["images"]]}}
    if len(whole["model"]["folders"]) == 1 and whole["attention"]:  # an ensemble has none itself
        bare["attention"] = whole["attention"][0]["by_image"]
    return bare


def written(result, bare):
    """Return a result as JSON for people, with each entry of the bare numbers on one line."""
    text = json.dumps(result, indent=2).removesuffix("\n}")
    lines = (f',\n  "{key}": {json.dumps(found)}' for key, found in bare.items())
    return text + "".join(lines) + "\n}\n"


def crossgaze(words):
    print("crossgaze", shlex.join(words), flush=True)
    command = [sys.executable, "-m", "crossgaze", *words]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


if __name__ == "__main__":
    main()
