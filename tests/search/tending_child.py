"""A process that tends an index, for tests that kill or starve it: one step, a line around it.

python tending_child.py WORLD sentences|compact|move [ENGINE]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import search_parts
from crossgaze.cli.failures import explain
from crossgaze.search import sentences
from crossgaze.search.moving import move_index


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main(world, work, engine="lance"):
    if work == "move":
        say("begun")
        move_index(world / "index", world / "moved", engine)
    else:
        index = search_parts.reopen(world)
        say("begun")
        if work == "sentences":
            sentences.TEXTS = 1  # parts of 16
            index.add_sentences(world / "sentences.txt")
        else:
            index.compact()
    say("end")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), *sys.argv[2:])
    except Exception as error:  # noqa: BLE001 (what the command line would say)
        code, line = explain(error, sys.argv[1:])
        say("failed", code, line)
        sys.exit(code)
