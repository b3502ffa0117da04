"""What the papers claim, as differences between rows of the experiment, and whether it held."""

from dataclasses import dataclass

from crossgaze.evaluation.papers import ROWS as PAPER_ROWS
from crossgaze.evaluation.tables import Table
from experiments import ROWS
from result_files import NOT_RUN, difference, luck_of_training, shown


@dataclass(frozen=True)
class Claim:
    """One row of the experiment should be better than another.

    Args:
        text: the claim.
        first: the row that should be better.
        second: the row that it is compared with.
        figure: "rsum", or "f1" of attention.
        paper: where the paper shows it: paper, table and the names of its two rows in
            `crossgaze.evaluation.papers`; None if it prints no such pair.
    """

    text: str
    first: str
    second: str
    figure: str = "rsum"
    paper: tuple[str, int, str, str] | None = None


def constraints(model, row):
    """Return the claims on CCR and CCS for one model, rsum (table 1) and attention (table 4)."""
    parts = (("CCR", "ccr"), ("CCS", "ccs"), ("CCR + CCS", "ccr-ccs"))
    return [
        Claim(
            f"{name} raises {'rsum' if figure == 'rsum' else 'attention F1'}",
            f"{model.lower()}-{key}",
            row,
            figure,
            ("CCR/CCS", table, f"{model} + {name}", model),
        )
        for figure, table in (("rsum", 1), ("f1", 4))
        for name, key in parts
    ]


T_I, I_T = "SCAN t-i AVG (lambda_1 = 9)", "SCAN i-t AVG (lambda_1 = 4)"
BOTH = "SCAN t-i AVG + i-t LSE"
WHOLE = "4RRR + GSR"
ONE_VECTOR = "VSE++ (fixed ResNet, 1 crop)"
CLAIMS = (
    Claim(
        "attention beats Sum-Max",
        "scan-t-i-avg",
        "sum-max-t-i",
        paper=("SCAN", 3, T_I, "Sum-Max t-i"),
    ),
    Claim(
        "Sum-Max beats one vector",
        "sum-max-t-i",
        "vse",
        paper=("SCAN", 3, "Sum-Max t-i", ONE_VECTOR),
    ),
    Claim(
        "attention beats one vector",
        "scan-t-i-avg",
        "vse",
        paper=("SCAN", 3, T_I, ONE_VECTOR),
    ),
    Claim("attention beats one vector that saw the whole image, too", "scan-t-i-avg", "vse-whole"),
    Claim(
        "hard negatives help",
        "scan-t-i-avg",
        "scan-all-negatives",
        paper=("SCAN", 4, "Baseline: SCAN i-t AVG", "No hard negatives"),
    ),
    Claim(
        "both directions beat t-i alone", "scan-both", "scan-t-i-avg", paper=("SCAN", 1, BOTH, T_I)
    ),
    Claim(
        "both directions beat i-t alone", "scan-both", "scan-i-t-avg", paper=("SCAN", 1, BOTH, I_T)
    ),
    Claim(
        "reasoning beats mean pooling",
        "vsrn",
        "vsrn-mean-pool",
        paper=("VSRN", 4, WHOLE, "Mean-pool"),
    ),
    Claim("L_G helps", "vsrn", "vsrn-no-captions", paper=("VSRN", 4, WHOLE, f"{WHOLE}*")),
    Claim("cross-attention helps", "mmca", "mmca-self"),
    *constraints("SCAN", "scan-t-i-avg"),
    *constraints("BFAN", "bfan"),
    Claim(
        "CCR + CCS raises rsum on a set it has never seen",
        "coco-scan-ccr-ccs-on-flickr8k",
        "coco-scan-on-flickr8k",
        paper=("CCR/CCS", 3, "SCAN + CCR + CCS", "SCAN"),
    ),
    Claim(
        "CCR + CCS raises rsum on a set it has never seen",
        "scan-ccr-ccs-on-coco",
        "scan-t-i-avg-on-coco",
        paper=("CCR/CCS", 3, "SCAN + CCR + CCS", "SCAN"),
    ),
    Claim("words of their own help (no paper's)", "vse-whole", "vse-whole-minilm"),
    Claim("words trained along help (no paper's)", "both-bfan-tuned", "both-bfan"),
    Claim("hubs held back help (no paper's)", "both-bfan-tuned-held", "both-bfan-tuned"),
)


def claims_table(results):
    head = ("claim", "compared here", "figure", "seeds", "difference (95 % interval)")
    rows = []
    for claim in CLAIMS:
        digits, name = (1, "rsum") if claim.figure == "rsum" else (3, "attention F1")
        what = f"{ROWS[claim.first].title} - {ROWS[claim.second].title}{moved(claim)}"
        first, second = compared(results, claim)
        there = [f"{len(first)} and {len(second)}", "-", NOT_RUN]
        measured = [run.drawn(claim.figure) is not None for run in (*first, *second)]
        if first and second and not all(measured):
            there[2] = "not measured"
        elif first and second:
            change = difference(first, second, claim.figure)
            luck = luck_of_training(results, claim.figure)
            there[1:] = shown(change, digits), verdict(change, luck, len(first), len(second))
            there[2] += "" if there[2].startswith("open") else borrowed(claim, luck)
        rows.append((claim.text, what, name, *there, paper_says(claim)))
    return Table("", (*head, "here", "in the paper"), tuple(rows))


SETS = {"flickr8k": "Flickr8k", "coco": "COCO"}


def moved(claim):
    """Say from which set to which a claim's models went, nothing where they stayed."""
    row = ROWS[claim.first]
    if row.learned == (row.tested,):
        return ""
    return f", {' and '.join(SETS[one] for one in row.learned)} to {SETS[row.tested]}"


def borrowed(claim, luck):
    """Mark a verdict whose luck of training was measured on other models' seeds."""
    if luck is None or {claim.first, claim.second} & set(luck.rows):
        return ""
    return " (by other models' seeds)"


def compared(results, claim):
    """Return the runs of both sides: all seeds, or for an ensemble and its member the same ones."""
    first, second = results[claim.first], results[claim.second]
    if ROWS[claim.first].members:
        both = [seed for seed in first if seed in second]
        return [first[seed] for seed in both], [second[seed] for seed in both]
    return list(first.values()), list(second.values())


def verdict(change, luck, first, second):
    """Say whether a claim held.

    Args:
        change: the difference.
        luck: how much seeds differ, None where no row has several.
        first: how many runs.
        second: how many runs they are compared with.
    """
    if change.low <= 0 <= change.high:
        return "open: the interval holds 0"
    says = "**held**" if change.low > 0 else "**did not hold**: the other way round"
    if luck is not None and abs(change.value) < luck.reach(first, second):
        return f"{says}, but seeds differ as much"
    return says


def paper_says(claim):
    """Return the paper's own difference, from what it prints."""
    if claim.paper is None:
        return "no figure"
    paper, table, *names = claim.paper
    first, second = (paper_row(paper, table, name) for name in names)
    where = f"({first.source}, {first.data})"
    if claim.figure != "rsum":
        return f"{first.figures['f1'] - second.figures['f1']:+.3f} {where}"
    if first.rsum is None or second.rsum is None:  # some print R@1 and R@10 alone
        both = (first.figures[name] - second.figures[name] for name in ("i2t_r1", "t2i_r1"))
        return "R@1 {:+.1f} and {:+.1f} {}".format(*both, where)
    learned = f", learned from {first.trained}" if first.trained else ""
    return f"{first.rsum - second.rsum:+.1f} {where[:-1]}{learned})"


def paper_row(paper, table, name):
    (found,) = [
        row for row in PAPER_ROWS if (row.paper, row.table, row.name) == (paper, table, name)
    ]
    return found
