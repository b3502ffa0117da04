"""Turn a folder of photographs into region features: one region store.

Each photograph (JPEG, PNG, WebP, GIF, BMP, TIFF) becomes up to 36 regions that are objects and one
that is the whole image, with boxes, nouns, attributes and features, by the region model that ships;
or the cells of a grid. A run that was stopped goes on where it was; photographs that cannot be read
are listed in OUT/report.json and the rest goes on.

Examples:
  crossgaze extract photos/ regions/
  crossgaze extract photos/ mine/ --boxes detections.json       (your own detector's)
  crossgaze extract photos/ grid/ --regions grid --grid 7 --backbone efficientnet-lite0
  crossgaze extract photos/ resnet/ --regions grid --backbone microsoft/resnet-152 --grid 14
  crossgaze extract photos/ part-1/ --shard 1/4      (then: crossgaze store merge part-* OUT)
"""

from __future__ import annotations

import argparse

from crossgaze.cli.output import add_json, print_json, print_table, readable_bytes, say

FLAGS = (
    *("regions", "boxes", "whole", "detector", "backbone", "weights", "grid", "size"),
    *("device", "batch"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the verb's arguments."""
    parser.add_argument("photos", metavar="PHOTOS", help="a folder of photographs, or one of them")
    parser.add_argument("out", metavar="OUT", help="the region store to make or go on with")
    parser.add_argument(
        "settings",
        metavar="key=value",
        nargs="*",
        default=[],  # without it argparse calls them required
        help="any setting of ExtractConfig, such as fit=keep dtype=float32 workers=4",
    )
    parser.add_argument(
        "--regions",
        metavar="KIND",
        help="objects (default), grid, or selective-search (extra)",
    )
    parser.add_argument(
        "--boxes", metavar="FILE", help="boxes to take: COCO's JSON or bottom-up-attention's TSV"
    )
    parser.add_argument(
        "--whole",
        action=argparse.BooleanOptionalAction,
        help="the whole image as one more region, the last (default: with objects only)",
    )
    parser.add_argument(
        "--geometry",
        action="store_true",
        help="features end with where the region lies: edges and area, 5 numbers more",
    )
    parser.add_argument(
        "--detector", metavar="FOLDER", help="another region model than the one that ships"
    )
    parser.add_argument("--recipe", metavar="FILE", help="settings from a YAML file")
    parser.add_argument(
        "--backbone",
        metavar="NAME",
        help="of a grid: efficientnet-lite2 (default), -lite1, -lite0, vgg19, or a folder or Hub "
        "id of a transformers backbone",
    )
    parser.add_argument("--weights", metavar="FILE", help="the weights file, for vgg19")
    parser.add_argument("--grid", metavar="G", help="of a grid: G x G regions (default 6)")
    parser.add_argument("--size", metavar="PIXELS", help="of a grid: input size (default: by G)")
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1 (default: auto)")
    parser.add_argument(
        "--batch", metavar="N", help="photographs a forward pass (default: 2 on a CPU, 32 else)"
    )
    parser.add_argument(
        "--shard", metavar="I/N", help="only the I-th of N parts, for a cluster's scheduler"
    )
    parser.add_argument(
        "--follow-links",
        action="store_true",
        help="follow symbolic links, also out of the folder (else they are left out)",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Extract, and print what was done."""
    from crossgaze.config import load_recipe
    from crossgaze.data.regions.store import RegionStore
    from crossgaze.progress import progress_bar
    from crossgaze.vision.extract import ExtractConfig, Shard, extract

    given = [f"{name}={getattr(args, name)}" for name in FLAGS if getattr(args, name) is not None]
    given += [f"{name}=true" for name in ("geometry", "follow_links") if getattr(args, name)]
    config = load_recipe(ExtractConfig, args.recipe, [*given, *args.settings])
    shard = Shard.parse(args.shard) if args.shard is not None else None
    with progress_bar("Extracting", "photographs") as step:
        report = extract(args.photos, args.out, config, shard=shard, on_progress=step)
    store = RegionStore(args.out).describe()
    if args.json:
        print_json({"report": report.to_dict(), "store": store})
        return 0
    rows: list[tuple[str, object]] = [
        ("photographs found", report.photos),
        ("extracted now", f"{report.extracted:,} in {report.seconds:.1f} s"),
        ("a second", f"{report.images_per_second:.1f}"),
        ("there before", report.already),
        ("unreadable", len(report.unreadable)),
        ("store", f"{store['images']:,} images, {store['regions']} x {store['width']}"),
        ("on disk", readable_bytes(store["bytes"])),  # type: ignore[arg-type]
    ]
    print_table(rows, title=str(args.out))
    for name, reason in report.unreadable[:5]:
        say(f"  unreadable: {name}: {reason}")
    if len(report.unreadable) > 5:
        say(f"  ... all {len(report.unreadable)} are listed in {args.out}/report.json")
    for entry in report.left_out:
        say(f"  left out: {entry}")
    if report.without_boxes:
        say(
            f"  {len(report.without_boxes)} photographs have no box in {config.boxes} "
            f"({report.without_boxes[0]} ...): the whole image is their one region"
        )
    if report.changed:
        say(
            f"  {len(report.changed)} photographs have changed since their regions were made "
            f"({report.changed[0]} ...): their old regions are kept, extract into a new folder"
        )
    if report.gone:
        say(f"  {report.gone} images of the store are no longer in {args.photos}")
    return 0
