"""What the tests of bad days counted, kept for docs/reliability.md when CROSSGAZE_COUNTS says so.

    CROSSGAZE_COUNTS=results/reliability.json python -m pytest -m slow tests/fuzz

`tools/reliability_page.py` makes the page from that file. Counts are kept by test and parameter, so
that a part of the tests can be run again.
"""

import fcntl
import json
import os
from pathlib import Path


def record(request, **counts: int) -> None:
    """Keep what a test counted, if somebody wants it kept."""
    target = os.environ.get("CROSSGAZE_COUNTS")
    if target:
        keep(Path(target), request.node.nodeid, counts)


def keep(path: Path, test: str, counts: dict[str, int]) -> None:
    """Put a test's counts into the file, whoever writes into it at the same time."""
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        found = json.loads(text) if text else {}
        found[test] = counts
        file.seek(0)
        file.truncate()
        file.write(json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False) + "\n")
