"""Write docs/reliability.md: what happens on a bad day, and the test that makes it happen.

    python tools/reliability_page.py

Counts of what is repeated come from results/reliability.json, which `make reliability` fills.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pages import table
from reliability_inputs import ARRAY_INPUTS, ATHERIS_RUNS, TEXT_INPUTS
from reliability_rows import DAYS, Row
from reliability_strangers import STRANGERS

ROOT = Path(__file__).parents[1]
PAGE, COUNTS = ROOT / "docs" / "reliability.md", ROOT / "results" / "reliability.json"
# By test, what was counted, and its day, commit and machine: see tests/reliability_parts.py.
Counts = Mapping[str, Mapping[str, Any]]
TITLES = ("what goes wrong", "what happens", "what the user sees", "test", "how often", "needs")
# What is counted of a reader -> its column.
COLUMNS = {
    "inputs": "bad files (Hypothesis)",
    "read": "of them read",
    "refused": "refused",
    "atheris": "by Atheris",
}

HEAD = """# Reliability

<!-- tools/reliability_page.py writes this page; tests/test_reliability_page.py holds it to that -->

What happens on a bad day, each row by a test that makes it happen. Most run with every `make test`,
a few times where it is a matter of chance. `make reliability` repeats those rows often, counts, and
writes this page. "In a line" is a line that names the file or setting, what was found and what was
wanted, on stderr, with exit code 2 where the user can mend it and 1 where the machine must; never a
traceback. Where a machine lacks what the last column names, those tests skip (and say so), and
nothing was shown there.

"""

FUZZED = """
The fuzzed readers are given mutations of a good file: flipped bits, cuts, hostile numbers, names
and nestings, and, where a format has checksums, bad content behind checksums that are right
(Hypothesis); the readers of texts also what Atheris finds, led by the lines that it reaches. While
they read, a guard watches: an input of some kilobytes may take 60 seconds, 2 GB more memory than
before, and may write nowhere but into the folder it was given, start no program and open no
connection.
"""

TAIL = """
What is trusted and what is not, and how to report a hole, says `SECURITY.md` in the repository.

## What is not tested

- **Power cuts.** Files are flushed (`fsync`) before anything counts on them, but nobody has pulled
  a plug: SIGKILL loses what a process had not written, a power cut what the system had not.
- **Flipped bits in a database's numbers and names.** LanceDB's and Milvus' files are read by them;
  crossgaze keeps checksums of regions, models and checkpoints, not of vectors, paths, dates and
  tags. Where LanceDB reads on, a search goes on with what it gives, and nobody notices.
- **Network file systems.** The locks are `flock`'s, which some of them only pretend to have.
- **Memory that runs out in mid-work.** Scoring, features held in memory and what a frozen BERT
  keeps are refused early with the number that would fit; elsewhere the line says which
  setting needs less, if the verb has one (`data`, `import`, `demo` and most of `store` have none).
- **macOS.** Nobody has run it there. Without Linux's `renameat2` there is a moment without a model
  while one is replaced; a kill in it leaves the old one under another name, which the next save
  there brings back.
"""

ROWS = DAYS + STRANGERS


def counted(row: Row, counts: Counts) -> str:
    """Return a row's last column: how often it was done."""
    if not row.counts:
        return "`make test`"
    found: dict[str, int] = {}
    for test, entry in counts.items():
        if test.partition("[")[0] in row.tests:
            for name, number in entry["counts"].items():
                found[name] = found.get(name, 0) + number
    if row.counts not in found:
        return "**not counted yet**"
    more = f", {found['refused']:,} refused" if "refused" in found else ""
    return f"{found[row.counts]:,} {row.counts}{more}"


def when(counts: Counts) -> str:
    """Say of which days, code and machine the counts are; nothing where there are none."""
    days: dict[tuple[str, str], list[str]] = {}
    for entry in counts.values():
        days.setdefault((entry["commit"], entry["machine"]), []).append(entry["day"])
    parts = []
    for (commit, machine), found in sorted(days.items(), key=lambda one: min(one[1])):
        span = " to ".join(sorted({min(found), max(found)}))
        tests = f" ({len(found)} test{'s' * (len(found) > 1)})" if len(days) > 1 else ""
        parts.append(f"on {span}, commit {commit}, {machine}{tests}")
    return f"Counted {'; '.join(parts)}.\n\n" if parts else ""


def by_reader(counts: Counts) -> str:
    """Return the table of fuzzed readers; nothing where none was counted."""
    fuzzed = {test for row in ROWS if row.counts == "inputs" for test in row.tests}
    found: dict[str, dict[str, int]] = {}
    for test, entry in counts.items():
        name, _, reader = test.removesuffix("]").partition("[")
        if name in fuzzed:
            numbers = entry["counts"]
            # Only those that Hypothesis made are told apart; Atheris counts what it ran.
            if "refused" not in numbers:
                numbers = {"atheris": numbers["inputs"]}
            found.setdefault(reader, {}).update(numbers)
    if not found:
        return ""
    rows = [
        [reader, *(f"{numbers[key]:,}" if key in numbers else "" for key in COLUMNS)]
        for reader, numbers in sorted(found.items())
    ]
    return f"\n## By reader\n\n{table(rows, ['reader', *COLUMNS.values()])}\n"


def planned() -> str:
    """Say how many bad files each reader is given, whether that was done or not."""
    rows = [(f"{count:,}", ", ".join(names)) for count, names in ARRAY_INPUTS.items()]
    texts = (
        "every reader of texts: captions, questions, entities, vocabularies, WordNet, extraction "
        "recipes"
    )
    rows.insert(0, (f"{TEXT_INPUTS:,}, and {ATHERIS_RUNS:,} by Atheris", texts))
    return (
        "\nSo many bad files `make reliability` makes for each; what it did is in the columns of "
        f"counts.\n\n{table(rows, ('planned', 'for each of'))}\n"
    )


def page(counts: Counts) -> str:
    """Return the page."""
    rows = []
    for row in ROWS:
        tests = "<br>".join(f"`{test}`" for test in row.tests)
        rows.append((row.what, row.happens, row.sees, tests, counted(row, counts), row.needs))
    days = table(rows, TITLES)
    return f"{HEAD}{when(counts)}{days}\n{FUZZED}{planned()}{by_reader(counts)}{TAIL}"


def read_counts() -> dict[str, dict[str, Any]]:
    """Return what was counted, by test."""
    return json.loads(COUNTS.read_text("utf-8")) if COUNTS.is_file() else {}


if __name__ == "__main__":
    PAGE.write_text(page(read_counts()), "utf-8")
    print(PAGE)
