"""Bring a checkpoint of the papers' public code (SCAN, BFAN, VSRN, VSE++) into crossgaze.

Every option is taken from the checkpoint, and the model scores as the public code does. Nothing in
the file is run: it may hold tensors, plain values and argparse's options, anything else is refused.

Examples:
  crossgaze import model_best.pth.tar --family scan --vocab f30k_precomp_vocab.json scan-f30k/
  crossgaze import vsrn/model_best.pth.tar --family vsrn --vocab f30k_vocab.pkl vsrn-f30k/
"""

from __future__ import annotations

import argparse

from crossgaze.cli.output import add_json, print_json, print_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the verb's arguments."""
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="the .pth.tar file")
    parser.add_argument("out", metavar="OUT", help="the folder to write the model to")
    parser.add_argument("--family", metavar="NAME", required=True, help="scan, bfan, vsrn or vse++")
    parser.add_argument(
        "--vocab", metavar="FILE", help="its vocabulary: SCAN's JSON or VSRN's pickle"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Import, save, and print what the model is."""
    from crossgaze.config import to_dict
    from crossgaze.models.checkpoints import import_checkpoint

    model = import_checkpoint(args.checkpoint, args.family, args.vocab)
    model.save_pretrained(args.out)
    words = None if model.vocabulary is None else len(model.vocabulary)
    described = {
        "family": model.family,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "vocabulary": words,
        "config": to_dict(model.config),
        "out": str(args.out),
    }
    if args.json:
        print_json(described)
        return 0
    known = f"{words:,} words" if words else "none: it reads numbers of words, but no text"
    rows: list[tuple[str, object]] = [
        ("family", model.family),
        ("parameters", described["parameters"]),
        ("vocabulary", known),
    ]
    config = to_dict(model.config)
    rows += [(key, value) for key, value in config.items() if not isinstance(value, dict)]
    text = {key: v for key, v in config["text"].items() if key not in ("bert", "frozen")}
    rows += [(f"text: {key}", value) for key, value in text.items()]  # never a BERT in these
    print_table(rows, title=str(args.out))
    return 0
