"""Write `words.txt`, the words of its training captions, into the folder of a model without one.

    python tools/seen_words.py default ../shared/data/flickr8k ../shared/data/coco

For models that were trained before `crossgaze train` kept these words; one that reads by a
vocabulary needs none. Search names the words of a query that are not among them.
"""

import argparse
import sys
from pathlib import Path

from crossgaze.data.captions.reading import read_captions
from crossgaze.errors import InputError
from crossgaze.models.finding import find_folder
from crossgaze.models.pretrained import load
from crossgaze.models.seen_words import FILE, words_of, write_words


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", metavar="MODEL", help="a folder, or a model that ships")
    parser.add_argument("data", metavar="DATA", type=Path, nargs="+", help="captions with splits")
    parser.add_argument("--split", metavar="NAME", default="train")
    args = parser.parse_args(words)
    try:
        print(write(args.model, args.data, args.split))
    except InputError as error:
        sys.exit(str(error))


def write(model, data, split="train"):
    """Write the words of a split of captioned image sets into a model's folder; say how many."""
    folder = find_folder(model)
    if load(folder).vocabulary is not None:
        raise InputError(f"{folder}: has a vocabulary, which says what words it knows")
    found = words_of(
        caption for one in data for caption in read_captions(one).split(split).captions
    )
    write_words(folder, found)
    return f"{folder / FILE}: {len(found):,} words"


if __name__ == "__main__":
    main()
