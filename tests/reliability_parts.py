"""What the tests of bad days counted, kept for docs/reliability.md when CROSSGAZE_COUNTS says so.

    CROSSGAZE_COUNTS=results/reliability.json python -m pytest -m slow tests/fuzz

`tools/reliability_page.py` makes the page from that file. Counts are kept by test and parameter, so
that a part of the tests can be run again; each with the day, the commit and the machine it is of.
"""

import datetime
import fcntl
import functools
import json
import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def record(request, **counts: int) -> None:
    """Keep what a test counted, if somebody wants it kept."""
    target = os.environ.get("CROSSGAZE_COUNTS")
    if target:
        keep(Path(target), request.node.nodeid, counts)


def keep(path: Path, test: str, counts: dict[str, int]) -> None:
    """Put a test's counts into the file, whoever writes into it at the same time."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    entry = {"counts": counts, "day": today, "commit": commit(), "machine": machine()}
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        found = json.loads(text) if text else {}
        found[test] = entry
        file.seek(0)
        file.truncate()
        file.write(json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False) + "\n")


@functools.cache
def commit() -> str:
    """Return which code this is; counts and pages that change beside it do not matter."""
    short = _git("rev-parse", "--short", "HEAD")
    if not short:
        return "unknown"
    return f"{short} with changes" if _git("status", "--porcelain", "src", "tests") else short


def _git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # an archive of the source, on a machine without git
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@functools.cache
def machine() -> str:
    """Say what this machine is."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text("utf-8").splitlines() if told.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} cores of {names[0] if names else platform.machine()}"
