"""How long the package and the command line take to start (aim: below 0.5 s).

python benchmarks/bench_import.py
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from crossgaze import __version__

RESULT = Path(__file__).parents[1] / "results" / "bench-import.json"
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "python -c 'import crossgaze'": ["-c", "import crossgaze"],
    "crossgaze --help": ["-m", "crossgaze", "--help"],
    "crossgaze extract --help": ["-m", "crossgaze", "extract", "--help"],
}


def seconds(arguments):
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main():
    median = {}
    for name, arguments in COMMANDS.items():
        seconds(arguments)  # warm the file cache
        median[name] = round(statistics.median(seconds(arguments) for _ in range(10)), 4)
        print(f"{name}: {median[name]:.3f} s")
    result = {"median seconds of 10": median, "aim": 0.5, "crossgaze": __version__}
    RESULT.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
