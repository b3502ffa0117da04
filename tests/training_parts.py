"""A small world to train on: images of things, captions that name them, regions that show them."""

import json

import numpy as np
import torch
from safetensors.torch import load_file

from crossgaze.config import build
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.training.config import TrainConfig
from crossgaze.training.logs import read_log

THINGS = ("dog", "cat", "car", "boat", "tree", "ball")
COLOURS = ("red", "blue", "green", "white")
WIDTH, REGIONS = 12, 4
# Whatever draws or remembers.
EVERYTHING = {
    "augment": {"words": 0.2, "regions": 0.2, "features": 0.1, "noise": 0.1},
    "average": 0.9,
    "schedule": {"kind": "cosine", "warmup": 3},
}


def write_world(folder, images=24, dev=8, captions=2, seed=0, dtype="float16", scale=1.0):
    """Write captions and a region store; return the two paths.

    An image's regions hold the sum of a code of its thing and one of its colour, and noise.
    """
    rng = np.random.default_rng(seed)
    codes = rng.normal(size=(len(THINGS) + len(COLOURS), WIDTH))
    lines, names, features, counts = [], [], [], []
    for number in range(images + dev):
        thing, colour = number % len(THINGS), rng.integers(len(COLOURS))
        name = f"{number:03}.jpg"
        split = "train" if number < images else "dev"
        for other in range(captions):
            start = ("a", "the")[other % 2]
            text = f"{start} {COLOURS[colour]} {THINGS[thing]}" + " stands here" * (number % 2)
            lines.append({"image": name, "caption": text, "split": split})
        names.append(name)
        base = codes[thing] + codes[len(THINGS) + colour]
        features.append(base + 0.3 * rng.normal(size=(REGIONS, WIDTH)))
        counts.append(REGIONS - number % 2)
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    store = folder / "regions"
    block = scale * np.array(features)
    for row, count in enumerate(counts):
        block[row, count:] = 0
    with RegionWriter(store, REGIONS, WIDTH, dtype=dtype, fields=["counts"]) as writer:
        writer.append(names, block, counts=np.array(counts))
    return path, store


SMALL = {
    "scan": {"size": 16, "text": {"word_size": 8}},
    "vse++": {"size": 16, "text": {"word_size": 8, "bidirectional": False}},
    "sum-max": {"size": 16, "text": {"word_size": 8}},
    "bfan": {"size": 16, "text": {"word_size": 8}},
    "vsrn": {"size": 16, "layers": 1, "text": {"word_size": 8, "bidirectional": False}},
    "m-dan": {"size": 16, "text": {"kind": "lstm", "word_size": 8, "join": "sum"}},
    "r-dan": {"size": 16, "text": {"kind": "lstm", "word_size": 8, "join": "sum"}},
    "mmca": {"size": 16, "heads": 2, "filters": 4, "text": {"kind": "gru", "word_size": 8}},
}


def write_questions(folder, images=24, dev=8, seed=0):
    """Write DAQUAR's files and a region store: questions on thing and colour of small images.

    Images 1 to `images` are train, the rest test; a region's feature tells thing and colour.
    """
    rng = np.random.default_rng(seed)
    codes = rng.normal(size=(len(THINGS) + len(COLOURS), WIDTH))
    folder = folder / "daquar"
    folder.mkdir()
    lines, names, features = [], [], []
    for number in range(1, images + dev + 1):
        thing, colour = number % len(THINGS), int(rng.integers(len(COLOURS)))
        lines += [f"what is there in the image{number} ?", THINGS[thing]]
        lines += [f"what colour is the {THINGS[thing]} in the image{number} ?", COLOURS[colour]]
        lines += [f"is there a {THINGS[thing]} in the image{number} ?", "yes"]
        if number % 8 == 0:
            lines += [f"what two are in the image{number} ?", f"{THINGS[thing]}, mat"]
        names.append(f"image{number}.jpg")
        base = codes[thing] + codes[len(THINGS) + colour]
        features.append(base + 0.3 * rng.normal(size=(REGIONS, WIDTH)))
    (folder / "all_qa_pairs.txt").write_text("\n".join(lines) + "\n")
    for name, part in (
        ("train", range(1, images + 1)),
        ("test", range(images + 1, len(names) + 1)),
    ):
        text = "".join(f"image{number}\n" for number in part)
        (folder / f"{name}_images_list.txt").write_text(text)
    store = folder / "regions"
    counts = np.array([REGIONS - number % 2 for number in range(len(names))])
    block = np.array(features)
    for row, count in enumerate(counts):
        block[row, count:] = 0
    with RegionWriter(store, REGIONS, WIDTH, fields=["counts"]) as writer:
        writer.append(names, block, counts=counts)
    return folder, store


def asking(paths, **more):
    """Return a recipe of r-DAN for the small world of questions."""
    questions, regions = paths
    data = {"questions": str(questions), "regions": str(regions), "min_count": 1}
    data |= {"single": True, "dev_share": 0.3, **more.pop("data", {})}
    given = {
        "data": data,
        "family": "r-dan",
        "model": SMALL["r-dan"],
        "optimiser": {"rate": 0.01},
        "epochs": 2,
        "batch": 12,
        "log_every": 2,
        "save_every": 3,
    }
    return build(TrainConfig, given | more)


def tree(paths, family="scan", **more):
    """Return a recipe's keys for the small world."""
    captions, regions = paths
    given = {
        "data": {"captions": str(captions), "regions": str(regions), "min_count": 1},
        "family": family,
        "model": SMALL[family],
        "optimiser": {"rate": 0.01},
        "epochs": 2,
        "batch": 12,
        "log_every": 2,
        "save_every": 3,
    }
    return given | more


def settings(paths, family="scan", **more):
    """Return a recipe for the small world."""
    return build(TrainConfig, tree(paths, family, **more))


def _without_time(folder):
    lines = read_log(folder / "log.jsonl")
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def assert_equal_runs(one, other):
    """Both hold the same weights and the same log, bit for bit."""
    assert _without_time(one) == _without_time(other)
    saved = [torch.load(run / "checkpoint.pt", weights_only=True) for run in (one, other)]
    for key, value in saved[0]["weights"].items():
        assert torch.equal(value, saved[1]["weights"][key]), key
    for name in ("best", "best-companion"):
        assert (one / name).exists() == (other / name).exists()
        if (one / name).exists():
            first, second = (load_file(run / name / "model.safetensors") for run in (one, other))
            assert first.keys() == second.keys()
            assert all(torch.equal(first[key], second[key]) for key in first)
    summaries = [json.loads((run / "summary.json").read_text()) for run in (one, other)]
    for key in ("metrics", "history", "steps", "best_epoch"):
        assert summaries[0][key] == summaries[1][key]
