"""A process that tends an index, for tests that kill it: one step of work, with a line around it.

python tending_child.py WORLD sentences|compact|move
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import search_parts
from crossgaze.search import sentences
from crossgaze.search.moving import move_index


def say(word):
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main(world, work):
    if work == "move":
        say("begun")
        move_index(world / "index", world / "moved")
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
    main(Path(sys.argv[1]), sys.argv[2])
