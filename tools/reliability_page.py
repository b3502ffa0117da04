"""Write docs/reliability.md: what happens on a bad day, and the test that makes it happen.

    python tools/reliability_page.py

Counts of what is repeated come from results/reliability.json, which `make reliability` fills.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from reliability_rows import ROWS, Row

ROOT = Path(__file__).parents[1]
PAGE, COUNTS = ROOT / "docs" / "reliability.md", ROOT / "results" / "reliability.json"

HEAD = """# Reliability

<!-- tools/reliability_page.py writes this page; tests/test_reliability_page.py holds it to that -->

What happens on a bad day, each row by a test that makes it happen. Most run with every `make test`,
a few times where it is a matter of chance. `make reliability` repeats those rows often, counts, and
writes this page; the numbers are of its last run. "In a line" is a line that names the file or
setting, what was found and what was wanted, on stderr, with exit code 2 where the user can mend it
and 1 where the machine must; never a traceback.

"""

TAIL = """
The fuzzed readers are given mutations of a good file: flipped bits, cuts, hostile numbers, names
and nestings, and, where a format has checksums, bad content behind checksums that are right
(Hypothesis); the readers of texts also what Atheris finds, led by the lines that it reaches. While
they read, a guard watches: an input of some kilobytes may take 60 seconds, 2 GB more memory than
before, and may write nowhere but into the folder it was given, start no program and open no
connection.

What is trusted and what is not, and how to report a hole, says `SECURITY.md` in the repository.

## What is not tested

- **Power cuts.** Files are flushed (`fsync`) before anything counts on them, but nobody has pulled
  a plug: SIGKILL loses what a process had not written, a power cut what the system had not.
- **Flipped bits in a database's numbers and names.** LanceDB's and Milvus' files are read by them;
  crossgaze keeps checksums of regions, models and checkpoints, not of vectors, paths, dates and
  tags. Where LanceDB reads on, a search goes on with what it gives, and nobody notices.
- **Network file systems.** The locks are `flock`'s, which some of them only pretend to have.
- **Memory that runs out in mid-work.** Scoring, features held in memory and what a frozen BERT
  keeps are refused early with the number that would fit; elsewhere the line says which setting
  needs less.
"""


def counted(row: Row, counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return a row's last column: how often it was done."""
    if not row.counts:
        return "`make test`"
    found: dict[str, int] = {}
    for test, numbers in counts.items():
        if test.partition("[")[0] in row.tests:
            for name, number in numbers.items():
                found[name] = found.get(name, 0) + number
    if row.counts not in found:
        return "**not counted yet**"
    more = f", {found['refused']:,} refused" if "refused" in found else ""
    return f"{found[row.counts]:,} {row.counts}{more}"


def page(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return the page."""
    lines = ["| what goes wrong | what happens | what the user sees | test | how often |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for row in ROWS:
        tests = "<br>".join(f"`{test}`" for test in row.tests)
        cells = (row.what, row.happens, row.sees, tests, counted(row, counts))
        lines.append(f"| {' | '.join(cells)} |")
    return HEAD + "\n".join(lines) + "\n" + TAIL


def read_counts() -> dict[str, dict[str, int]]:
    """Return what was counted, by test."""
    return json.loads(COUNTS.read_text("utf-8")) if COUNTS.is_file() else {}


if __name__ == "__main__":
    PAGE.write_text(page(read_counts()), "utf-8")
    print(PAGE)
