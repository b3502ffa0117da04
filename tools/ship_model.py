"""Put a trained model into the zoo that ships with the package: half precision, small, checked.

    python tools/ship_model.py runs/rdan/daquar-all-0 daquar --result results/rdan/daquar-all.json

RUN is the folder of a training run or of a model. Then `crossgaze.load("daquar")` and, for a model
that answers, `crossgaze ask daquar IMAGE QUESTION` find it. Refused: a model above the limit, one
that half precision spoils, and one whose regions this checkout does not make.
"""

import argparse
import json
import re
import sys
from pathlib import Path

from safetensors.torch import load_file

from crossgaze.errors import InputError
from crossgaze.files import write_atomically
from crossgaze.models.answerer import Answerer
from crossgaze.models.base import Model
from crossgaze.models.finding import FILES, ZOO
from crossgaze.models.pretrained import load, replacing_folder
from crossgaze.torchfiles import save_tensors

LIMIT = 15.0  # megabytes of a model that ships, all files together


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", metavar="RUN", type=Path, help="of crossgaze train, or a model")
    parser.add_argument("name", metavar="NAME", help="what it is called in the zoo")
    parser.add_argument("--result", metavar="FILE", type=Path, help="for its card")
    parser.add_argument("--limit", metavar="MB", type=float, default=LIMIT)
    parser.add_argument("--zoo", metavar="DIR", type=Path, default=ZOO)
    args = parser.parse_args(words)
    try:
        print(ship(args.run, args.name, args.zoo, limit=args.limit, result=args.result))
    except InputError as error:
        sys.exit(str(error))


def ship(run, name, zoo=ZOO, *, limit=LIMIT, result=None):
    """Write a model to the zoo, whole or not at all, and return what to say.

    Args:
        run: a training run, whose best snapshot is taken, or a model's folder.
        name: small letters, digits and dashes.
        zoo: the folder of all of them.
        limit: megabytes (of 10^6 bytes) that it may have.
        result: a JSON file with `figures`, which go into its card.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise InputError(f"name: got {name!r}, wanted small letters, digits and dashes")
    source = run / "best" if (run / "best").is_dir() else run
    if not source.is_dir():
        raise InputError(f"{run}: no such folder, wanted a training run or a model")
    model = load(source)
    if not isinstance(model, Model):
        raise InputError(f"{source}: is an ensemble, wanted a single model")
    require_regions(model)
    measured = figures(result) if result else ""
    with replacing_folder(zoo / name) as out:
        for file in FILES:
            if (source / file).is_file() and file != "model.safetensors":
                write_atomically(out / file, (source / file).read_bytes())
        card = (out / "README.md").read_text("utf-8").replace("THIS-FOLDER", name)
        write_atomically(out / "README.md", card + measured)
        weights = load_file(source / "model.safetensors")
        halves = {
            key: value.half() if value.is_floating_point() else value
            for key, value in weights.items()
        }
        save_tensors(out / "model.safetensors", halves)
        load(out)  # refuses weights beyond the range of half precision
        size = sum(path.stat().st_size for path in out.iterdir()) / 1e6
        if size > limit:
            raise InputError(f"{source}: {size:.2f} MB in half precision, wanted {limit:g} at most")
    return f"{zoo / name}: {size:.2f} MB"


def require_regions(model):
    """Refuse a model that answers about regions which this package cannot make."""
    if isinstance(model, Answerer):
        from crossgaze.asking.ask import source_of

        source_of(model)


def figures(path):
    """Return the figures of a result for the card."""
    try:
        found = json.loads(path.read_text("utf-8"))
        data = found["measured"]["data"]
        rows = [
            f"| {name} | {one['value']:.2f} | {one['low']:.2f} to {one['high']:.2f} |"
            for name, one in found["measured"]["figures"].items()
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: does not read as a result: {error!r}") from None
    head = f"On {data['questions']:,} questions of {data['name']}, {', '.join(data['splits'])}, "
    head += "before the weights were rounded to half precision:"
    table = "\n".join(["| figure | value | 95 % interval |", "| --- | --- | --- |", *rows])
    return f"\n## Measured\n\n{head}\n\n{table}\n"


if __name__ == "__main__":
    main()
