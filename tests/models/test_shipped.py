"""The models that ship: stored in half precision, with cards that say what was measured."""

import json
import re
from pathlib import Path

import pytest
from safetensors import safe_open

from crossgaze.models.finding import ZOO

ship_model = pytest.importorskip("ship_model", reason="needs tools/")
RESULTS = Path(__file__).parents[2] / "results"
# Where the figures of a card come from, in the order in which it shows them.
MEASURED = {
    "default": ("flickr8k/both-bfan-longer-0", "flickr8k/both-bfan-longer-on-coco-0"),
    "default-embedder": ("flickr8k/both-vse-whole-0", "flickr8k/both-vse-whole-on-coco-0"),
    "daquar": ("rdan/daquar-all",),
}


@pytest.mark.parametrize("name", MEASURED)
def test_weights_are_stored_in_half_precision(name):
    with safe_open(ZOO / name / "model.safetensors", "pt") as file:
        types = {key: file.get_slice(key).get_dtype() for key in file.keys()}  # noqa: SIM118
    # Of tables that are mostly zero it also says which rows are there.
    numbers = {key for key in types if key.endswith(".rows")}
    assert len(types) > len(numbers)
    assert {types[key] for key in types.keys() - numbers} == {"F16"}
    assert {types[key] for key in numbers} <= {"I32"}


def tables(card):
    """Return the tables of figures in a card, each as {name: (value, low, high)}."""
    told = card.split("## Measured")[1].split("\n## ")[0]
    number = r"(-?\d+(?:\.\d+)?)"
    row = re.compile(rf"^\| (.+?) \| {number} \| {number} to {number} \|$")
    found = []
    for line in told.splitlines():
        if line.startswith("| figure |"):
            found.append({})
        elif match := row.match(line):
            found[-1][match[1]] = tuple(map(float, match.groups()[1:]))
    return found


def figures(measured):
    """Return the same of a result."""
    (first, *_) = measured.get("protocols") or [measured]
    found = dict(first["figures"])
    for part in measured.get("attention", ()):
        found |= {f"attention {key}": part["figures"][key] for key in ship_model.ATTENTION}
    return {
        ship_model.NAMES[key]: (one["value"], one["low"], one["high"]) for key, one in found.items()
    }


@pytest.mark.skipif(not RESULTS.is_dir(), reason="needs results/")
@pytest.mark.parametrize("name", MEASURED)
def test_a_cards_figures_are_those_of_its_results(name):
    card = (ZOO / name / "README.md").read_text("utf-8")
    shown = tables(card)
    assert len(shown) == len(MEASURED[name])
    for table, path in zip(shown, MEASURED[name], strict=True):
        result = json.loads((RESULTS / f"{path}.json").read_text("utf-8"))
        wanted = figures(result["measured"])
        assert table.keys() == wanted.keys()
        for figure, numbers in wanted.items():
            assert table[figure] == pytest.approx(numbers, rel=5.1e-4), (path, figure)
        data = result["measured"]["data"]
        counts = [data[key] for key in ("images", "captions") if "captions" in data]
        for count in counts or [data["questions"]]:
            assert f"{count:,} " in card
        # The snapshot that was measured is the one that ships.
        origin = json.loads((ZOO / name / "config.json").read_text("utf-8"))["origin"]
        assert origin["seed"] == result["seed"]
        assert origin["epoch"] == result["training"]["best_epoch"]
