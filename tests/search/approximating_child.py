"""A process whose approximate index grows and is made anew, over and over, until it is killed.

python approximating_child.py DATABASE

Every line it says is of what is acknowledged by then: "held N", N entries with uids from 1 on.
"""

import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from crossgaze.search import lance
from engine_parts import MORE, SMALL, WIDTH, entry, vectors


def main(folder):
    for name, value in SMALL.items():
        setattr(lance, name, value)
    engine = lance.LanceEngine(folder, "photos", WIDTH, exact=500)
    for work in itertools.cycle(("after", "during", "after", "compact")):
        first = len(engine) + 1
        engine.add([entry(first + n) for n in range(MORE)], vectors(MORE, seed=first))
        say(f"held {first + MORE - 1}")
        engine.update(engine.get(range(1, MORE + 1)))  # written anew, outside of the index
        engine.tidy(work)
        say("tidied")


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
