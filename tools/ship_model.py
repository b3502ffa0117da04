"""Put a trained model into the zoo that ships with the package: half precision, small, checked.

    python tools/ship_model.py runs/rdan/daquar-all-0 daquar --result results/rdan/daquar-all.json
    python tools/ship_model.py RUN default --result A.json --result B.json

What a card says of data, licence and limits stands in tools/cards/NAME.md, and no model ships
without it.

RUN is the folder of a training run or of a model. Then `crossgaze.load("daquar")` and, for a model
that answers, `crossgaze ask daquar IMAGE QUESTION` find it. Refused: a model above the limit, one
that half precision spoils, and one whose regions this checkout does not make.
"""

import argparse
import json
import re
import sys
from decimal import ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path

from safetensors.torch import load_file

from crossgaze.errors import InputError
from crossgaze.files import write_atomically, write_json
from crossgaze.models.answerer import Answerer
from crossgaze.models.base import Model
from crossgaze.models.finding import FILES, ZOO
from crossgaze.models.pretrained import digest_of, load, replacing_folder
from crossgaze.models.sparse_rows import pack
from crossgaze.torchfiles import save_tensors

CARDS = Path(__file__).parent / "cards"
ATTENTION = ("precision", "recall", "f1", "pointing")
NAMES = {  # what a stranger calls them
    **{f"i2t_r{k}": f"a sentence of the photograph among the first {k}, %" for k in (1, 5, 10)},
    "i2t_median": "rank of the first right sentence, median",
    **{f"t2i_r{k}": f"the sentence's photograph among the first {k}, %" for k in (1, 5, 10)},
    "t2i_median": "rank of the right photograph, median",
    "rsum": "sum of the six percentages",
    "attention precision": "attention: share of the regions looked at that are the thing named",
    "attention recall": "attention: share of the thing's regions that are looked at",
    "attention f1": "attention: F1 of the two",
    "attention pointing": "attention: the strongest region lies on the thing named",
    "accuracy": "right answers, %",
    "number": "of these, where the answer is a number, %",
    "other": "of these, where it is anything else, %",
    "wups_0.9": "WUPS at 0.9: words nearly the same count nearly whole",
    "wups_0.0": "WUPS at 0.0: words count by their nearness in WordNet",
}
LIMIT = 15.0  # megabytes of a model that ships, all files together


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", metavar="RUN", type=Path, help="of crossgaze train, or a model")
    parser.add_argument("name", metavar="NAME", help="what it is called in the zoo")
    parser.add_argument(
        "--result", metavar="FILE", type=Path, action="append", default=[], help="for its card"
    )
    parser.add_argument(
        "--words", metavar="FILE", type=Path, help="data, licence, limits (tools/cards/NAME.md)"
    )
    parser.add_argument("--limit", metavar="MB", type=float, default=LIMIT)
    parser.add_argument("--zoo", metavar="DIR", type=Path, default=ZOO)
    args = parser.parse_args(words)
    try:
        print(
            ship(
                args.run,
                args.name,
                args.zoo,
                limit=args.limit,
                results=args.result,
                words=args.words,
            )
        )
    except InputError as error:
        sys.exit(str(error))


def ship(run, name, zoo=ZOO, *, limit=LIMIT, results=(), words=None):
    """Write a model to the zoo, whole or not at all, and return what to say.

    Args:
        run: a training run, whose best snapshot is taken, or a model's folder.
        name: small letters, digits and dashes.
        zoo: the folder of all of them.
        limit: megabytes (of 10^6 bytes) that it may have.
        results: JSON files of experiments, whose figures go into its card.
        words: the rest of its card: data, licence and limits; default: CARDS / NAME.md.
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
    words = words or CARDS / f"{name}.md"
    if not words.is_file():
        raise InputError(f"{words}: no such file, wanted what the card says of data and limits")
    measured = "\n## Measured\n\n" + "\n".join(map(figures, results)) if results else ""
    with replacing_folder(zoo / name) as out:
        for file in FILES:
            if (source / file).is_file() and file != "model.safetensors":
                write_atomically(out / file, (source / file).read_bytes())
        card = (out / "README.md").read_text("utf-8").replace("THIS-FOLDER", name)
        write_atomically(out / "README.md", f"{card}{measured}\n{words.read_text('utf-8')}")
        weights = load_file(source / "model.safetensors")
        halves = {
            key: value.half() if value.is_floating_point() else value
            for key, value in weights.items()
        }
        save_tensors(out / "model.safetensors", pack(halves))
        head = json.loads((out / "config.json").read_text("utf-8"))
        write_json(out / "config.json", head | {"weights": digest_of(out / "model.safetensors")})
        load(out)  # refuses weights beyond the range of half precision
        size = sum(path.stat().st_size for path in out.iterdir()) / 1e6
        if size > limit:
            raise InputError(f"{source}: {size:.2f} MB in half precision, wanted {limit:g} at most")
    return f"{zoo / name}: {size:.2f} MB"


def require_regions(model):
    """Refuse a model for regions which this package cannot make, where it says which."""
    if isinstance(model, Answerer) or "regions" in model.origin:
        from crossgaze.asking.ask import source_of

        source_of(model)


def four(value):
    """Return a number with four digits, a half rounded up, as docs/results.md has it.

    Example:
        >>> four(402.45), four(30.0), four(0.21776)
        ('402.5', '30', '0.2178')
    """
    with localcontext(prec=4, rounding=ROUND_HALF_UP):
        return f"{(+Decimal(str(value))).normalize():f}"


def figures(path):
    """Return the figures of a result for the card, with the command that measured them."""
    try:
        found = json.loads(path.read_text("utf-8"))
        measured = found["measured"]
        data = measured["data"]
        asked = f"{data['questions']:,} questions" if "questions" in data else ""
        asked = asked or f"{data['images']:,} images and {data['captions']:,} sentences"
        parts = measured["protocols"][:1] if "protocols" in measured else [measured]
        every = {name: one for part in parts for name, one in part["figures"].items()}
        for part in measured.get("attention", ()):
            every |= {f"attention {name}": part["figures"][name] for name in ATTENTION}
        rows = [
            f"| {name} | {four(one['value'])} | {four(one['low'])} to {four(one['high'])} |"
            for name, one in ((NAMES.get(key, key), one) for key, one in every.items())
        ]
        command = found["commands"][0]
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise InputError(f"{path}: does not read as a result: {error!r}") from None
    head = f"On {asked} of {data['name']}, {', '.join(data['splits'])}, before the weights were "
    head += f"rounded to half precision (`{command}`):"
    table = "\n".join(["| figure | value | 95 % interval |", "| --- | --- | --- |", *rows])
    return f"{head}\n\n{table}\n"


if __name__ == "__main__":
    main()
