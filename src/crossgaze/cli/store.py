"""Look at, verify, import, merge and sort region stores.

Examples:
  crossgaze store info regions/
  crossgaze store verify regions/
  crossgaze store merge part-1/ part-2/ whole/
  crossgaze store import f30k_precomp/ f30k-test/ --split test
  crossgaze store import trainval_36.tsv coco/
  crossgaze store sort coco/ coco-by-area/ --by area
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from crossgaze.cli.output import add_json, print_json, print_table, readable_bytes, say
from crossgaze.errors import InputError, require_folder

if TYPE_CHECKING:
    Actions = argparse._SubParsersAction[argparse.ArgumentParser]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the verb's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    info = _add(actions, "info", "what a store holds")
    info.add_argument("store", metavar="STORE")
    verify = _add(actions, "verify", "look for truncation and corruption")
    verify.add_argument("store", metavar="STORE")
    merge = _add(actions, "merge", "join the shards of one extraction")
    merge.add_argument("stores", metavar="STORE", nargs="+")
    merge.add_argument("out", metavar="OUT")
    merge.add_argument(
        "--partial", action="store_true", help="even though shards are missing or unfinished"
    )
    bring = _add(actions, "import", "features you already have, as a store")
    bring.add_argument(
        "source",
        metavar="SOURCE",
        help="a *_precomp folder, an .npy file, a bottom-up-attention .tsv or a folder of them, "
        "a folder of .npz",
    )
    bring.add_argument("out", metavar="OUT")
    bring.add_argument("--split", metavar="NAME", help="the split of a *_precomp folder")
    bring.add_argument("--regions", metavar="K", type=int, help="regions kept an image (tsv, npz)")
    bring.add_argument("--dtype", choices=["float16", "float32"], help="convert to this")
    bring.add_argument(
        "--names", metavar="DATA", help="captions whose names bare numbers become (tsv, npz)"
    )
    sort = _add(actions, "sort", "each image's regions in another order")
    sort.add_argument("store", metavar="STORE")
    sort.add_argument("out", metavar="OUT")
    sort.add_argument(
        "--by",
        required=True,
        choices=["area", "confidence", "random"],
        help="the largest box first, the surest first, or at random",
    )
    sort.add_argument("--seed", type=int, default=0, help="of a random order (default 0)")
    for action in (info, verify, merge, bring, sort):
        add_json(action)


def _add(actions: Actions, name: str, does: str) -> argparse.ArgumentParser:
    """Add an action, whose help shows the examples above that are its own."""
    lines = [line for line in (__doc__ or "").splitlines() if f" store {name} " in line]
    return actions.add_parser(
        name,
        help=does,
        description="\n".join([f"{does[0].upper()}{does[1:]}.", "", "Examples:", *lines]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def run(args: argparse.Namespace) -> int:
    """Do the action; `verify` returns 1 when something is wrong."""
    return ACTIONS[args.action](args)


def _info(args: argparse.Namespace) -> int:
    from crossgaze.data.regions.store import RegionStore

    return _show(RegionStore(args.store).describe(), args.json)


def _verify(args: argparse.Namespace) -> int:
    from crossgaze.data.regions.verify import verify
    from crossgaze.progress import progress_bar

    folder = require_folder(args.store, "a region store")
    # Damage is a finding (code 1); a folder that is something else is a wrong argument (code 2).
    if not (folder / "head.json").exists():
        raise InputError(f"{folder}: is not a region store, it has no head.json")
    with progress_bar("Verifying") as step:
        found = verify(args.store, on_progress=step)
    if args.json:
        print_json(
            {
                "folder": str(found.folder),
                "images": found.images,
                "sound": found.sound,
                "problems": list(found.problems),
                "notes": list(found.notes),
            }
        )
    else:
        verdict = "sound" if found.sound else f"{len(found.problems)} problems"
        say(f"{found.folder}: {found.images:,} images, {verdict}")
        for line in (*found.problems, *(f"note: {note}" for note in found.notes)):
            say(f"  {line}")
    return 0 if found.sound else 1


def _merge(args: argparse.Namespace) -> int:
    from crossgaze.data.regions.merge import merge_stores
    from crossgaze.progress import progress_bar

    with progress_bar("Merging") as step:
        merged = merge_stores(args.stores, args.out, partial=args.partial, on_progress=step)
    return _show(merged.describe(), args.json)


def _import(args: argparse.Namespace) -> int:
    from crossgaze.data.regions.import_report import REPORT, read_import_report
    from crossgaze.data.regions.importing import import_regions
    from crossgaze.progress import progress_bar

    with progress_bar("Importing", "") as step:
        store = import_regions(
            args.source,
            args.out,
            split=args.split,
            regions=args.regions,
            dtype=args.dtype,
            names=args.names,
            on_progress=step,
        )
    if not (store.folder / REPORT).is_file():  # a file that is mapped is taken whole
        return _show(store.describe(), args.json)
    report = read_import_report(store.folder)
    if args.json:
        print_json(store.describe() | {"report": report.to_dict()})
        return 0
    _show(store.describe(), as_json=False)
    if report.regions_cut:
        say(
            f"  cut: {report.regions_cut:,} regions of {report.images_cut:,} images, past the "
            f"{store.head.regions} that are kept an image"
        )
    if report.ignored:
        say(f"  ignored: {', '.join(report.ignored)}")
    return 0


def _sort(args: argparse.Namespace) -> int:
    from crossgaze.data.regions.sort import sort_regions
    from crossgaze.progress import progress_bar

    with progress_bar("Sorting") as step:
        made = sort_regions(args.store, args.out, args.by, seed=args.seed, on_progress=step)
    return _show(made.describe(), args.json)


def _show(described: dict[str, object], as_json: bool) -> int:
    if as_json:
        print_json(described)
        return 0
    made_by = described.pop("made_by")
    described["bytes"] = readable_bytes(float(str(described["bytes"])))
    rows = [(key, _text(value)) for key, value in described.items()]
    rows += [(f"made by: {key}", _text(value)) for key, value in dict(made_by).items()]  # type: ignore[call-overload]
    print_table(rows)
    return 0


def _text(value: object) -> object:
    return ", ".join(map(str, value)) or "-" if isinstance(value, list) else value


ACTIONS = {
    "info": _info,
    "verify": _verify,
    "merge": _merge,
    "import": _import,
    "sort": _sort,
}
