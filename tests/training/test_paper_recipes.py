"""Every row of the papers' tables has a recipe with the row's settings, and the page says which."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from crossgaze.cli import parse
from crossgaze.cli.train import default_folder
from crossgaze.config import load_recipe
from crossgaze.evaluation.papers import COCO, F30K, ROWS
from crossgaze.training.config import TrainConfig
from crossgaze.training.warm_start import WarmStart

ROOT = Path(__file__).parents[2]
FOLDERS = {"flickr30k": F30K, "coco": COCO}
RECIPES = sorted(path for folder in FOLDERS for path in (ROOT / "recipes" / folder).glob("*.yaml"))
PAGE = (ROOT / "docs" / "recipes.md").read_text("utf-8")
ROW = re.compile(r"^#   (DAN|SCAN|VSRN|MMCA|CCR/CCS) table (\d), (1K|5 x 1K|5K): (.+)$", re.M)

# What the trainer does not do: it trains no CNN.
WITHOUT = {
    ("SCAN", 1, "1K", "VSE++ (ResNet)"),
    ("SCAN", 2, "5 x 1K", "VSE++ (ResNet)"),
    ("SCAN", 2, "5K", "VSE++ (ResNet)"),
    ("VSRN", 1, "5 x 1K", "VSE++"),
    ("VSRN", 2, "5K", "VSE++"),
    ("VSRN", 3, "1K", "VSE++"),
}


def name(path):
    return f"{path.parent.name}/{path.stem}"


def key(row):
    return row.paper, row.table, row.protocol, row.name


def head(path):
    return "".join(line for line in path.read_text().splitlines(keepends=True) if line[0] == "#")


def rows_of(path):
    return [(paper, int(table), *rest) for paper, table, *rest in ROW.findall(head(path))]


def commands(path):
    """Yield the verb and the parsed words of every command in a head."""
    for line in re.findall(r"^#   crossgaze (.+)$", head(path), re.M):
        verb, *words = shlex.split(line)
        yield verb, parse(verb, words)


def folder_of(args):
    return Path(args.out) if args.out is not None else default_folder(Path(args.recipe))


BY_KEY = {key(row): row for row in ROWS}
HELD = {path: rows_of(path) for path in RECIPES}
PAIRS = [(path, row) for path, rows in HELD.items() for row in rows]
MADE = {
    folder_of(args).as_posix()
    for path in RECIPES
    for verb, args in commands(path)
    if verb == "train"
}


def test_rows_are_told_apart_by_paper_table_protocol_and_name():
    assert len(BY_KEY) == len(ROWS)


def test_every_row_that_can_be_trained_has_a_recipe():
    found = {row for _, row in PAIRS}
    assert found <= BY_KEY.keys()
    assert BY_KEY.keys() - found == WITHOUT


@pytest.mark.parametrize("path", RECIPES, ids=name)
def test_a_head_names_rows_of_its_set_and_how_to_get_them(path):
    rows = HELD[path]
    assert rows
    assert len(set(rows)) == len(rows)
    for row in rows:
        assert (BY_KEY[row].trained or BY_KEY[row].data) == FOLDERS[path.parent.name]
    (verb, first), *others = commands(path)
    assert (verb, ROOT / first.recipe, first.settings) == ("train", path, [])
    measured = [args for verb, args in others if verb == "evaluate"]
    config = load_recipe(TrainConfig, path)
    own = f"runs/{name(path)}/best"
    single = [args for args in measured if args.model == own and not args.ensemble]
    assert single
    for verb, args in others:
        assert verb in ("train", "evaluate", "extract", "store")
        if verb == "train":  # the same recipe, otherwise set, elsewhere
            assert ROOT / args.recipe == path
            load_recipe(TrainConfig, path, args.settings)
            assert args.out
    for args in measured:
        for model in (args.model, *args.ensemble):
            assert model.removesuffix("/best") in MADE
    names = [BY_KEY[row] for row in rows]
    assert any(args.ensemble for args in measured) == any(averaged(row) for row in names)
    assert any(args.entities for args in measured) == any("f1" in row.figures for row in names)
    wanted = {row.data for row in names}
    assert wanted == {F30K if "30k" in str(args.data) else COCO for args in measured}
    for args in measured:
        if args.data == "data/coco_precomp":
            assert (args.split, args.folds) == ("testall", "1,5")
    stores = {str(path) for path in config.data.stores}
    assert all(store.startswith(("data/", "regions/")) for store in stores)
    made = {args.out for verb, args in others if verb in ("extract", "store")}
    assert {store for store in stores if store.startswith("regions/")} <= made
    assert {args.store for args in measured if args.store} <= made


def averaged(row):
    """Whether a row is two models' mean: SCAN's pairs, VSRN's whole model (section 4.3)."""
    whole = [other for other in ROWS if other.paper == "VSRN" and other.name == "VSRN (ours)"]
    pair = row.paper == "SCAN" and " + " in row.name
    return pair or any(row.figures == other.figures for other in whole)


@pytest.mark.parametrize(("path", "row"), PAIRS, ids=lambda part: str(getattr(part, "stem", part)))
def test_a_row_is_trained_as_it_is_called(path, row):
    paper, table, _, called = row
    config = load_recipe(TrainConfig, path)
    model, constraints = config.model_config(), config.constraints
    assert config.family == BY_KEY[row].family
    if paper == "SCAN" and config.family == "scan":
        parts = called.split(" + ")
        mine = [part for part in parts if f"{model.direction} {model.pooling}" in part]
        assert len(mine) == 1 or table == 4
        for number in re.findall(r"lambda_1 = (\d+)", called):
            # Table 3 prints 10 beside the figures that tables 1 and 4 have with 4.
            assert model.lambda1 == (4 if number == "10" else float(number))
        for number in re.findall(r"lambda_2 = (\d+)", called):
            assert model.lambda2 == float(number)
        pooling = (
            called.removeprefix("SCAN i-t ") if called in ("SCAN i-t SUM", "SCAN i-t MAX") else ""
        )
        if table == 4:
            assert (model.direction, model.lambda1) == ("i-t", 4)
            assert model.pooling == (pooling or "AVG")
            assert (config.loss.kind == "violations") == (called == "No hard negatives")
            assert model.normalize_images == (called != "Not normalize image embedding")
            assert model.text.bidirectional == (called != "One-directional GRU")
    if config.family == "sum-max":
        assert called == f"Sum-Max {model.direction}"
    if paper == "VSRN":
        assert (config.companion is None) == called.endswith("*")
        assert (model.reasoning == "mean") == (called in ("Mean-pool", "RRR"))
        layers = {"Mean-pool": 0, "RRR": 1, "GSR": 0, "1RRR + GSR": 1}
        assert model.layers == layers.get(called, 4)
        assert model.variant == ("f30k" if path.parent.name == "flickr30k" else "coco")
    if paper == "MMCA":
        size, alpha = re.fullmatch(r"(\d+)d", called), re.fullmatch(r"alpha = (.+)", called)
        assert model.size == (int(size[1]) if size else 256)
        assert model.alpha == (float(alpha[1]) if alpha else 0.2)
        assert (model.modules, model.heads, model.filters) == ("both", 16, 256)
        assert (model.text.kind, model.text.frozen) == ("bert", True)
    if paper == "CCR/CCS":
        assert bool(constraints.ccr) == ("CCR" in called)
        assert bool(constraints.ccs) == ("CCS" in called)
        assert config.family == "bfan" or (model.direction, model.pooling) == ("t-i", "AVG")
    else:
        assert not constraints.ccr
        assert not constraints.ccs


# Size, word size, rate, drop after, epochs, batch: the papers' and their public code's.
SETTINGS = {
    ("flickr30k", "scan"): (1024, 300, 2e-4, 15, 30, 128),
    ("coco", "scan"): (1024, 300, 5e-4, 10, 20, 128),
    ("flickr30k", "sum-max"): (1024, 300, 2e-4, 15, 30, 128),
    ("flickr30k", "vse++"): (1024, 300, 2e-4, 15, 30, 128),
    ("flickr30k", "bfan"): (1024, 300, 2e-4, 15, 30, 128),
    ("coco", "bfan"): (1024, 300, 5e-4, 15, 20, 128),
    ("flickr30k", "vsrn"): (2048, 300, 2e-4, 15, 30, 128),
    ("coco", "vsrn"): (2048, 300, 2e-4, 15, 30, 128),
    ("flickr30k", "mmca"): (None, None, 2e-4, 10, 20, 64),
    ("coco", "mmca"): (None, None, 2e-4, 10, 20, 64),
    ("flickr30k", "m-dan"): (512, 512, 0.1, 30, 60, 128),
}


@pytest.mark.parametrize("path", RECIPES, ids=name)
def test_a_recipe_has_the_papers_settings(path):
    config = load_recipe(TrainConfig, path)
    model, learned = config.model_config(), config.optimiser
    size, words, *rest = SETTINGS[(path.parent.name, config.family)]
    assert [learned.rate, *config.schedule.after, config.epochs, config.batch] == rest
    assert size in (None, model.size)
    assert words in (None, model.text.word_size)
    dan = config.family == "m-dan"
    assert (learned.kind, learned.clip) == (("sgd", 0.1) if dan else ("adam", 2.0))
    assert config.loss.margin == (100 if dan else 0.2)
    assert WarmStart(config.loss, per_epoch=1000).steps == 0
    assert (config.schedule.kind, config.schedule.factor) == ("drop", 0.1)
    if dan:
        assert (learned.momentum, learned.weight_decay) == (0.9, 5e-4)
        assert (model.steps, model.dropout, config.loss.kind) == (2, 0.5, "sampled")
    if config.family == "bfan":
        assert model.lambda1 == 20
    # None of what the papers do not do, whatever becomes of the defaults.
    assert (config.average, config.patience, config.precision) == (0, 0, "float32")
    assert "augment" not in yaml.safe_load(path.read_text())


def page_rows():
    """Yield the cells of the page's tables, each with the paper whose section it stands in."""
    for section in re.split(r"^## ", PAGE, flags=re.M)[1:]:
        title, _, text = section.partition("\n")
        for line in re.findall(r"^\| (\d .*) \|$", text, re.M):
            yield title, *line.split(" | ")


def test_the_page_lists_every_row_once_with_its_recipes():
    files = {}
    for path, row in PAIRS:
        files.setdefault(row, []).append(f"`{name(path)}`")
    wanted = []
    for row in ROWS:
        tested = f"{row.data} {row.protocol}" + (f", trained on {row.trained}" * bool(row.trained))
        recipe = " and ".join(files.get(key(row), ["none"]))
        wanted.append((row.paper, str(row.table), tested, row.name, recipe))
    found = [(*cells[:4], re.sub(r" \(.+\)$", "", cells[4])) for cells in page_rows()]
    assert sorted(found) == sorted(wanted)
    for cells in page_rows():
        assert cells[4] != "none"  # why stands behind it, in brackets


def test_every_recipe_of_the_page_is_there():
    listed = {
        ROOT / "recipes" / f"{found}.yaml"
        for found in re.findall(r"`((?:flickr30k|coco)/\S+)`", PAGE)
    }
    assert listed == set(RECIPES)
