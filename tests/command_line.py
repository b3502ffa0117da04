"""The command line called from several test files."""

import os
import subprocess
import sys

from crossgaze.cli import main

# A small network on small pixels.
FAST = ["--regions", "grid", "--backbone", "efficientnet-lite0", "--size", "64", "--grid", "2"]


def run(capsys, *words):
    """Return the exit code and what was printed on stdout and stderr."""
    return main([str(word) for word in words]), *capsys.readouterr()


def shell(command, **environment):
    """Run a line of bash in which `crossgaze` is this checkout's program."""
    define = f'crossgaze() {{ "{sys.executable}" -m crossgaze "$@"; }}; set -o pipefail; '
    return subprocess.run(
        ["bash", "-c", define + command],
        capture_output=True,
        text=True,
        errors="backslashreplace",
        env=os.environ | environment,
        check=False,
    )
