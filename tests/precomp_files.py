"""A small `*_precomp` folder and what goes with it: photographs, boxes, phrases, a checkpoint."""

import json

import numpy as np
from PIL import Image

import entity_files
from checkpoint_files import D_IN, VOCAB, options, plain_states, save
from feature_files import tsv_line

COLOURS = ("red", "blue", "green", "white")
THINGS = ("dog", "cat", "car", "boat", "tree", "ball")
REGIONS, WIDTH = 4, D_IN
IMAGES = {"train": 50, "dev": 6, "test": 6}  # 250 training captions: two steps of 128
PUPS = "Two pups chase each other near a lake ."  # what the phrases with boxes speak of
FIRST = 42  # the number of the first test image, which has them


def write_precomp(folder):
    """Write captions and features of three splits, whose regions tell thing and colour."""
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(len(THINGS) + len(COLOURS), WIDTH))
    folder.mkdir(parents=True)
    for split, images in IMAGES.items():
        lines, features = [], []
        for number in range(images):
            thing, colour = number % len(THINGS), int(rng.integers(len(COLOURS)))
            words = f"{COLOURS[colour]} {THINGS[thing]}"
            lines += [f"{start} {words} near the lake ." for start in ("a", "the", "one", "two")]
            lines.append(PUPS if (split, number) == ("test", 0) else f"here is a {words} .")
            base = codes[thing] + codes[len(THINGS) + colour]
            features.append(base + 0.3 * rng.normal(size=(REGIONS, WIDTH)))
        (folder / f"{split}_caps.txt").write_text("\n".join(lines) + "\n")
        np.save(folder / f"{split}_ims.npy", np.array(features, np.float32))
    ids = [f"{FIRST + number}" for number in range(IMAGES["test"])]
    (folder / "test_ids.txt").write_text("\n".join(ids) + "\n")
    return folder


def write_beside(data):
    """Write what goes with it: a bottom-up-attention file, photographs and phrases with boxes."""
    lines = []
    (data / "images").mkdir()
    features = np.load(data / "f30k_precomp" / "test_ims.npy")
    for number, rows in enumerate(features):
        name = str(FIRST + number)
        boxes = np.array([[0, 0, 100, 200], [10, 20, 30, 60], [40, 50, 90, 90], [0, 100, 50, 180]])
        lines.append(tsv_line(name, boxes, rows, width=100, height=200))
        Image.new("RGB", (100, 200), (40 * number, 90, 120)).save(data / "images" / f"{name}.jpg")
    (data / "flickr30k_bottom_up.tsv").write_text("".join(lines))
    entity_files.zipped(
        data / "annotations.zip",
        {
            f"Annotations/{FIRST}.xml": entity_files.XML,
            f"Sentences/{FIRST}.txt": entity_files.SENTENCES,
        },
    )


def write_karpathy(path, folder):
    """Write Karpathy's list of the test images of such a folder, among others."""
    captions = (folder / "test_caps.txt").read_text().splitlines()
    test = [
        {
            "filename": f"{FIRST + number}.jpg",
            "imgid": number + 1,
            "split": "test",
            "sentences": [{"raw": told} for told in captions[5 * number : 5 * number + 5]],
        }
        for number in range(IMAGES["test"])
    ]
    other = {"filename": "7.jpg", "imgid": 0, "split": "train", "sentences": [{"raw": "A tree."}]}
    path.write_text(json.dumps({"images": [other, *test], "dataset": "flickr30k"}))


def write_checkpoint(path, vocabulary):
    """Write a checkpoint of SCAN's public code for these features, and its vocabulary."""
    save(path, plain_states(), options())
    VOCAB.save(vocabulary)
