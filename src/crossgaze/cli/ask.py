"""Ask a question about a photograph, and see what the model looked at.

MODEL is the folder of a model that answers (r-DAN, by crossgaze train) or the name of one that
ships, IMAGE any photograph. Its regions are made as those that the model was trained with.

Examples:
  crossgaze ask daquar kitchen.jpg "what is on the table?"
  crossgaze ask my-rdan/ kitchen.jpg "how many chairs are there?" --out answer.png
  crossgaze ask my-rdan/ kitchen.jpg "is the lamp on?" --choices yes,no --json
"""

from __future__ import annotations

import argparse

from crossgaze.cli.output import add_json, print_json, print_table, say
from crossgaze.errors import InputError
from crossgaze.explain.saving import lacking, require_target

ENDINGS = (".png", ".jpg", ".jpeg", ".webp")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the verb's arguments."""
    parser.add_argument("model", metavar="MODEL", help="folder, name in the zoo, or Hub id")
    parser.add_argument("image", metavar="IMAGE", help="a photograph")
    parser.add_argument("question", metavar="QUESTION", help="in quotation marks")
    parser.add_argument(
        "--choices", metavar="A,B,...", help="answers to choose from (default: all that it knows)"
    )
    parser.add_argument("--top", metavar="N", type=int, default=5, help="answers (default 5)")
    parser.add_argument("--out", metavar="FILE", help="draw what was looked at, as .png or .jpg")
    parser.add_argument("--detector", metavar="DIR", help="the region model, if not the one here")
    parser.add_argument("--weights", metavar="FILE", help="the backbone's weights, for vgg19")
    parser.add_argument("--device", metavar="NAME", default="auto", help="cpu, cuda, cuda:1")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Ask, print the answers, draw the picture."""
    out = None if args.out is None else require_target(args.out, ENDINGS, "a picture's name")
    if args.top < 1:
        raise InputError(f"top: got {args.top}, wanted 1 or more")
    choices = None
    if args.choices is not None:
        choices = [choice.strip() for choice in args.choices.split(",") if choice.strip()]
    from crossgaze.asking.ask import ask, require_askable, shown_answer, source_of
    from crossgaze.models.pretrained import load_answerer

    model = load_answerer(args.model)
    require_askable(model, args.question, choices)  # before a network is loaded
    source, fit = source_of(
        model, detector=args.detector or "objects", weights=args.weights, device=args.device
    )
    model = model.to(source.device)
    reply = ask(
        model, args.image, args.question, choices=choices, top=args.top, source=source, fit=fit
    )
    if out is not None:
        from crossgaze.asking.picture import draw_reply

        draw_reply(reply, out)
    if args.json:
        print_json({"model": args.model, "image": args.image, **reply.to_dict()})
        return 0
    rows = [(shown_answer(answer), f"{100 * share:.1f} %") for answer, share in reply.answers]
    print_table(rows, header=("answer", "probability"), title=reply.question)
    if reply.unknown:
        say(f"  words that the model does not know: {', '.join(reply.unknown)}")
    if out is not None:
        say(f"what it looked at: {out}{lacking(out, reply.question)}")
    return 0
