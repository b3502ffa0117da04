"""Read a data set, check all of it, and say what is in it.

Captions: Flickr8k, Karpathy JSON, MS-COCO JSON, *_precomp folders, a CSV or JSONL of your own.
Questions: VQA v1 and v2, DAQUAR, easy-vqa. The format is seen from the files.

Examples:
  crossgaze data flickr8k/
  crossgaze data flickr8k/ --entities annotations.zip
  crossgaze data f30k_precomp/ --vocabulary vocab.json
  crossgaze data daquar/
"""

from __future__ import annotations

import argparse
from typing import Any

from crossgaze.cli.output import add_json, print_json, print_table, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the verb's arguments."""
    parser.add_argument("source", metavar="SOURCE", help="a data set's folder or file")
    parser.add_argument(
        "--format",
        metavar="NAME",
        help="flickr8k, karpathy, coco, precomp, own, vqa, daquar or easy-vqa",
    )
    parser.add_argument("--images", metavar="FOLDER", help="where the image files lie")
    parser.add_argument("--annotations", metavar="FILE", help="the answers to VQA's questions")
    parser.add_argument(
        "--entities", metavar="PATH", help="Flickr30k Entities to lay over the captions"
    )
    parser.add_argument(
        "--vocabulary", metavar="FILE", help="write a vocabulary of the training captions"
    )
    parser.add_argument(
        "--min-count", metavar="N", type=int, default=4, help="of that many occurrences (default 4)"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Read, and print what was found."""
    from crossgaze.data.detect import holds_questions

    asked = holds_questions(args.source, args.format) or args.annotations is not None
    described = _questions(args) if asked else _captions(args)
    if args.json:
        print_json(described)
        return 0
    splits: dict[str, dict[str, Any]] = described.pop("splits")
    left_out: list[str] = described.pop("left_out", [])
    notes: list[str] = described.pop("notes", [])
    header = sorted({key for row in splits.values() for key in row}, reverse=True)
    rows = [[name, *(_cell(row.get(key, 0)) for key in header)] for name, row in splits.items()]
    print_table(rows, header=["split", *header], title=str(described.pop("name")))
    for key, value in described.items():
        say(f"  {key.replace('_', ' ')}: {_cell(value)}")
    for line in (*(f"left out: {entry}" for entry in left_out), *notes):
        say(f"  {line}")
    return 0


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(item)}" for key, item in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)


def _captions(args: argparse.Namespace) -> dict[str, Any]:
    from crossgaze.data.captions.reading import read_captions

    captioned = read_captions(args.source, images=args.images, format=args.format)
    described: dict[str, Any] = dict(captioned.describe())
    if args.entities:
        from crossgaze.data.entities.alignment import align
        from crossgaze.data.entities.archive import Entities

        described["entities"] = align(captioned, Entities.open(args.entities)).describe()
    if args.vocabulary:
        from crossgaze.data.text.vocabulary import Vocabulary

        vocabulary = Vocabulary.build(captioned.split("train").captions, args.min_count)
        vocabulary.save(args.vocabulary)
        described["vocabulary"] = {"file": args.vocabulary, "words": len(vocabulary)}
    return described


def _questions(args: argparse.Namespace) -> dict[str, Any]:
    from crossgaze.data.questions.reading import read_questions

    found = read_questions(args.source, args.annotations, args.images, args.format)
    return dict(found.describe())
