"""See why: where a model looked when it compared a photograph with a sentence.

MODEL is the folder of a model that matches (SCAN, BFAN, MMCA, Sum-Max, m-DAN, VSRN) or the name of
one that ships; of an ensemble every member is explained. Without --out each word's strongest region
is printed. --out x.html is a page where pointing at a word lights its regions; .png and .svg are
figures as in the papers.

Examples:
  crossgaze explain default dog.jpg "a brown dog runs in the snow"
  crossgaze explain default dog.jpg "a brown dog runs in the snow" --out why.html
  crossgaze explain my-scan/ dog.jpg "a brown dog runs in the snow" --out why.png
  crossgaze explain my-scan/ dog.jpg "a dog" --beside my-scan-ccr/ --out both.svg
  crossgaze explain my-bfan/ dog.jpg "a dog" --map i-t --json
  crossgaze explain scan-f30k/ 1000.jpg "a dog" --store f30k/ --out f30k.html   (its own features)

What an evaluation found, right answers framed green and ticked, wrong ones red and crossed:
  crossgaze evaluate my-scan/ flickr8k/ --store regions/ --out result.json
  crossgaze explain --sheet result.json --photos flickr8k/images --out sheet.png
  crossgaze explain --sheet result.json --photos flickr8k/images --of images --out sheet.svg
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from crossgaze.cli.output import add_json, print_json, print_table, say
from crossgaze.errors import InputError

if TYPE_CHECKING:
    from crossgaze.explain.explanation import Explanation
    from crossgaze.models.matcher import Matcher
    from crossgaze.vision.settings import ExtractConfig

SHEET = {"of": "side", "only": "only", "rows": "rows", "top": "top"}  # options of a sheet alone
SHEETS = (".png", ".svg", ".jpg", ".jpeg", ".webp")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the verb's arguments."""
    parser.add_argument("model", metavar="MODEL", nargs="?", help="folder, name in the zoo, Hub id")
    parser.add_argument("image", metavar="IMAGE", nargs="?", help="a photograph")
    parser.add_argument("sentence", metavar="SENTENCE", nargs="?", help="in quotation marks")
    parser.add_argument("--out", metavar="FILE", help="write a page (.html) or figure (.png, .svg)")
    parser.add_argument("--beside", metavar="MODEL", help="another model on the same pair")
    parser.add_argument(
        "--map", metavar="NAME", help="t-i, i-t, 'head 2', 'step 2' (default: the first)"
    )
    parser.add_argument(
        "--importance",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="in a figure, words that counted for less are darker (default: they are)",
    )
    made = parser.add_argument_group("regions (default: made as those that the model learned from)")
    made.add_argument("--regions", metavar="KIND", help="objects, grid, or selective-search")
    made.add_argument(
        "--whole",
        action=argparse.BooleanOptionalAction,
        help="the whole image as one more region (default: with objects only)",
    )
    made.add_argument("--store", metavar="STORE", help="take the image's regions from this store")
    made.add_argument("--detector", metavar="DIR", help="the region model, if not the one here")
    made.add_argument("--weights", metavar="FILE", help="the backbone's weights, for vgg19")
    parser.add_argument("--device", metavar="NAME", default="auto", help="cpu, cuda, cuda:1")
    sheet = parser.add_argument_group("a sheet of what an evaluation found")
    sheet.add_argument("--sheet", metavar="RESULT", help="a file of crossgaze evaluate --out")
    sheet.add_argument("--photos", metavar="DIR", help="the folder of its photographs")
    sheet.add_argument("--of", metavar="SIDE", help="who asks: sentences (default), images")
    sheet.add_argument("--only", metavar="WHICH", help="all (default), hits, misses")
    sheet.add_argument("--rows", metavar="N", type=int, help="queries (default 6)")
    sheet.add_argument("--top", metavar="N", type=int, help="answers each (default 5)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Explain, print, and write the file."""
    if args.sheet is not None:
        return _sheet(args)
    if args.sentence is None:
        raise InputError('explain: wanted MODEL IMAGE "SENTENCE", or --sheet RESULT --photos DIR')
    for name in ("photos", *SHEET):
        if getattr(args, name) is not None:
            raise InputError(f"--{name}: goes with --sheet RESULT, which is missing")
    from crossgaze.explain.saving import lacking, require_target, save

    out = None if args.out is None else require_target(args.out)
    every = _explain(args)
    if args.map is not None and not any(args.map in one.views for one in every):
        every[0].require_view(args.map)
    if out is not None:
        save(every, out, view=args.map, importance=args.importance)
    if args.json:
        told = [{"image": args.image, **one.to_dict()} for one in every]
        print_json(told if len(told) > 1 else told[0])
        return 0
    for one in every:
        _print(one, args.map)
    if out is not None:
        say(f"written to {out}{lacking(out, args.sentence)}")
    return 0


def _explain(args: argparse.Namespace) -> list[Explanation]:
    from pathlib import Path

    from crossgaze.explain.explaining import load_matchers, together
    from crossgaze.models.reading import read_words
    from crossgaze.vision.settings import ExtractConfig

    config = None
    if args.regions is not None or args.whole is not None:
        if args.store is not None:
            raise InputError("--store: holds regions already, so --regions and --whole say nothing")
        config = ExtractConfig(
            regions=args.regions or "objects",
            whole=args.whole,
            weights=None if args.weights is None else Path(args.weights),
            detector=args.detector or "objects",
        )
    loaded = [load_matchers(name) for name in (args.model, args.beside) if name is not None]
    for _, model in (member for members in loaded for member in members):
        read_words(model, "sentence", args.sentence)  # before a network is loaded
    every: list[Explanation] = []
    for members in loaded:
        every += together([_explain_one(args, config, *member) for member in members])
    return every


def _explain_one(
    args: argparse.Namespace, config: ExtractConfig | None, called: str, model: Matcher
) -> Explanation:
    from crossgaze.explain.explaining import explain
    from crossgaze.explain.regions import source_for

    if args.store is not None:
        return explain(model, args.image, args.sentence, store=args.store, name=called)
    source, fit, notes = source_for(
        model,
        config,
        detector=args.detector or "objects",
        weights=args.weights,
        device=args.device,
    )
    model = model.to(source.device)
    return explain(
        model, args.image, args.sentence, source=source, fit=fit, name=called, notes=notes
    )


def _print(seen: Explanation, view: str | None) -> None:
    """Print each word's strongest region, or what else there is."""
    what = seen.model if seen.model == seen.family else f"{seen.model} ({seen.family})"
    title = f"{seen.sentence}: {seen.score:.3f} by {what}"
    if seen.kind == "words":
        # Beside one that has this map another may lack it: then its first, as in a figure.
        weights = seen.view(view if view in seen.views else None)
        rows = []
        for number in seen.shown:
            region = int(weights[number].argmax())
            share = float(weights[number, region])
            named, place = seen.label(region), _place(seen, region)
            if share <= 0:
                named, place = "none", ""
            rows.append((seen.words[number], named, f"{100 * share:.1f} %", place))
        print_table(rows, header=("word", "strongest region", "weight", "box"), title=title)
    elif seen.region_weights is not None:
        rows = []
        for name, weights in zip(seen.names, seen.region_weights, strict=True):
            for region in (-weights).argsort(kind="stable")[:3].tolist():
                share = float(weights[region] / weights.sum())
                rows.append(
                    (name, seen.label(region), f"{100 * share:.1f} %", _place(seen, region))
                )
        print_table(rows, header=("map", "region", "share", "box"), title=title)
    else:
        say(title)
    say(f"  {seen.meaning}")
    for note in seen.notes:
        say(f"  {note}")


def _place(seen: Explanation, region: int) -> str:
    """Return a region's box in pixels."""
    width, height = seen.size
    x1, y1, x2, y2 = (seen.boxes[region] * (width, height, width, height)).tolist()
    return f"{x1:.0f}, {y1:.0f} to {x2:.0f}, {y2:.0f}"


def _sheet(args: argparse.Namespace) -> int:
    """Draw a sheet."""
    if args.model is not None:
        raise InputError(f"--sheet: needs no model and no image, got {args.model!r}")
    for name in ("photos", "out"):
        if getattr(args, name) is None:
            raise InputError(f"--sheet: wanted --{name} with it")
    from crossgaze.explain.saving import require_target
    from crossgaze.explain.sheet import draw_sheet

    out = require_target(args.out, SHEETS)
    given = {called: getattr(args, name) for name, called in SHEET.items()}
    given = {called: value for called, value in given.items() if value is not None}
    scene = draw_sheet(args.sheet, args.photos, **given)
    scene.save(out)
    say(f"written to {out}")
    return 0
