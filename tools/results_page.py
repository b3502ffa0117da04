"""Write docs/results.md, its learning curves and README's table from results/flickr8k/ and rdan/.

python tools/results_page.py [--check]

Which rows there are say tools/experiments.py and tools/question_experiments.py; one without a
result is listed as not run yet. The section on questions is made by tools/question_page.py.
Intervals are made anew from the ranks that every result holds.
"""

import argparse
import hashlib
import json
import statistics
import sys
import textwrap
from pathlib import Path

from PIL import Image

from claims import claims_table
from crossgaze.evaluation.recall import RECALLS
from crossgaze.evaluation.tables import Table
from experiments import RESULTS, ROWS, run_of, seed_of
from pages import fill
from question_experiments import RESULTS as ANSWERS
from question_page import questions_section
from result_files import (
    NOT_RUN,
    cell,
    difference,
    interval,
    luck_of_training,
    luck_on_dev,
    read_results,
    rsum_on_dev,
    shown,
)
from results_text import LOOKED, TEXT

ROOT = Path(__file__).parents[1]
PAGE, PICTURES, README = Path("docs/results.md"), Path("docs/pictures"), Path("README.md")
BEGIN, END = "<!-- results: tools/results_page.py writes this -->", "<!-- end results -->"
# What README shows.
SHORT = (
    *("vse", "vse-whole", "sum-max-t-i", "scan-t-i-avg", "scan-i-t-avg", "scan-both", "bfan"),
    *("bfan-vse", "vsrn", "m-dan", "mmca", "scan-ccr-ccs", "bfan-ccr-ccs"),
    *("both-bfan-tuned", "both-bfan-tuned-vse-wide", "both-bfan-tuned-vse-wide-held"),
)
# Learning curves: rows that are looked at together. What none names comes into the last.
CURVES = {
    "scan": (
        "From one vector to attention",
        "vse vse-whole vse-whole-minilm trial-vse-tuned sum-max-t-i scan-t-i-avg scan-i-t-avg "
        "scan-i-t-lse scan-all-negatives",
    ),
    "constraints": (
        "CCR and CCS",
        "scan-t-i-avg scan-ccr scan-ccs scan-ccr-ccs bfan bfan-ccr bfan-ccs bfan-ccr-ccs "
        "trial-ccs-strong",
    ),
    "vsrn": ("VSRN", "vsrn vsrn-mean-pool vsrn-no-captions trial-vsrn-mean"),
    "regions": ("SCAN t-i AVG on three kinds of regions", ""),
    "mmca": ("MMCA", "mmca-self mmca"),
    "longer": (
        "Of both sets: a longer run, words trained along, a wider model",
        "both-bfan both-bfan-longer both-bfan-tuned both-vse-wide",
    ),
    "others": ("Other models", ""),
}


# Tables -------------------------------------------------------------------------------------------


def seeds_of(name, runs):
    made, wanted = len(runs), len(ROWS[name].seeds)
    return str(made) if made == wanted else f"{made} of {wanted}"


def retrieval_table(results):
    head = ("row", "seeds", "i2t R@1", "R@5", "R@10", "t2i R@1", "R@5", "R@10", "rsum")
    rows = []
    for name in tested_on(results, "test"):
        runs = list(results[name].values())
        if not runs:
            rows.append((ROWS[name].title, NOT_RUN, *["-"] * 8))
            continue
        figures = [cell(runs, figure) for figure in (*RECALLS, "rsum")]
        rows.append(
            (ROWS[name].title, seeds_of(name, runs), *figures, interval(runs, "rsum")),
        )
    return Table("", (*head, "95 % interval"), tuple(rows))


def intervals_table(results):
    """Return the intervals of each recall."""
    rows = [
        (ROWS[name].title, *(interval(list(results[name].values()), one) for one in RECALLS))
        for name in tested_on(results, "test")
        if results[name]
    ]
    head = ("row", "i2t R@1", "R@5", "R@10", "t2i R@1", "R@5", "R@10")
    return Table("", head, tuple(rows))


def more_intervals_table(results):
    """Return what the other tables leave out: median ranks, intervals of attention, of transfer."""
    head = ("row", "learned from", "tested on", "i2t R@1", "t2i R@1", "median ranks")
    rows = []
    for name, row in ROWS.items():
        runs = list(results[name].values())
        if not runs or row.split != "test":
            continue
        at_home = row.learned == ("flickr8k",) == (row.tested,)
        recalls = ["above"] * 2 if at_home else [interval(runs, f"{s}_r1") for s in ("i2t", "t2i")]
        medians = " and ".join(
            f"{statistics.fmean(run.value(f'{side}_median') for run in runs):.3g} "
            f"({interval(runs, f'{side}_median', 0)})"
            for side in ("i2t", "t2i")
        )
        attention = ["-"] * 3
        if row.attention and not row.members and runs[0].attention is not None:
            attention = [interval(runs, one, 3) for one in ("precision", "recall", "pointing")]
        learned = " and ".join(NAMES[one] for one in row.learned)
        rows.append((row.title, learned, NAMES[row.tested], *recalls, medians, *attention))
    return Table("", (*head, "precision", "recall", "pointing"), tuple(rows))


def short_table(results):
    """Return the table of README: some rows, whatever of them was run."""
    rows = []
    for name in SHORT:
        runs = list(results[name].values())
        if runs:
            figures = [cell(runs, figure) for figure in ("i2t_r1", "t2i_r1", "rsum")]
            more = " (both sets)" if len(ROWS[name].learned) > 1 else ""
            rows.append((f"{ROWS[name].title}{more}", *figures, cell(runs, "f1", 2)))
    return Table("", ("", "i2t R@1", "t2i R@1", "rsum", "attention F1"), tuple(rows))


def attention_table(results):
    head = ("row", "seeds", "precision", "recall", "F1", "95 % interval", "pointing", "covered")
    rows = []
    for name in tested_on(results, "test"):
        if not ROWS[name].attention or ROWS[name].members:
            continue
        runs = list(results[name].values())
        if not runs:
            rows.append((ROWS[name].title, NOT_RUN, *["-"] * 6))
            continue
        figures = [cell(runs, figure, 3) for figure in ("precision", "recall", "f1")]
        last = [cell(runs, figure, 3) for figure in ("pointing", "covered")]
        measured = runs[0].attention is not None
        span = interval(runs, "f1", 3) if measured else "-"
        rows.append((ROWS[name].title, seeds_of(name, runs), *figures, span, *last))
    return Table("", head, tuple(rows))


def regions_table(results):
    """Compare regions by what counts phrases that no region fits as missed."""
    head = ("regions", "i2t R@1", "t2i R@1", "rsum", "95 % interval", "F1 of all phrases")
    head += ("pointing", "covered", "rsum over the grid", "F1 over the grid")
    grid = list(results["regions-grid"].values())
    rows = []
    for name in on_dev(results, "regions"):
        runs = list(results[name].values())
        if not runs:
            rows.append((ROWS[name].title, NOT_RUN, *["-"] * 8))
            continue
        figures = [cell(runs, figure) for figure in ("i2t_r1", "t2i_r1", "rsum")]
        attention = [cell(runs, figure, 3) for figure in ("f1_all", "pointing", "covered")]
        changes = ["-", "-"]
        if grid and name != "regions-grid":
            changes[0] = shown(difference(runs, grid, "rsum"))
            if runs[0].attention and grid[0].attention:
                changes[1] = shown(difference(runs, grid, "f1_all"), 3)
        rows.append(
            (ROWS[name].title, *figures, interval(runs, "rsum"), *attention, *changes),
        )
    return Table("", head, tuple(rows))


def trials_table(results):
    """Show what was tried on dev where a claim did not hold."""
    head = ("row", "seed", "i2t R@1", "t2i R@1", "rsum", "95 % interval", "F1", "95 % interval")
    rows = []
    for name in on_dev(results, "trial"):
        if not results[name]:
            rows.append((ROWS[name].title, NOT_RUN, *["-"] * 6))
        for seed, run in results[name].items():
            figures = [cell([run], figure) for figure in ("i2t_r1", "t2i_r1", "rsum")]
            f1 = (cell([run], "f1", 3), interval([run], "f1", 3) if run.attention else "-")
            rows.append((ROWS[name].title, str(seed), *figures, interval([run], "rsum"), *f1))
    return Table("", head, tuple(rows))


NAMES = {"flickr8k": "Flickr8k", "coco": "COCO"}


def transfer_table(results):
    """Compare models tested on a set by the sets that they learned from."""
    head = ("tested on", "row", "learned from", "seeds", "i2t R@1", "t2i R@1", "rsum")
    rows = []
    at_home = tested_on(results, "test")
    asked = [name for name in ROWS if ROWS[name].split == "test" and name not in at_home]
    titles = dict.fromkeys(ROWS[name].title for name in asked)
    asked += [name for name in at_home if ROWS[name].title in titles]
    order = {title: number for number, title in enumerate(titles)}
    sets = list(NAMES)

    def place(name):
        row = ROWS[name]
        return sets.index(row.tested), order[row.title], row.learned != (row.tested,), row.learned

    for name in sorted(asked, key=place):
        row, runs = ROWS[name], list(results[name].values())
        first = (NAMES[row.tested], row.title, " and ".join(NAMES[one] for one in row.learned))
        if not runs:
            rows.append((*first, NOT_RUN, *["-"] * 4))
            continue
        figures = [cell(runs, figure) for figure in ("i2t_r1", "t2i_r1", "rsum")]
        rows.append((*first, seeds_of(name, runs), *figures, interval(runs, "rsum")))
    return Table("", (*head, "95 % interval"), tuple(rows))


def more_data_table(results):
    """Compare models that learned from both sets with the same that learned from one."""
    head = ("tested on", "row", "both sets over", "rsum", "i2t R@1", "t2i R@1")
    rows = []
    for name, row in ROWS.items():
        if len(row.learned) < 2:
            continue
        (home,) = [
            other
            for other, one in ROWS.items()
            if (one.title, one.tested, one.split) == (row.title, row.tested, row.split)
            and one.learned == (row.tested,)
        ] or [None]
        if home is None:
            continue
        first, second = list(results[name].values()), list(results[home].values())
        changes = ["-"] * 3
        if first and second:
            figures = ("rsum", "i2t_r1", "t2i_r1")
            changes = [shown(difference(first, second, figure)) for figure in figures]
        rows.append((NAMES[row.tested], row.title, NAMES[row.tested], *changes))
    return Table("", head, tuple(rows))


def aim(results):
    """Say whether some model or pair passed R@1 40 and 30 on Flickr8k's test.

    With hubs held back and without: these are answers to two questions.
    """
    plain, held = (nearest(results, held=held) for held in (False, True))
    if plain is None:
        return f"{NOT_RUN.capitalize()}."
    more = "" if held is None else f" With hubs held back: {held[0].lower()}{held[1:]}"
    return (
        f"{plain}{more} The best of all rows of this page on test are named, so that some of it "
        "is luck."
    )


def nearest(results, *, held):
    """Say which row came nearest to the aim, of those with hubs held back or of those without."""
    found = {}
    for name, runs in results.items():
        row = ROWS[name]
        if runs and (row.split, row.tested) == ("test", "flickr8k") and bool(row.bank) == held:
            figures = ("i2t_r1", "t2i_r1")
            found[name] = [
                statistics.fmean(run.value(figure) for run in runs.values()) for figure in figures
            ]
    if not found:
        return None
    best = max(found, key=lambda name: min(found[name][0] / 40, found[name][1] / 30))
    first, second = found[best]
    more = " that learned from both sets" if len(ROWS[best].learned) > 1 else ""
    says = "It is reached by" if first > 40 and second > 30 else "It is not reached; nearest comes"
    return f"{says} {ROWS[best].title}{more}, {first:.1f} and {second:.1f}."


def making_table(results):
    head = ("row", "recipe", "epochs", "best", "minutes", "parameters", "command")
    rows = []
    for name, row in ROWS.items():
        runs = list(results[name].values())
        recipe = f"`{' '.join([f'recipes/flickr8k/{row.recipe}.yaml', *row.settings])}`"
        if row.members:
            recipe = "the mean of " + " and ".join(ROWS[member].title for member in row.members)
        command = f"`python tools/experiments.py --again {name}`"
        facts = [trained(results, name, seed) for seed in results[name]]
        if not runs:
            cells = (NOT_RUN, "-", "-", "-")
        elif not all(facts):
            cells = ("-",) * 4
        else:
            minutes = statistics.fmean(sum(run["seconds"] for run in made) / 60 for made in facts)
            epochs, best = (
                ", ".join("+".join(str(run[key]) for run in made) for made in facts)
                for key in ("epochs", "best_epoch")
            )
            parameters = sum(run["parameters"] for run in facts[0])
            cells = (epochs, best, f"{minutes:.0f}", f"{parameters / 1e6:.1f} M")
        rows.append((row.title, recipe, *cells, command))
    return Table("", head, tuple(rows))


def trained(results, name, seed):
    """Return the summaries of the runs that one result rests on, [] if a member's is not there."""
    members = [(one, seed_of(one, seed)) for one in ROWS[name].members]
    made = [results[one].get(which) for one, which in members or [(name, seed)]]
    return [run.found["training"] for run in made] if all(made) else []


def tested_on(results, split):
    """Return the rows that learned from Flickr8k alone and were tested on one of its splits."""
    home = ("flickr8k",)
    return [
        name
        for name in results
        if ROWS[name].split == split and ROWS[name].learned == home == (ROWS[name].tested,)
    ]


def on_dev(results, kind):
    """Return the rows of one kind, the first word of their names, that look at dev alone."""
    return [name for name in tested_on(results, "dev") if name.startswith(f"{kind}-")]


# Pictures -----------------------------------------------------------------------------------------


def curves(results):
    """Return what each picture shows, {file name: (title, [(row's title, history)])}."""
    named = {name for _, rows in CURVES.values() for name in rows.split()}
    pictures = {}
    for key, (title, listed) in CURVES.items():
        rows = listed.split()
        if key == "regions":
            rows = on_dev(results, "regions")
        elif key == "others":
            rows = [name for name in tested_on(results, "test") if name not in named]
        runs = [
            (on_dev_of(ROWS[name].title, run), run.found["training"]["history"])
            for name in rows
            for run in results[name].values()
            if run.found["training"]
        ]
        if runs:
            pictures[f"curves-{key}.png"] = (title, runs)
    return pictures


def on_dev_of(title, run):
    """Return a curve's name, with the size of dev where it is not all: fewer are found more."""
    few = run.found["training"].get("config", {}).get("data", {}).get("dev_images", 0)
    return f"{title} ({few} images of dev)" if few else title


def fingerprint(title, runs):
    """Return what a picture is made from as a short text that the picture holds, too."""
    drawn = [title, [(name, [round(one["rsum"], 3) for one in history]) for name, history in runs]]
    return hashlib.sha256(json.dumps(drawn).encode()).hexdigest()[:16]


def is_current(path, title, runs):
    if not path.is_file():
        return False
    with Image.open(path) as picture:
        return picture.text.get("Description") == fingerprint(title, runs)


# The page -----------------------------------------------------------------------------------------


def page(results, questions):
    pictures = curves(results)
    runs = [(name, seed) for name in results for seed in results[name]]
    # Rows that are tested on something else may rest on one run.
    spent = {
        run_of(name, seed): results[name][seed].found["training"]["seconds"]
        for name, seed in runs
        if ROWS[name].recipe
    }
    hours = sum(spent.values()) / 3600
    wanted = sum(len(row.seeds) for row in ROWS.values())
    shown = "\n\n".join(f"![{title}](pictures/{name})" for name, (title, _) in pictures.items())
    return TEXT.format(
        done=len(runs),
        wanted=wanted,
        hours=f"{hours:.1f}",
        regions=regions_table(results).markdown(),
        retrieval=retrieval_table(results).markdown(),
        intervals=intervals_table(results).markdown(),
        aim=aim(results),
        more=more_data_table(results).markdown(),
        attention=attention_table(results).markdown(),
        trials=trials_table(results).markdown(),
        transfer=transfer_table(results).markdown(),
        claims=claims_table(results).markdown(),
        luck=luck(results),
        looked=LOOKED.format(on_dev=constraints_on_dev(results)),
        more_intervals=more_intervals_table(results).markdown(),
        curves=shown or f"Nothing to draw: {NOT_RUN}.",
        making=making_table(results).markdown(),
        questions=questions,
    )


def constraints_on_dev(results):
    """Say what CCR costs BFAN on dev, by the rule that "seeds differ as much" goes by."""
    title, names = "**CCR and CCS on BFAN.**", ("bfan", "bfan-ccr", "bfan-ccr-ccs")
    found = [rsum_on_dev(run) for name in names for run in list(results[name].values())[:1]]
    known = luck_on_dev(results)
    if len(found) < len(names) or None in found or known is None:
        return f"{title} On dev: {NOT_RUN}."
    bfan, *others = found
    lost = [bfan - other for other in others]
    reach = known.reach(1, 1)
    within = ["lies within" if one < reach else "is more than" for one in lost]
    both = within[0] if within[0] == within[1] else f"{within[0]} and {within[1]}"
    text = (
        f"{title} On dev the same runs stand {lost[0]:.1f} and {lost[1]:.1f} below BFAN's. That is "
        "no second measurement: they are the same runs, of one seed each. Seeds differ there by "
        f"{known.sigma:.1f} (of the rows named above), so that two single runs differ by up to "
        f"{reach:.1f} by seeds alone, 19 times of 20: what is lost on dev {both} that. On test "
        "seeds of SCAN differ less, and by those alone the verdicts stand. More seeds of BFAN "
        "would tell."
    )
    return textwrap.fill(text, 100, break_on_hyphens=False)


def luck(results):
    """Return the sentence on how much seeds differ."""
    rsum, f1 = (luck_of_training(results, figure) for figure in ("rsum", "f1"))
    if rsum is None:
        return "How much seeds differ is not known yet: no row has several."
    also = "" if f1 is None else f" and {f1.sigma:.3f} in attention F1"
    rows = " and ".join(ROWS[name].title for name in rsum.rows)
    return (  # in one line: a "+" of a title must not begin one
        f"Seeds differ by {rsum.sigma:.1f} in rsum{also}: a standard deviation of {rows}, whose "
        f"{rsum.freedom + len(rsum.rows)} runs stand for all other models, too: where a verdict "
        'says "by other models\' seeds", neither of its two rows has several of '
        "its own, and how much theirs differ is not known."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail if not current")
    parser.add_argument("--root", type=Path, default=ROOT, help="where results/ and docs/ lie")
    args = parser.parse_args()
    results = read_results(args.root / RESULTS)
    path = args.root / PAGE
    text = page(results, questions_section(args.root / ANSWERS))
    pictures = {args.root / PICTURES / name: drawn for name, drawn in curves(results).items()}
    stale = [picture for picture, drawn in pictures.items() if not is_current(picture, *drawn)]
    left = sorted(set((args.root / PICTURES).glob("curves-*.png")) - set(pictures))
    pages = {path: text}
    if (args.root / README).is_file():
        front = args.root / README
        pages[front] = fill(front.read_text("utf-8"), BEGIN, END, short_table(results).markdown())
    old = [
        one
        for one, wanted in pages.items()
        if not one.is_file() or one.read_text("utf-8") != wanted
    ]
    if args.check:
        names = [one.name for one in old + stale + left]
        if names:
            sys.exit(f"not current: {', '.join(names)}; run python tools/results_page.py")
        return
    for picture in left:
        picture.unlink()
    if stale:
        from crossgaze.training.curves import draw_histories
    for picture in stale:
        picture.parent.mkdir(parents=True, exist_ok=True)
        title, runs = pictures[picture]
        draw_histories(runs, picture, title=title, note=fingerprint(title, runs))
    for one in old:
        one.write_text(pages[one], "utf-8")


if __name__ == "__main__":
    main()
