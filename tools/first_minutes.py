"""Do what a stranger does first, and write it down: docs/first-minutes.md.

    python tools/first_minutes.py [--shared FOLDER]

Clones this checkout's main into an empty folder, with no environment and nothing downloaded, runs
the README's two commands there, and keeps what they printed with the times they took. Data for the
tests are linked beside the clone where they are there; without them their tests skip.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "first-minutes.md"
COMMANDS = ("make demo", "make demo", "make test")
MIRROR = "WARNING: Location 'file:"  # pip's notes on a mirror of PyPI in files
SHOWN = 45  # lines of what a command printed

HEAD = """# The first ten minutes

<!-- tools/first_minutes.py writes this page -->

What a stranger sees who clones the repository and runs the README's two commands, as it was
printed by `python tools/first_minutes.py`: {machine}, Python {python}, {commit}.
Packages came from a mirror of PyPI nearby (pip's notes on it are left out); over a home's
connection the installation takes as long as its downloads: about a gigabyte for everything with
PyTorch's CPU build, which that mirror has, and several more with PyPI's own.
"""

TAIL = """
## What one might stumble over

- **PyTorch's size.** On Linux, PyPI's build brings gigabytes for GPUs. Where there is none, name
  the small build at the first `make`: `make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu`.
- **Python 3.11 or newer.** `make` says so where it finds only an older one; `make demo
  PYTHON=python3.12` names another.
- **Debian and Ubuntu have venv in a package of its own.** Without `apt install python3-venv` the
  environment cannot be made, and `make` says so; a half-made `.venv` is made anew by the next
  `make`.
- **The page is for the same computer.** `crossgaze serve` listens on 127.0.0.1 alone; `--host` for
  others wants a token of your own (`CROSSGAZE_TOKEN`), which the page then asks for.
- **There is always a best photograph.** A search for what is on none of them shows the least bad
  ones; scores only compare photographs of one search.
- **Indexing takes its time.** A photograph takes a sixteenth to a seventh of a second on two cores,
  so 10,000 take ten to twenty-five minutes, once. It may be stopped and goes on.
- **The models are small and learned from 8,616 photographs.** People, dogs, sport
  and streets they know, food, rooms and wild animals less; names, places, counting and writing they
  do not.
- **Answers are of rooms.** r-DAN learned from DAQUAR, photographs of rooms with answers of a word
  or two, and is right about a quarter of the time there. Elsewhere it guesses: what it says of the
  demonstration's cup of coffee is wrong, and the demonstration says so.
- **Skipped tests.** Without Debian's chromium the page's tests skip, without `../shared` those that
  need its data, without leave to mount (`unshare -rm`) those of full and read-only disks, without
  a C compiler (`cc`) that of jumping clocks; each says so.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.shared.is_dir():
            (folder / "shared").symlink_to(args.shared.resolve())
        clone = [
            "git",
            "clone",
            "--quiet",
            "--branch",
            "main",
            str(ROOT),
            str(folder / "crossgaze"),
        ]
        subprocess.run(clone, check=True)
        parts = [HEAD.format(machine=machine(), python=platform.python_version(), commit=commit())]
        for number, command in enumerate(COMMANDS):
            seconds, shown = run(command, folder / "crossgaze")
            again = (
                " again, now that everything is installed" if command in COMMANDS[:number] else ""
            )
            parts.append(f"## `{command}`{again}: {said(seconds)}\n\n```text\n{shown}\n```\n")
            print(f"{command}: {said(seconds)}", flush=True)
    PAGE.write_text("\n".join(parts) + TAIL, "utf-8")
    print(PAGE)


def run(command, folder):
    """Run a command as a stranger would; return its seconds and what it printed, shortened."""
    inherited = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    places = inherited["PATH"].split(":")
    inherited["PATH"] = ":".join(place for place in places if ".venv" not in place)
    kept = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
    began = time.perf_counter()
    done = subprocess.run(
        command.split(),
        cwd=folder,
        env=inherited | kept,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    seconds = time.perf_counter() - began
    # Not as text, which would make lines of what was written over.
    text = done.stdout.decode("utf-8", "replace").replace(str(folder), "crossgaze")
    return seconds, shorten(text, done.returncode)


def shorten(text, code):
    """Return what stayed on the terminal, at most SHOWN lines of it."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    text = text.replace("\r\n", "\n").removesuffix("\n")
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.split("\n")]
    lines = [line for line in lines if not line.startswith(MIRROR)]
    if len(lines) > SHOWN:
        left = len(lines) - SHOWN
        half = SHOWN // 2
        lines = [*lines[:half], f"... {left + 1} lines ...", *lines[-(SHOWN - half - 1) :]]
    if code:
        lines.append(f"(exit code {code})")
    return "\n".join(lines)


def said(seconds):
    """Return seconds as people say them."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def machine():
    """Say what this machine is."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} cores of an {names[0]}, no GPU"


def commit():
    """Return the commit that was cloned."""
    words = ["git", "-C", str(ROOT), "rev-parse", "--short", "main"]
    return (
        f"commit {subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()}"
    )


if __name__ == "__main__":
    main()
