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
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crossgaze.cli.output import add_json, print_json, print_table, say, shown
from crossgaze.errors import InputError, require_folder

if TYPE_CHECKING:
    from crossgaze.data.captions.captioned import CaptionedImages


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
        "--task",
        choices=["open-ended", "multiple-choice"],
        help="which of the questions in a folder of VQA files (default: open-ended)",
    )
    parser.add_argument(
        "--entities", metavar="PATH", help="Flickr30k Entities to lay over the captions"
    )
    parser.add_argument(
        "--vocabulary", metavar="FILE", help="write a vocabulary of the training captions"
    )
    parser.add_argument(
        "--min-count", metavar="N", type=int, help="of that many occurrences (default 4)"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Read, and print what was found."""
    from crossgaze.data.detect import holds_questions

    asked = holds_questions(args.source, args.format) or args.annotations is not None
    if args.min_count is not None and args.vocabulary is None:
        raise InputError("min-count: goes with --vocabulary, which is not given")
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
    return shown(value)


def _captions(args: argparse.Namespace) -> dict[str, Any]:
    from crossgaze.data.captions.reading import read_captions

    if args.vocabulary is not None:
        require_folder(Path(args.vocabulary).parent, "a folder to write the vocabulary to")
    captioned = read_captions(args.source, images=args.images, format=args.format)
    described: dict[str, Any] = dict(captioned.describe())
    if args.vocabulary is not None:
        described["vocabulary"] = _write_vocabulary(args, captioned)
    if args.entities is not None:
        from crossgaze.data.entities.alignment import align
        from crossgaze.data.entities.archive import Entities

        entities = Entities.open(args.entities)
        aligned = align(captioned, entities).describe()
        left_out = [*map(str, entities.left_out), *cast(list[str], aligned.pop("left_out"))]
        described["left_out"] += [f"entities: {entry}" for entry in left_out]
        described["entities"] = aligned
    return described


def _write_vocabulary(args: argparse.Namespace, captioned: CaptionedImages) -> dict[str, object]:
    from crossgaze.data.text.vocabulary import Vocabulary

    if "train" not in captioned.splits:
        splits = ", ".join(sorted(set(captioned.splits) - {""})) or "no splits at all"
        raise InputError(
            f"{args.source}: vocabulary: wanted a train split to take the words from, "
            f"the set has {splits}"
        )
    min_count = 4 if args.min_count is None else args.min_count
    vocabulary = Vocabulary.build(captioned.split("train").captions, min_count)
    vocabulary.save(args.vocabulary)
    return {"file": args.vocabulary, "words": len(vocabulary)}


def _questions(args: argparse.Namespace) -> dict[str, Any]:
    from crossgaze.data.questions.reading import read_questions

    for option in ("vocabulary", "entities"):
        if getattr(args, option) is not None:
            raise InputError(f"{option}: goes with captions, {args.source} holds questions")
    found = read_questions(args.source, args.annotations, args.images, args.format, args.task)
    return dict(found.describe())
